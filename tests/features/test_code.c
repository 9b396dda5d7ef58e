/* test_code.c: perceptual codes: the fast transform compared with the sums of the definition, the
 * mask for mirroring, and sums of the parts' words compared with those of the whole. */
#include "runner.h"

#include "base/random.h"
#include "features/code.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* The definition, computed with 64-bit integers. */
static void define(uint8_t code[CODE_BYTES], const uint32_t *words)
{
    uint32_t bit = 0;
    memset(code, 0, CODE_BYTES);
    for (uint32_t sum = 1; bit < CODE_BITS; sum++) {
        for (uint32_t u = 0; u <= sum && bit < CODE_BITS; u++, bit++) {
            int64_t total = 0;
            for (uint32_t i = 0; i < CODE_WORDS; i++) {
                const double down = cos(PI * (2.0 * (i / CODE_CELLS) + 1) * u / 64);
                const double across = cos(PI * (2.0 * (i % CODE_CELLS) + 1) * (sum - u) / 64);
                total += (int64_t)floor(1024 * down + 0.5) * (int64_t)floor(1024 * across + 0.5) *
                         (int64_t)(words[i] >> CODE_SHIFT);
            }
            code[bit / 8] |= (uint8_t)((total > 0) << (7 - bit % 8));
        }
    }
}

static void codes_follow_the_definition(void **state)
{
    (void)state;
    uint32_t words[CODE_WORDS], random = RANDOM_START;
    uint8_t got[CODE_BYTES], want[CODE_BYTES];
    for (int turn = 0; turn < 5; turn++) {
        for (uint32_t i = 0; i < CODE_WORDS; i++) {
            random_next(&random);
            words[i] = turn == 0 ? 0 : turn == 1 ? 522240 : turn == 2 ? i * 500 : random % 522241;
        }
        code_finish(got, words);
        define(want, words);
        assert_memory_equal(got, want, CODE_BYTES);
    }
}

static void mirroring_inverts_the_mask(void **state)
{
    (void)state;
    uint32_t words[CODE_WORDS], turned[CODE_WORDS], random = RANDOM_START, differ = 0;
    uint8_t code[CODE_BYTES], mirrored[CODE_BYTES], mask[CODE_BYTES];
    for (uint32_t i = 0; i < CODE_WORDS; i++) {
        random_next(&random);
        words[i] = turned[i / CODE_CELLS * CODE_CELLS + CODE_CELLS - 1 - i % CODE_CELLS] =
            random % 522241;
    }
    code_finish(code, words);
    code_finish(mirrored, turned);
    code_mirror_mask(mask);
    for (uint32_t i = 0; i < CODE_BYTES; i++)
        differ += (code[i] ^ mask[i]) != mirrored[i];
    assert_int_equal(differ, 0);
}

/* Strips, one of them in two pieces, in all orientations; rotating an image does not change its
 * code. */
static void parts_add_up(void **state)
{
    (void)state;
    enum { WIDTH = 150, HEIGHT = 90 };
    static uint8_t pixels[HEIGHT][WIDTH][3];
    static const struct cell_rect parts[] = {
        {0, 0, WIDTH, 31}, {0, 31, 60, 33}, {60, 31, WIDTH, 33}, {0, 33, WIDTH, HEIGHT}};
    uint32_t random = RANDOM_START;
    for (size_t i = 0; i < sizeof pixels; i++) {
        random_next(&random);
        ((uint8_t *)pixels)[i] = (uint8_t)(random >> 9);
    }
    for (uint8_t orientation = 1; orientation <= 8; orientation++) {
        uint32_t whole[CODE_WORDS] = {0}, sum[CODE_WORDS] = {0};
        uint64_t total = 0;
        code_count_reference(whole, pixels[0][0], sizeof pixels[0],
                             (struct cell_rect){0, 0, WIDTH, HEIGHT}, WIDTH, HEIGHT, orientation);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            code_count_reference(sum, pixels[parts[i].y0][parts[i].x0], sizeof pixels[0], parts[i],
                                 WIDTH, HEIGHT, orientation);
        assert_memory_equal(sum, whole, sizeof sum);
        for (uint32_t i = 0; i < CODE_WORDS; i++)
            total += whole[i];
        assert_true(total > 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(codes_follow_the_definition),
    cmocka_unit_test(mirroring_inverts_the_mask),
    cmocka_unit_test(parts_add_up),
};
TEST_GROUP(code, NULL, NULL)
