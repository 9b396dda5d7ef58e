/* test_portion.c: shares of lists are contiguous, disjoint and complete, and as equal as the files
 * permit. */
#include "sources/portion.h"
#include "test_walk.h"

#define ITEMS 20000

static struct portion_total total;
static uint64_t weights[ITEMS];
static bool tied[ITEMS];

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void add_item(size_t i, uint64_t bytes, uint64_t share)
{
    char name[32];
    const struct entry entry = {.bytes = bytes, .share = share};
    const int length = snprintf(name, sizeof name, "%zu.jpg", i);
    tied[i] = share == ENTRY_SHARE_REST;
    weights[i] = portion_add(&total, name, (size_t)length, &entry);
}

/* Checks all shares of the list in `weights`; `largest` is the largest weight of a piece. */
static void check_shares(uint64_t largest)
{
    static const uint64_t counts[] = {1, 2, 3, 7, 64, 1000, 20000, SHARDS_MAX};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const uint64_t count = counts[c];
        const double equal = (double)total.weight / (double)count;
        uint64_t before = 0, shard = 0, in_shard = 0;
        for (size_t i = 0; i < ITEMS; i++) {
            const uint64_t here =
                tied[i] ? shard : portion_shard(before, weights[i], total.weight, count);
            assert_true(here >= shard && here < count);
            if (here != shard) {
                const double off = (double)in_shard - equal;
                assert_true(off < 0.05 * equal || off <= (double)largest);
                assert_true(-off < 0.05 * equal || -off <= (double)largest);
                in_shard = 0;
            }
            shard = here;
            in_shard += weights[i];
            before += weights[i];
        }
        assert_int_equal(before, total.weight);
    }
}

static void test_shares_are_equal(void **state)
{
    (void)state;
    uint64_t random = 1, largest = 0;
    portion_begin(&total);
    for (size_t i = 0; i < ITEMS; i++) {
        add_item(i, next_random(&random) % 3000, 0);
        largest = weights[i] > largest ? weights[i] : largest;
    }
    check_shares(largest);
    portion_begin(&total); /* only empty files, which are divided by number */
    for (size_t i = 0; i < ITEMS; i++)
        add_item(i, 0, 0);
    check_shares(1);
    portion_begin(&total); /* compressed archives of 100 members */
    for (size_t i = 0; i < ITEMS; i++)
        add_item(i, 1 << 20, i % 100 == 0 ? 123456 : ENTRY_SHARE_REST);
    check_shares(123456);
    portion_begin(&total); /* sizes that a damaged list may claim */
    for (size_t i = 0; i < ITEMS; i++)
        add_item(i, UINT64_MAX, 0);
    check_shares(weights[0]);
}

static void test_digest_is_of_names_and_sizes(void **state)
{
    (void)state;
    char digest[4][33];
    for (int i = 0; i < 4; i++) {
        portion_begin(&total);
        add_item(0, 5, 0);
        add_item(i == 1 ? 2 : 1, i == 2 ? 8 : 7, 0);
        portion_digest(digest[i], &total);
        assert_int_equal(strlen(digest[i]), 32);
    }
    assert_string_equal(digest[0], digest[3]);
    assert_string_not_equal(digest[0], digest[1]);
    assert_string_not_equal(digest[0], digest[2]);
}

/* Returns the paths of a share, one per line. */
static void walk_shard(char text[4096], uint64_t index, uint64_t count, struct list_share *share)
{
    static const char *const sources[] = {"t", "more"};
    struct walk_config config = {.options = {.sources = sources,
                                             .source_count = 2,
                                             .shard_index = index,
                                             .shard_count = count},
                                 .spool_directory = "spool",
                                 .promises_image = format_promised};
    struct walk *walk = open_walk(&config);
    struct walk_item item;
    uint64_t found = 0, bytes = 0;
    *share = *walk_share(walk);
    for (int round = 0; round < 2; round++) {
        text[0] = 0;
        found = bytes = 0;
        while (walk_next(walk, &item, NULL) == STATUS_OK) {
            assert_int_equal(item.sequence, found++);
            bytes += item.entry.bytes;
            snprintf(text + strlen(text), 4096 - strlen(text), "%s\n", item.path);
        }
        assert_int_equal(walk_rewind(walk, NULL), STATUS_OK);
    }
    assert_int_equal(found, walk_count(walk));
    assert_int_equal(bytes, walk_bytes(walk));
    assert_int_equal(found, share->last - share->first);
    walk_close(&walk);
}

static void test_shares_make_up_the_whole(void **state)
{
    (void)state;
    char whole[4096], part[4096], all[4096], name[64];
    struct list_share none, share;
    put_directory("t");
    put_directory("more");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "%s/%d.%s", i < 30 ? "t" : "more", i / 3,
                 i % 3 == 0   ? "cls"
                 : i % 3 == 1 ? "jpg"
                              : "txt");
        put_file(name, "0123456789");
    }
    walk_shard(whole, 0, 1, &none);
    for (uint64_t count = 1; count < 50; count += 5) {
        uint64_t position = 0;
        all[0] = 0;
        for (uint64_t i = 0; i < count; i++) {
            walk_shard(part, i, count, &share);
            assert_int_equal(share.first, position);
            position = share.last;
            assert_int_equal(share.list_count, 40);
            assert_string_equal(share.list_digest, none.list_digest);
            strcat(all, part);
            /* The files of a sample stay together. */
            assert_true(!*part || strstr(part, ".cls\n") == strchr(part, '.'));
        }
        assert_int_equal(position, 40);
        assert_string_equal(all, whole);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_shares_are_equal),
    cmocka_unit_test(test_digest_is_of_names_and_sizes),
    cmocka_unit_test_setup_teardown(test_shares_make_up_the_whole, scratch_setup, scratch_teardown),
};

TEST_GROUP(portion, NULL, NULL)
