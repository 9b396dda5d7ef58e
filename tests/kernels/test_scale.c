/* test_scale.c: the kernel for scaling compared with plain C on all devices, with exact and
 * rounded-up ranges; and plain C compared with values computed by hand. Run it under Oclgrind,
 * too. */
#include "runner.h"
#include "test_devices.h"

#include "base/random.h"
#include "device/plan.h"
#include "device/proof.h"

#include <string.h>

#define SLOT_BYTES (256u << 10)
#define UNTOUCHED  0xa5

enum fill { FILL_RANDOM, FILL_WHITE, FILL_STRIPES, FILL_EDGES, FILLS };

/* Single rows, columns and pixels; sizes below all goals; prime sizes; multiples of the goals. */
static const uint32_t sizes[][2] = {{1, 1},   {1, 97},  {97, 1},  {2, 1},    {7, 7},   {8, 7},
                                    {14, 21}, {31, 29}, {64, 32}, {101, 53}, {13, 89}, {128, 96}};
#define SIZES (sizeof sizes / sizeof *sizes)
#define GOALS 12u

static scale_goal goal_of(unsigned i)
{
    const scale_goal goals[GOALS] = {1,
                                     2,
                                     7,
                                     scale_to(33, 20, 0),
                                     16,
                                     scale_to(16, 16, 875),
                                     scale_to(32, 32, 0),
                                     31,
                                     scale_to(1, 1, 1000),
                                     64,
                                     scale_to(9, 40, 500),
                                     1000};
    return goals[i];
}

/* White must stay white; stripes and single bright samples reveal wrong weights. */
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
    parts[8].in.height++; /* part of a picture: produces no image */
    assert_true(offset <= SLOT_BYTES);
}

static void check_slot(struct ocl_context *context, scale_goal goal, enum fill fill)
{
    static uint8_t pixels[SLOT_BYTES], scaled[SLOT_BYTES], wanted[SLOT_BYTES];
    const struct step_node node = {.step = &scale_step, .parameter = goal};
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
        const struct scale_window window =
            scale_window(part->in.width, part->in.height, part->in.orientation, goal);
        if (!part->given_up && part->out.bytes > 0)
            scale_reference(wanted + part->out_offset, &window, pixels + part->in_offset,
                            part->in.stride, part->in.width, part->in.height, part->in.orientation);
    }
    for (uint32_t i = 0; i < SLOT_BYTES; i++)
        if (scaled[i] != wanted[i])
            fail_msg("goal %llx, fill %d: byte %u is %u instead of %u", (unsigned long long)goal,
                     fill, i, scaled[i], wanted[i]);
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
            for (unsigned goal = test_brief() ? 2 : 0; goal < GOALS; goal += test_brief() ? 3 : 1)
                for (int fill = 0; fill < (test_brief() ? 1 : FILLS); fill++)
                    check_slot(context, goal_of(goal), (enum fill)fill);
            ocl_context_close(&context);
        }
    }
}

static void test_sizes(void **state)
{
    (void)state;
    static const uint32_t cases[][5] = {
        /* width, height, side, scaled width and height */
        {640, 480, 256, 256, 192},
        {480, 640, 256, 192, 256},
        {256, 256, 256, 256, 256},
        {200, 100, 256, 200, 100},
        {257, 257, 256, 256, 256},
        {1000, 1, 10, 10, 1},
        {3, 2, 2, 2, 1},  /* 4/3 */
        {10, 5, 3, 3, 2}, /* 1.5: rounded up */
        {100000, 70000, 65535, 65535, 45875},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct scale_window window = scale_window(cases[i][0], cases[i][1], 6, cases[i][2]);
        assert_int_equal(window.width, cases[i][3]);
        assert_int_equal(window.height, cases[i][4]);
        assert_int_equal(window.full_width, cases[i][3]);
        assert_int_equal(window.left, 0);
    }
}

static void check_window(uint32_t width, uint32_t height, uint8_t orientation, scale_goal goal,
                         const uint32_t wanted[4])
{
    const struct scale_window window = scale_window(width, height, orientation, goal);
    assert_int_equal(window.full_width, wanted[0]);
    assert_int_equal(window.full_height, wanted[1]);
    assert_int_equal(window.left, wanted[2]);
    assert_int_equal(window.top, wanted[3]);
}

/* Goals are upright; windows are centred, and their images are large enough and limited in size. */
static void test_windows(void **state)
{
    (void)state;
    check_window(100, 50, 1, scale_to(10, 10, 800), (uint32_t[]){26, 14, 8, 2});
    check_window(100, 50, 6, scale_to(20, 10, 0), (uint32_t[]){10, 20, 0, 0});
    check_window(640, 480, 1, scale_to(224, 224, 875), (uint32_t[]){342, 256, 59, 16});
    check_window(480, 640, 8, scale_to(224, 224, 875), (uint32_t[]){256, 342, 16, 59});
    check_window(1, 1, 1, scale_to(224, 224, 875), (uint32_t[]){256, 256, 16, 16});
    check_window(224, 448, 1, scale_to(224, 224, 1000), (uint32_t[]){224, 448, 0, 112});
    check_window(1, UINT32_MAX, 1, scale_to(224, 224, 875),
                 (uint32_t[]){256, SCALE_FULL_MAX, 16, SCALE_FULL_MAX / 2 - 112});
}

/* Three pixels to two: the middle pixel is shared, with weights 2:1 and 1:2. */
static void test_reference_by_hand(void **state)
{
    (void)state;
    const uint8_t row[9] = {0, 255, 10, 90, 255, 20, 30, 255, 31};
    uint8_t scaled[6] = {0};
    scale_reference(scaled, &(struct scale_window){2, 1, 0, 0, 2, 1}, row, 9, 3, 1, 1);
    assert_int_equal(scaled[0], 30); /* (2 * 0 + 90) / 3 */
    assert_int_equal(scaled[1], 255);
    assert_int_equal(scaled[2], 13); /* 40 / 3 = 13.3 */
    assert_int_equal(scaled[3], 50); /* (90 + 2 * 30) / 3 */
    assert_int_equal(scaled[5], 27); /* 82 / 3 = 27.3 */
    const uint8_t two[6] = {0, 1, 2, 1, 2, 255};
    scale_reference(scaled, &(struct scale_window){1, 1, 0, 0, 1, 1}, two, 6, 2, 1, 1);
    assert_int_equal(scaled[0], 1); /* 0.5: rounded up */
    assert_int_equal(scaled[1], 2); /* 1.5: rounded up */
    assert_int_equal(scaled[2], 129);
    /* Two pixels to four: at 0, 1/4, 3/4 and 1 of the distance between them. */
    const uint8_t pair[6] = {0, 10, 255, 255, 10, 0};
    static const uint8_t four[12] = {0, 10, 255, 64, 10, 191, 191, 10, 64, 255, 10, 0};
    uint8_t grown[12];
    scale_reference(grown, &(struct scale_window){4, 1, 0, 0, 4, 1}, pair, 6, 2, 1, 1);
    assert_memory_equal(grown, four, 12);
    scale_reference(grown, &(struct scale_window){4, 1, 1, 0, 2, 1}, pair, 6, 2, 1, 1);
    assert_memory_equal(grown, four + 3, 6);
}

/* The weights are symmetric: scaling a mirrored picture gives the mirrored result. */
static void test_mirrored(void **state)
{
    (void)state;
    enum { W = 23, H = 11, SW = 7, SH = 4 };
    uint8_t pixels[W * H * 3], mirrored[W * H * 3], scaled[SW * SH * 3], other[SW * SH * 3];
    fill_pixels(pixels, sizeof pixels, FILL_RANDOM);
    for (unsigned i = 0; i < W * H; i++)
        memcpy(mirrored + (size_t)3 * (W * H - 1 - i), pixels + (size_t)3 * i, 3);
    const scale_goal goals[] = {scale_to(SW, SH, 0), scale_to(SH, SW, 500), scale_to(2, 14, 0)};
    for (unsigned g = 0; g < 3; g++) {
        const struct scale_window window = scale_window(W, H, 1, goals[g]);
        scale_reference(scaled, &window, pixels, W * 3, W, H, 1);
        scale_reference(other, &window, mirrored, W * 3, W, H, 1);
        for (unsigned i = 0; i < SW * SH; i++)
            assert_memory_equal(other + (size_t)3 * (SW * SH - 1 - i), scaled + (size_t)3 * i, 3);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sizes),
    cmocka_unit_test(test_windows),
    cmocka_unit_test(test_reference_by_hand),
    cmocka_unit_test(test_mirrored),
    cmocka_unit_test(test_slots_equal_the_reference),
};
TEST_GROUP(scale, test_devices_open, test_devices_close)
