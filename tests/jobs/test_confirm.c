/* test_confirm.c: comparing only some pairs gives the same stars as comparing all. Row numbers
 * replace pictures here, so the source is compiled again with other names for the functions that it
 * calls. */
#include "runner.h"

#include "base/random.h"
#define redecode_read     read_rows
#define alignment_compare compare_rows
#define confirm_pairs     confirm_rows
#include "jobs/confirm.c"

#include <stdlib.h>
#include <string.h>

#define CLASSES 1500u
#define PAIRS   12000u

static struct code_pair pair[PAIRS];
static bool certain[PAIRS];
static uint32_t rank[CLASSES], row[CLASSES], pair_count, agreeing;
static uint64_t decoded, compared, shown;
static bool early; /* comparisons stop before blocks are judged */

static void count_shown(void *context, const char *phase, uint64_t done, uint64_t total)
{
    (void)context, (void)phase;
    assert_true(done >= shown && done <= total);
    shown = done;
}

/* The picture of row r is r; the pictures of rows divisible by 251 are gone. */
enum status redecode_read(struct reopen *reopen, struct stop *stop, const uint64_t *rows,
                          uint64_t count, struct alignment_plane *const *planes,
                          uint64_t (*digests)[2], struct error *err)
{
    (void)reopen, (void)stop, (void)digests, (void)err;
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t picture = (uint32_t)rows[i];
        planes[i]->width = picture % 251 != 0;
        memcpy(planes[i]->pixel, &picture, sizeof picture);
    }
    decoded += count;
    return STATUS_OK;
}

static bool agree(uint32_t a, uint32_t b)
{
    return (a ^ b) * 2654435761u >> 16 < agreeing;
}

struct alignment alignment_compare(const struct alignment_plane *a, const struct alignment_plane *b,
                                   bool mirrored, struct alignment_scratch *scratch)
{
    uint32_t i, j;
    (void)mirrored;
    scratch->a[0] = 1; /* no other thread may use this scratch memory */
    memcpy(&i, a->pixel, sizeof i);
    memcpy(&j, b->pixel, sizeof j);
    __atomic_fetch_add(&compared, 1, __ATOMIC_RELAXED);
    return (struct alignment){.same = agree(i, j), .overlap = early ? 0 : 1};
}

/* Makes families of up to `family` classes, all of which are pairs of each other, and random pairs;
 * with `chain`, each class is also a pair of the next in rank. */
static void make_pairs(uint32_t family, bool chain)
{
    uint32_t random = RANDOM_START, by_rank[CLASSES];
    for (uint32_t c = 0; c < CLASSES; c++) {
        rank[c] = c;
        row[c] = CLASSES + 7 * c;
    }
    for (uint32_t c = CLASSES - 1; c > 0; c--) {
        random_next(&random);
        const uint32_t other = (random >> 8) % (c + 1), held = rank[c];
        rank[c] = rank[other];
        rank[other] = held;
    }
    for (uint32_t c = 0; c < CLASSES; c++)
        by_rank[rank[c]] = c;
    pair_count = 0;
    for (uint32_t i = 0; i < CLASSES && pair_count + family + 2 < PAIRS; i++) {
        const uint32_t a = by_rank[i];
        for (uint32_t b = a + 1; b < CLASSES && b / family == a / family; b++)
            pair[pair_count++] = (struct code_pair){.a = a, .b = b};
        random_next(&random);
        const uint32_t b = chain && i + 1 < CLASSES ? by_rank[i + 1] : (random >> 8) % CLASSES;
        if (a != b && a / family != b / family)
            pair[pair_count++] = (struct code_pair){.a = a < b ? a : b, .b = a < b ? b : a};
    }
    for (uint32_t i = 0; i < pair_count; i++) {
        random_next(&random);
        certain[i] = random >> 8 & 1 && pair[i].a / family == pair[i].b / family;
    }
}

/* Computes the reference of each class, which is the class itself if it has none. */
static void make_stars(uint32_t *star, const bool *linked)
{
    uint32_t by_rank[CLASSES];
    for (uint32_t c = 0; c < CLASSES; c++) {
        by_rank[rank[c]] = c;
        star[c] = NONE;
    }
    for (uint32_t i = 0; i < CLASSES; i++) {
        const uint32_t reference = by_rank[i];
        if (star[reference] != NONE)
            continue;
        star[reference] = reference;
        for (uint32_t p = 0; p < pair_count; p++) {
            const uint32_t a = pair[p].a, b = pair[p].b;
            if (linked[p] && (a == reference || b == reference)) {
                const uint32_t other = a == reference ? b : a;
                star[other] = star[other] == NONE ? reference : star[other];
            }
        }
    }
}

/* Returns the number of pairs that were compared. */
static uint64_t check(uint32_t slots, unsigned threads)
{
    static bool linked[PAIRS], all[PAIRS];
    uint32_t star[CLASSES], expected[CLASSES];
    struct error err = ERROR_INIT;
    uint64_t unknown = 0;
    const struct code_pairs pairs = {.pair = pair, .count = pair_count};
    struct confirm_config config = {.pairs = &pairs,
                                    .rank = rank,
                                    .row = row,
                                    .classes = CLASSES,
                                    .watch = {.show = count_shown},
                                    .memory = slots * sizeof(struct alignment_plane)};
    for (uint32_t p = 0; p < pair_count; p++) {
        const uint32_t a = row[pair[p].a], b = row[pair[p].b];
        linked[p] = certain[p];
        all[p] = certain[p] || (a % 251 && b % 251 && agree(a, b));
    }
    decoded = compared = shown = 0;
    assert_int_equal(workers_open(&config.workers, threads, &err), STATUS_OK);
    assert_int_equal(confirm_pairs(linked, &unknown, &config, &err), STATUS_OK);
    workers_close(&config.workers);
    assert_int_equal(shown, pair_count);
    for (uint32_t p = 0; p < pair_count; p++)
        assert_true(linked[p] == certain[p] || all[p]);
    make_stars(star, linked);
    make_stars(expected, all);
    assert_memory_equal(star, expected, sizeof star);
    assert_true(compared + unknown <= pair_count);
    return compared;
}

static void stars_equal_those_of_all_pairs(void **state)
{
    (void)state;
    for (uint32_t family = 1; family <= 10; family += 9) {
        for (int chain = 0; chain < 2; chain++) {
            make_pairs(family, chain);
            for (agreeing = 0; agreeing <= 65536; agreeing += 32768) {
                const uint64_t roomy = check(CLASSES, 1);
                /* No picture is decoded twice. */
                assert_true(decoded <= CLASSES);
                assert_int_equal(check(64, 3), roomy);
            }
        }
    }
}

static void pairs_of_copies_are_not_compared(void **state)
{
    (void)state;
    make_pairs(10, false);
    agreeing = 65536;
    /* Half of the pairs within families are certain; most of the others connect two copies. */
    assert_in_range(check(CLASSES, 1), 1, pair_count / 2);
}

/* A hundred classes are all pairs of each other and none are copies: each is compared with at most
 * MOST_FAILED of the earlier ones and with the MOST_FAILED that have the closest codes. If
 * comparisons stop early, JUDGED times as many are made, which here means all. */
static void repeated_failures_limit_comparisons(void **state)
{
    static bool linked[PAIRS];
    struct error err = ERROR_INIT;
    uint64_t unknown = 0, most = 0;
    (void)state;
    pair_count = 0;
    for (uint32_t b = 0; b < 100; b++) {
        rank[b] = b;
        row[b] = 251 * 1000 + 1 + b;
        for (uint32_t a = 0; a < b; a++)
            pair[pair_count++] =
                (struct code_pair){.a = a, .b = b, .distance = (uint16_t)(100 - a)};
        most += b < 2 * MOST_FAILED ? b : 2 * MOST_FAILED;
    }
    const struct code_pairs pairs = {.pair = pair, .count = pair_count};
    struct confirm_config config = {
        .pairs = &pairs, .rank = rank, .row = row, .classes = 100, .memory = 1 << 28};
    agreeing = 0;
    compared = 0;
    assert_int_equal(workers_open(&config.workers, 2, &err), STATUS_OK);
    assert_int_equal(confirm_pairs(linked, &unknown, &config, &err), STATUS_OK);
    assert_in_range(compared, 100 * MOST_FAILED / 2, most);
    compared = 0;
    early = true;
    assert_int_equal(confirm_pairs(linked, &unknown, &config, &err), STATUS_OK);
    early = false;
    assert_int_equal(compared, pair_count);
    workers_close(&config.workers);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(stars_equal_those_of_all_pairs),
    cmocka_unit_test(pairs_of_copies_are_not_compared),
    cmocka_unit_test(repeated_failures_limit_comparisons),
};
TEST_GROUP(confirm, NULL, NULL)
