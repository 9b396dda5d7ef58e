/* test_code.c: the kernel for words of perceptual codes compared with plain C on all devices:
 * orientations, overlapping strips, pieces of rows, and a part that was given up. Run it under
 * Oclgrind, too. */
#include "runner.h"
#include "test_devices.h"

#include "base/random.h"
#include "device/plan.h"
#include "device/proof.h"
#include "features/code.h"

#include <stdlib.h>
#include <string.h>

#define PARTS 12u
#define BYTES (256u << 10)

static void check(struct ocl_context *context)
{
    static uint8_t pixels[BYTES];
    static uint32_t got[BYTES / 4], want[PARTS * CODE_WORDS];
    static const struct step_node node = {.step = &code_step};
    /* Rectangles of images of various sizes, some of which overlap. */
    static const struct {
        uint32_t width, height;
        struct cell_rect rect;
        uint32_t overlap;
        uint8_t orientation;
    } cases[PARTS] = {
        {131, 97, {0, 0, 131, 97}, 0, 1},    {131, 97, {0, 0, 131, 42}, 2, 1},
        {131, 97, {0, 40, 131, 97}, 2, 1},   {131, 97, {0, 0, 131, 97}, 0, 6},
        {131, 97, {0, 10, 131, 11}, 0, 8},   {131, 97, {30, 10, 80, 11}, 0, 5},
        {300, 7, {0, 0, 300, 7}, 0, 3},      {1, 1, {0, 0, 1, 1}, 0, 7},
        {2, 300, {0, 0, 2, 300}, 0, 2},      {131, 97, {0, 0, 131, 97}, 0, 4},
        {131, 97, {100, 10, 131, 11}, 0, 1}, {64, 128, {0, 0, 64, 128}, 0, 1},
    };
    struct proof_part parts[PARTS] = {{.in_offset = 0}};
    struct error err = ERROR_INIT;
    uint32_t offset = 0, random = RANDOM_START;
    memset(got, 0, sizeof got);
    memset(want, 0, sizeof want);
    for (size_t i = 0; i < BYTES; i++) {
        random_next(&random);
        pixels[i] = (uint8_t)(random >> 9);
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        struct part_shape *in = &parts[i].in;
        in->width = cases[i].width;
        in->height = cases[i].height;
        in->rect = cases[i].rect;
        in->overlap = cases[i].overlap;
        in->orientation = cases[i].orientation;
        part_set_rgb(in);
        parts[i].in_offset = offset;
        parts[i].values = i * CODE_WORDS;
        parts[i].given_up = i == 9;
        offset += (uint32_t)in->bytes + i; /* gives all alignments */
        if (i != 9)
            code_count_reference(want + i * CODE_WORDS, pixels + parts[i].in_offset, in->stride,
                                 part_own(in), in->width, in->height, in->orientation);
    }
    assert_true(offset <= BYTES && sizeof want <= BYTES);
    if (proof_run((uint8_t *)got, parts, PARTS, &node, context, pixels, BYTES, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    for (uint32_t i = 0; i < PARTS * CODE_WORDS; i++)
        if (got[i] != want[i])
            fail_msg("part %u, word %u: %u instead of %u", i / CODE_WORDS, i % CODE_WORDS, got[i],
                     want[i]);
}

static void words_equal_the_reference(void **state)
{
    const struct ocl_devices *devices = *state;
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < devices->count; i++) {
        struct ocl_device device = devices->device[i];
        if (!device.usable)
            continue;
        for (int turn = 0; turn < (device.non_uniform_groups ? 2 : 1); turn++) {
            struct ocl_context *context;
            device.non_uniform_groups = device.non_uniform_groups && turn == 0;
            assert_int_equal(ocl_context_open(&context, &device, NULL, &err), STATUS_OK);
            check(context);
            ocl_context_close(&context);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(words_equal_the_reference),
};
TEST_GROUP(code, test_devices_open, test_devices_close)
