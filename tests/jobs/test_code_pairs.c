/* test_code_pairs.c: the pairs compared with plain C; limits that are lowered; bounds. */
#include "runner.h"

#include "base/random.h"
#include "features/code.h"
#include "jobs/code_pairs.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 1100u /* several blocks and tasks, the last of each incomplete */

static uint8_t codes[COUNT][CODE_BYTES], mask[CODE_BYTES];

/* Random codes; of the later ones, two in three are copies with some bits changed, and some of
 * these are mirrored. */
static void make_codes(void)
{
    uint32_t random = RANDOM_START;
    code_mirror_mask(mask);
    for (uint32_t c = 0; c < COUNT; c++) {
        for (uint32_t i = 0; i < CODE_BYTES; i++) {
            random_next(&random);
            codes[c][i] = (uint8_t)(random >> 9);
        }
        if (c < 40 || c % 3 == 0)
            continue;
        memcpy(codes[c], codes[c % 7 * 5], CODE_BYTES);
        for (uint32_t i = 0; i < CODE_BYTES && c % 2; i++)
            codes[c][i] ^= mask[i];
        for (uint32_t flips = c % 90; flips > 0; flips--) {
            random_next(&random);
            codes[c][random >> 8 & 31] ^= (uint8_t)(1u << (random >> 16 & 7));
        }
    }
}

static uint32_t distance(uint32_t *mirrored, uint32_t a, uint32_t b)
{
    uint32_t straight = 0, turned = 0;
    for (uint32_t i = 0; i < CODE_BYTES; i++) {
        straight += (uint32_t)__builtin_popcount(codes[a][i] ^ codes[b][i]);
        turned += (uint32_t)__builtin_popcount(codes[a][i] ^ codes[b][i] ^ mask[i]);
    }
    *mirrored = turned < straight;
    return *mirrored ? turned : straight;
}

static struct code_pairs find(const struct code_pairs_config *given, unsigned threads)
{
    struct error err = ERROR_INIT;
    struct code_pairs pairs;
    struct code_pairs_config config = *given;
    config.codes = codes[0];
    config.count = COUNT;
    assert_int_equal(workers_open(&config.workers, threads, &err), STATUS_OK);
    if (code_pairs_find(&pairs, &config, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    workers_close(&config.workers);
    return pairs;
}

static void all_pairs_are_found(void **state)
{
    (void)state;
    static const uint32_t limits[] = {0, 24, 90, 128};
    make_codes();
    for (unsigned l = 0; l < 4; l++) {
        const struct code_pairs_config config = {
            .limit = limits[l], .most = UINT64_MAX, .memory = 1u << 30};
        struct code_pairs pairs = find(&config, 3);
        uint64_t at = 0;
        for (uint32_t a = 0; a < COUNT; a++) {
            for (uint32_t b = a + 1; b < COUNT; b++) {
                uint32_t mirrored;
                const uint32_t d = distance(&mirrored, a, b);
                if (d > limits[l])
                    continue;
                assert_true(at < pairs.count);
                const struct code_pair *pair = &pairs.pair[at++];
                if (pair->a != a || pair->b != b || pair->distance != d ||
                    pair->mirrored != mirrored)
                    fail_msg("pair %u, %u", a, b);
            }
        }
        assert_int_equal(at, pairs.count);
        assert_int_equal(pairs.limit, limits[l]);
        code_pairs_clear(&pairs);
    }
}

static void the_limit_is_lowered_the_same_way(void **state)
{
    (void)state;
    make_codes();
    const struct code_pairs_config all = {.limit = 128, .most = UINT64_MAX, .memory = 1u << 30};
    struct code_pairs whole = find(&all, 1);
    for (uint64_t most = 100; most < whole.count; most *= 7) {
        uint64_t least = 0, more = 0;
        const struct code_pairs_config config = {
            .limit = 128, .floor = 3, .most = most, .memory = 1u << 30};
        struct code_pairs one = find(&config, 1), many = find(&config, 4);
        for (uint64_t i = 0; i < whole.count; i++) {
            least += whole.pair[i].distance <= one.limit;
            more += whole.pair[i].distance <= one.limit + 1;
        }
        assert_int_equal(one.count, least);
        assert_true(one.limit == 3 || least <= most);
        assert_true(more > most); /* the limit is not lower than necessary */
        assert_int_equal(one.limit, many.limit);
        assert_int_equal(one.count, many.count);
        assert_memory_equal(one.pair, many.pair, one.count * sizeof *one.pair);
        code_pairs_clear(&one);
        code_pairs_clear(&many);
    }
    code_pairs_clear(&whole);
}

static void too_many_pairs_are_an_error(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct code_pairs pairs;
    struct code_pairs_config config = {
        .codes = codes[0], .count = COUNT, .limit = 128, .floor = 128, .most = 10, .memory = 1000};
    make_codes();
    assert_int_equal(workers_open(&config.workers, 2, &err), STATUS_OK);
    assert_int_equal(code_pairs_find(&pairs, &config, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "--near"));
    assert_null(pairs.pair);
    workers_close(&config.workers);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_pairs_are_found),
    cmocka_unit_test(the_limit_is_lowered_the_same_way),
    cmocka_unit_test(too_many_pairs_are_an_error),
};
TEST_GROUP(code_pairs, NULL, NULL)
