/* test_blur.c: the blur kernels against plain C on every device there is, over exact and over
 * rounded-up ranges, and what the corners of a range see (run it under oclgrind too). */
#include "runner.h"

#include "base/random.h"
#include "steps/blur_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES (64u << 10)
#define PARTS_MAX  64u
#define UNTOUCHED  0xa5

enum fill { FILL_RANDOM, FILL_WHITE, FILL_STEPS, FILLS };

/* Blurred columns and rows: single ones, around the edges of blocks (16 bytes, 16 rows), large. */
static const uint32_t sizes[][2] = {{1, 1},  {1, 40}, {40, 1},  {5, 16},  {6, 17},  {16, 15},
                                    {16, 3}, {3, 33}, {21, 32}, {64, 31}, {99, 33}, {300, 17}};
#define SIZES (sizeof sizes / sizeof *sizes)

/* White gives the largest sum; steps give every sum there is, and so every quotient. */
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

/* The parts of a slot, each after the one before, and how many bytes they take. */
static uint32_t make_parts(struct blur_part *parts, uint32_t *blocks)
{
    uint32_t offset = 0;
    *blocks = 0;
    for (uint32_t i = 0; i < SIZES; i++) {
        parts[i] = (struct blur_part){offset, sizes[i][0], sizes[i][1], *blocks};
        *blocks += blur_blocks(sizes[i][0], sizes[i][1]);
        offset += (sizes[i][0] + BLUR_BORDER) * (sizes[i][1] + BLUR_BORDER) * 3;
        offset = (offset + 127) / 128 * 128;
    }
    parts[3].rows = 0; /* given up after it had its place */
    assert_true(offset <= SLOT_BYTES);
    return offset;
}

static void blur_slot(uint8_t *blurred, struct ocl_context *context, const uint8_t *pixels,
                      const struct blur_part *parts, uint32_t count, uint32_t blocks)
{
    struct error err = ERROR_INIT;
    struct blur *blur;
    struct ocl_queue *queue;
    cl_mem pixel_buffer, part_buffer;
    const cl_mem_flags copied = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
    assert_int_equal(ocl_queue_open(&queue, context, "test", &err), STATUS_OK);
    assert_int_equal(blur_open(&blur, context, SLOT_BYTES, &err), STATUS_OK);
    if (blur_build(blur, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(ocl_buffer(&pixel_buffer, context, copied, SLOT_BYTES,
                                (void *)(uintptr_t)pixels, "pixels", &err),
                     STATUS_OK);
    assert_int_equal(ocl_buffer(&part_buffer, context, copied, count * sizeof *parts,
                                (void *)(uintptr_t)parts, "parts", &err),
                     STATUS_OK);
    assert_int_equal(ocl_enqueue_write(queue, "untouched", blur_pixels(blur), true, 0, SLOT_BYTES,
                                       blurred, OCL_NO_WAITS, NULL, &err),
                     STATUS_OK);
    if (blur_enqueue(blur, queue, pixel_buffer, part_buffer, count, blocks, OCL_NO_WAITS, NULL,
                     &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(ocl_enqueue_read(queue, "blurred", blur_pixels(blur), true, 0, SLOT_BYTES,
                                      blurred, OCL_NO_WAITS, NULL, &err),
                     STATUS_OK);
    ocl_buffer_release(&part_buffer);
    ocl_buffer_release(&pixel_buffer);
    blur_close(&blur);
    ocl_queue_close(&queue);
}

/* All parts at once, as in an ingest; what lies between them stays as it was. */
static void check_slot(struct ocl_context *context, enum fill fill)
{
    static uint8_t pixels[SLOT_BYTES], blurred[SLOT_BYTES], wanted[SLOT_BYTES];
    struct blur_part parts[PARTS_MAX];
    uint32_t blocks;
    make_parts(parts, &blocks);
    fill_pixels(pixels, SLOT_BYTES, fill);
    memset(blurred, UNTOUCHED, SLOT_BYTES);
    memset(wanted, UNTOUCHED, SLOT_BYTES);
    for (uint32_t i = 0; i < SIZES; i++)
        blur_reference(wanted + parts[i].offset, 3 * (size_t)parts[i].width,
                       pixels + parts[i].offset, 3 * (size_t)(parts[i].width + BLUR_BORDER),
                       parts[i].width, parts[i].rows);
    blur_slot(blurred, context, pixels, parts, SIZES, blocks);
    for (uint32_t i = 0; i < SLOT_BYTES; i++)
        if (blurred[i] != wanted[i])
            fail_msg("fill %d: byte %u is %u instead of %u", fill, i, blurred[i], wanted[i]);
}

/* Whatever the launch takes gives the reference's bits; sizes are those of the corners. */
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

/* 62 x 30 in groups of 16 x 16 leave groups of 14 at the right and at the bottom. */
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
        assert_string_equal(err.name, "CL_INVALID_WORK_GROUP_SIZE");
    }
    ocl_queue_close(&queue);
}

/* Calls check for every usable device, and once more for one that takes non-uniform work-groups as
 * if it did not. */
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

/* By hand: nine pixels of 0 to 8 and 100 in one channel. */
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
