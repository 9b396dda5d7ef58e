/* test_scale.c: the box filter: its kernel against plain C on every device there is, over exact and over
 * rounded-up ranges, and plain C against values worked out by hand (run it under oclgrind too). */
#include "runner.h"
#include "test_devices.h"

#include "base/random.h"
#include "steps/proof.h"
#include "steps/scale_step.h"

#include <string.h>

#define SLOT_BYTES (256u << 10)
#define UNTOUCHED  0xa5

enum fill { FILL_RANDOM, FILL_WHITE, FILL_STRIPES, FILL_EDGES, FILLS };

/* Single rows, columns and pixels; no larger than any side below; prime sizes; multiples of the sides. */
static const uint32_t sizes[][2] = {{1, 1},   {1, 97},  {97, 1},  {2, 1},    {7, 7},   {8, 7},
                                    {14, 21}, {31, 29}, {64, 32}, {101, 53}, {13, 89}, {128, 96}};
static const uint32_t sides[] = {1, 2, 7, 16, 31, 64, 1000};
#define SIZES (sizeof sizes / sizeof *sizes)
#define SIDES (sizeof sides / sizeof *sides)

/* White must stay white; stripes and single bright edges show every weight that is wrong. */
static void fill_pixels(uint8_t *pixels, size_t bytes, enum fill fill)
{
    uint32_t state = RANDOM_START;
    for (size_t i = 0; i < bytes; i++) {
        random_next(&state);
        pixels[i] = fill == FILL_RANDOM    ? (uint8_t)(state >> 9)
                    : fill == FILL_WHITE   ? 255
                    : fill == FILL_STRIPES ? (uint8_t)(0 - (i / 3 & 1))
                                           : (uint8_t)(i % 31 == 0 ? 255 : 0);
    }
}

static void make_parts(struct proof_part *parts)
{
    uint32_t offset = 0;
    for (uint32_t i = 0; i < SIZES; i++) {
        struct part_shape *in = &parts[i].in;
        in->width = in->rect.x1 = sizes[i][0];
        in->height = in->rect.y1 = sizes[i][1];
        in->orientation = (uint8_t)(1 + (i + i / 8) % 8);
        part_set_rgb(in);
        parts[i].in_offset = offset;
        offset += (uint32_t)(in->bytes + 127) / 128 * 128;
    }
    parts[5].given_up = true;
    parts[8].in.height++; /* a part of a picture: gives nothing */
    assert_true(offset <= SLOT_BYTES);
}

static void check_slot(struct ocl_context *context, uint32_t side, enum fill fill)
{
    static uint8_t pixels[SLOT_BYTES], scaled[SLOT_BYTES], wanted[SLOT_BYTES];
    const struct step_node node = {.step = &scale_step, .parameter = side};
    struct proof_part parts[SIZES] = {{.in_offset = 0}};
    struct error err = ERROR_INIT;
    make_parts(parts);
    fill_pixels(pixels, SLOT_BYTES, fill);
    memset(scaled, UNTOUCHED, SLOT_BYTES);
    memset(wanted, UNTOUCHED, SLOT_BYTES);
    if (proof_run(scaled, parts, SIZES, &node, context, pixels, SLOT_BYTES, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(parts[8].out.bytes, 0);
    for (uint32_t i = 0; i < SIZES; i++) {
        const struct proof_part *part = &parts[i];
        const bool swapped = part->in.orientation >= 5;
        if (!part->given_up && part->out.bytes > 0)
            scale_reference(wanted + part->out_offset,
                            swapped ? part->out.height : part->out.width,
                            swapped ? part->out.width : part->out.height,
                            pixels + part->in_offset, part->in.stride, part->in.width,
                            part->in.height, part->in.orientation);
    }
    for (uint32_t i = 0; i < SLOT_BYTES; i++)
        if (scaled[i] != wanted[i])
            fail_msg("side %u, fill %d: byte %u is %u instead of %u", side, fill, i, scaled[i],
                     wanted[i]);
}

static void test_slots_equal_the_reference(void **state)
{
    const struct ocl_devices *devices = *state;
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < devices->count; i++) {
        struct ocl_device device = devices->device[i];
        const bool both = device.non_uniform_groups;
        for (int turn = 0; device.usable && turn < (both ? 2 : 1); turn++) {
            struct ocl_context *context;
            device.non_uniform_groups = both && turn == 0;
            assert_int_equal(ocl_context_open(&context, &device, NULL, &err), STATUS_OK);
            for (unsigned side = test_brief() ? 2 : 0; side < SIDES; side += test_brief() ? 3 : 1)
                for (int fill = 0; fill < (test_brief() ? 1 : FILLS); fill++)
                    check_slot(context, sides[side], (enum fill)fill);
            ocl_context_close(&context);
        }
    }
}

static void test_sizes(void **state)
{
    (void)state;
    static const uint32_t cases[][5] = {
        /* width, height, side: scaled */
        {640, 480, 256, 256, 192},
        {480, 640, 256, 192, 256},
        {256, 256, 256, 256, 256},
        {200, 100, 256, 200, 100},
        {257, 257, 256, 256, 256},
        {1000, 1, 10, 10, 1},
        {3, 2, 2, 2, 1},  /* 4/3 */
        {10, 5, 3, 3, 2}, /* 1.5: halves up */
        {100000, 70000, 65535, 65535, 45875},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t width, height;
        scale_size(&width, &height, cases[i][0], cases[i][1], cases[i][2]);
        assert_int_equal(width, cases[i][3]);
        assert_int_equal(height, cases[i][4]);
    }
}

/* Three pixels to two: the middle one is shared, 2:1 and 1:2 of three thirds. */
static void test_reference_by_hand(void **state)
{
    (void)state;
    const uint8_t row[9] = {0, 255, 10, 90, 255, 20, 30, 255, 31};
    uint8_t scaled[6] = {0};
    scale_reference(scaled, 2, 1, row, 9, 3, 1, 1);
    assert_int_equal(scaled[0], 30); /* (2 * 0 + 90) / 3 */
    assert_int_equal(scaled[1], 255);
    assert_int_equal(scaled[2], 13); /* 40 / 3 = 13.3 */
    assert_int_equal(scaled[3], 50); /* (90 + 2 * 30) / 3 */
    assert_int_equal(scaled[5], 27); /* 82 / 3 = 27.3 */
    const uint8_t two[6] = {0, 1, 2, 1, 2, 255};
    scale_reference(scaled, 1, 1, two, 6, 2, 1, 1);
    assert_int_equal(scaled[0], 1); /* 0.5: up */
    assert_int_equal(scaled[1], 2); /* 1.5: up */
    assert_int_equal(scaled[2], 129);
}

/* The weights are symmetric: a mirrored picture scales to the mirrored one. */
static void test_mirrored(void **state)
{
    (void)state;
    enum { W = 23, H = 11, SW = 7, SH = 4 };
    uint8_t pixels[W * H * 3], mirrored[W * H * 3], scaled[SW * SH * 3], other[SW * SH * 3];
    fill_pixels(pixels, sizeof pixels, FILL_RANDOM);
    for (unsigned i = 0; i < W * H; i++)
        memcpy(mirrored + (size_t)3 * (W * H - 1 - i), pixels + (size_t)3 * i, 3);
    scale_reference(scaled, SW, SH, pixels, W * 3, W, H, 1);
    scale_reference(other, SW, SH, mirrored, W * 3, W, H, 1);
    for (unsigned i = 0; i < SW * SH; i++)
        assert_memory_equal(other + (size_t)3 * (SW * SH - 1 - i), scaled + (size_t)3 * i, 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sizes),
    cmocka_unit_test(test_reference_by_hand),
    cmocka_unit_test(test_mirrored),
    cmocka_unit_test(test_slots_equal_the_reference),
};
TEST_GROUP(scale, test_devices_open, test_devices_close)
