/* test_blur.c: the blur kernels compared with plain C on all devices, with exact and rounded-up
 * ranges; and the sizes and IDs of work-items at the corners of a range. Run it under Oclgrind,
 * too. */
#include "runner.h"

#include "base/random.h"
#include "device/blur_step.h"
#include "device/plan.h"
#include "device/proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES (64u << 10)
#define UNTOUCHED  0xa5

enum fill { FILL_RANDOM, FILL_WHITE, FILL_STEPS, FILLS };

/* Widths and heights after blurring: single columns and rows, sizes around multiples of a block (16
 * bytes, 16 rows), and large ones. */
static const uint32_t sizes[][2] = {{1, 1},  {1, 40}, {40, 1},  {5, 16},  {6, 17},  {16, 15},
                                    {16, 3}, {3, 33}, {21, 32}, {64, 31}, {99, 33}, {300, 17}};
#define SIZES (sizeof sizes / sizeof *sizes)

/* White gives the largest sum; the steps give all possible sums, and therefore all quotients. */
static void fill_pixels(uint8_t *pixels, size_t bytes, enum fill fill)
{
    uint32_t state = RANDOM_START;
    for (size_t i = 0; i < bytes; i++) {
        random_next(&state);
        const size_t step = i / 3 % 2296;
        pixels[i] = fill == FILL_RANDOM  ? (uint8_t)(state >> 9)
                    : fill == FILL_WHITE ? 255
                                         : (uint8_t)(step / 9 + (step % 9 > i % 9));
    }
}

/* Places the parts in the slot, one after another. */
static void make_parts(struct proof_part *parts)
{
    uint32_t offset = 0;
    for (uint32_t i = 0; i < SIZES; i++) {
        struct part_shape *in = &parts[i].in;
        in->width = in->rect.x1 = sizes[i][0] + BLUR_BORDER;
        in->height = in->rect.y1 = sizes[i][1] + BLUR_BORDER;
        part_set_rgb(in);
        parts[i].in_offset = offset;
        offset += (uint32_t)(in->bytes + 127) / 128 * 128;
    }
    parts[3].given_up = true; /* after it was placed */
    assert_true(offset <= SLOT_BYTES);
}

/* Blurs all parts at once, as an ingest does; the bytes between them must not change. */
static void check_slot(struct ocl_context *context, enum fill fill)
{
    static uint8_t pixels[SLOT_BYTES], blurred[SLOT_BYTES], wanted[SLOT_BYTES];
    static const struct step_node node = {.step = &blur_step};
    struct proof_part parts[SIZES] = {{.in_offset = 0}};
    struct error err = ERROR_INIT;
    make_parts(parts);
    fill_pixels(pixels, SLOT_BYTES, fill);
    memset(blurred, UNTOUCHED, SLOT_BYTES);
    memset(wanted, UNTOUCHED, SLOT_BYTES);
    if (proof_run(blurred, parts, SIZES, &node, context, pixels, SLOT_BYTES, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    for (uint32_t i = 0; i < SIZES; i++) {
        const struct proof_part *part = &parts[i];
        assert_int_equal(part->out.width, sizes[i][0]);
        assert_int_equal(part->out.height, sizes[i][1]);
        if (!part->given_up)
            blur_reference(wanted + part->out_offset, part->out.stride, pixels + part->in_offset,
                           part->in.stride, part->out.width, part->out.height);
    }
    for (uint32_t i = 0; i < SLOT_BYTES; i++)
        if (blurred[i] != wanted[i])
            fail_msg("fill %d: byte %u is %u instead of %u", fill, i, blurred[i], wanted[i]);
}

/* Where the launch succeeds, the result has the bits of the reference. */
static void check_picture(struct ocl_context *context, const struct ocl_ndrange *range)
{
    static uint8_t pixels[SLOT_BYTES], blurred[SLOT_BYTES], wanted[SLOT_BYTES];
    struct error err = ERROR_INIT;
    struct ocl_queue *queue;
    const uint32_t width = (uint32_t)range->global[0], height = (uint32_t)range->global[1];
    const struct ocl_device *device = ocl_context_device(context);
    fill_pixels(pixels, SLOT_BYTES, FILL_RANDOM);
    blur_reference(wanted, 3 * (size_t)width, pixels, 3 * (size_t)(width + BLUR_BORDER), width,
                   height);
    assert_int_equal(ocl_queue_open(&queue, context, "test", &err), STATUS_OK);
    const bool whole =
        range->local[0] == 0 || (width % range->local[0] == 0 && height % range->local[1] == 0);
    const bool taken = whole || (device->non_uniform_groups && range->c_version[0] != '1');
    enum status status = blur_picture(blurred, context, queue, pixels, range, &err);
    if (taken) {
        assert_int_equal(status, STATUS_OK);
        assert_memory_equal(blurred, wanted, 3 * (size_t)width * height);
    } else {
        assert_int_equal(status, STATUS_FAILED);
        assert_int_equal(err.native, CL_INVALID_WORK_GROUP_SIZE);
    }
    ocl_queue_close(&queue);
}

/* 62 x 30 work-items in groups of 16 x 16 leave smaller groups of 14 at the right and the
 * bottom. */
static void check_corners(struct ocl_context *context)
{
    struct error err = ERROR_INIT;
    struct ocl_queue *queue;
    struct ocl_ndrange_corner corner[OCL_NDRANGE_CORNERS];
    const struct ocl_device *device = ocl_context_device(context);
    const struct ocl_ndrange range = {ocl_ndrange_version(device), {62, 30}, {16, 16}};
    static const uint32_t wanted[OCL_NDRANGE_CORNERS][2] = {{16, 16}, {14, 16}, {16, 14}, {14, 14}};
    assert_int_equal(ocl_queue_open(&queue, context, "test", &err), STATUS_OK);
    enum status status = ocl_ndrange_probe(corner, context, queue, &range, &err);
    if (device->non_uniform_groups) {
        assert_int_equal(status, STATUS_OK);
        for (unsigned i = 0; i < OCL_NDRANGE_CORNERS; i++) {
            assert_int_equal(corner[i].global_id[0], i & 1 ? 61 : 0);
            assert_int_equal(corner[i].global_id[1], i & 2 ? 29 : 0);
            assert_int_equal(corner[i].local_size[0], wanted[i][0]);
            assert_int_equal(corner[i].local_size[1], wanted[i][1]);
            assert_int_equal(corner[i].enqueued_local_size[0], 16);
            assert_int_equal(corner[i].enqueued_local_size[1], 16);
        }
    } else {
        assert_int_equal(status, STATUS_FAILED);
        assert_int_equal(err.native, CL_INVALID_WORK_GROUP_SIZE);
    }
    ocl_queue_close(&queue);
}

/* Calls `check` for all usable devices, and again for devices with non-uniform work-groups as if
 * they did not support them. */
static void on_every_device(void (*check)(struct ocl_context *context), bool rounded)
{
    struct error err = ERROR_INIT;
    struct ocl_devices devices;
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    assert_true(devices.count > 0);
    for (unsigned i = 0; i < devices.count; i++) {
        struct ocl_device device = devices.device[i];
        if (!device.usable)
            continue;
        for (int turn = 0; turn < (rounded && device.non_uniform_groups ? 2 : 1); turn++) {
            struct ocl_context *context;
            device.non_uniform_groups = device.non_uniform_groups && turn == 0;
            printf("  %s, %s ranges\n", device.name,
                   device.non_uniform_groups ? "exact" : "rounded-up");
            assert_int_equal(ocl_context_open(&context, &device, NULL, &err), STATUS_OK);
            check(context);
            ocl_context_close(&context);
        }
    }
    ocl_devices_close(&devices);
}

static void check_slots(struct ocl_context *context)
{
    for (int fill = 0; fill < FILLS; fill++)
        check_slot(context, (enum fill)fill);
}

static void check_pictures(struct ocl_context *context)
{
    const char *later = ocl_ndrange_version(ocl_context_device(context));
    const struct ocl_ndrange ranges[] = {
        {"1.2", {35, 21}, {0, 0}},   {"1.2", {35, 21}, {16, 16}}, {later, {35, 21}, {0, 0}},
        {later, {35, 21}, {16, 16}}, {"1.2", {32, 16}, {16, 16}}, {later, {1, 1}, {1, 1}},
    };
    for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; i++)
        check_picture(context, &ranges[i]);
}

static void test_slots_equal_the_reference(void **state)
{
    (void)state;
    on_every_device(check_slots, true);
}

static void test_pictures_equal_the_reference(void **state)
{
    (void)state;
    on_every_device(check_pictures, false);
}

static void test_corners_of_a_range(void **state)
{
    (void)state;
    on_every_device(check_corners, false);
}

static void test_ranges(void **state)
{
    (void)state;
    const struct ocl_device whole = {.version = "OpenCL 3.0 x", .non_uniform_groups = false};
    const struct ocl_device any = {.version = "OpenCL 1.2 x", .non_uniform_groups = true};
    const struct ocl_device any_3 = {.version = "OpenCL 3.0 x", .non_uniform_groups = true};
    assert_int_equal(ocl_range_size(&whole, 65, 64), 128);
    assert_int_equal(ocl_range_size(&whole, 64, 64), 64);
    assert_int_equal(ocl_range_size(&any, 65, 64), 65);
    assert_string_equal(ocl_range_option(&whole), "-cl-std=CL1.2");
    assert_string_equal(ocl_range_option(&any), "-cl-std=CL2.0");
    assert_string_equal(ocl_range_option(&any_3), "-cl-std=CL3.0");
    const struct ocl_device with_2 = {.opencl_c_2 = true}, without_2 = {.opencl_c_2 = false};
    assert_string_equal(ocl_ndrange_version(&with_2), "2.0");
    assert_string_equal(ocl_ndrange_version(&without_2), "3.0");
}

/* Computed by hand: nine pixels, with 0 to 8 in one channel and one 100 in another. */
static void test_reference(void **state)
{
    (void)state;
    uint8_t pixels[27], blurred[3] = {9, 9, 9};
    for (unsigned i = 0; i < 9; i++) {
        pixels[3 * i] = (uint8_t)i;
        pixels[3 * i + 1] = 255;
        pixels[3 * i + 2] = i == 4 ? 107 : 0;
    }
    blur_reference(blurred, 3, pixels, 9, 1, 1);
    assert_int_equal(blurred[0], 4);
    assert_int_equal(blurred[1], 255);
    assert_int_equal(blurred[2], 11); /* 11.9 */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_reference),
    cmocka_unit_test(test_ranges),
    cmocka_unit_test(test_slots_equal_the_reference),
    cmocka_unit_test(test_pictures_equal_the_reference),
    cmocka_unit_test(test_corners_of_a_range),
};
TEST_GROUP(blur, NULL, NULL)
