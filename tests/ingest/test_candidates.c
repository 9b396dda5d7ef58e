/* test_candidates.c: codebooks are learned from the documented choice of files, in the documented
 * order. */
#include "../sources/test_walk.h"

#include "base/hash.h"
#include "ingest/candidates.h"

static const char *const here[] = {"tree"};

enum { FILES = 40, PROMISED = 30 };

static void choose(struct candidates *out, uint32_t most)
{
    const struct walk_config config = config_for(here);
    struct stop stop = {0};
    struct error err = ERROR_INIT;
    struct walk *walk = open_walk(&config);
    assert_int_equal(candidates_choose(out, walk, most, &stop, &err), STATUS_OK);
    assert_int_equal(item_at(walk, 0).sequence, 0); /* the walk was rewound */
    walk_close(&walk);
}

static uint64_t hash_of(const char *path)
{
    uint64_t digest[2];
    murmur3_of(digest, path, strlen(path));
    return digest[0];
}

static void the_first_by_name_and_hash(void **state)
{
    (void)state;
    struct candidates all, some;
    char name[32];
    put_directory("tree");
    put_file("tree/empty.jpg", "");
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "tree/%d%s", i, i < PROMISED ? ".jpg" : "");
        put_file(name, "content");
    }
    choose(&all, FILES + 5);
    assert_int_equal(all.count, FILES);
    for (uint32_t i = 0; i < FILES; i++) {
        assert_int_equal(all.item[i].unpromised, i >= PROMISED);
        assert_int_equal(all.item[i].hash, hash_of(all.item[i].path));
        if (i != 0 && i != PROMISED)
            assert_true(all.item[i - 1].hash < all.item[i].hash);
    }
    for (uint32_t most = 1; most <= FILES; most++) {
        choose(&some, most);
        assert_int_equal(some.count, most);
        for (uint32_t i = 0; i < most; i++) {
            assert_string_equal(some.item[i].path, all.item[i].path);
            assert_int_equal(some.item[i].sequence, all.item[i].sequence);
        }
        candidates_clear(&some);
    }
    candidates_clear(&all);
}

static void a_stop_interrupts_the_choice(void **state)
{
    (void)state;
    put_directory("tree");
    put_file("tree/a.jpg", "content");
    const struct walk_config config = config_for(here);
    struct stop stop = {0};
    struct error err = ERROR_INIT;
    struct candidates chosen;
    struct walk *walk = open_walk(&config);
    stop_request(&stop, STOP_SIGNAL);
    assert_int_equal(candidates_choose(&chosen, walk, 1, &stop, &err), STATUS_INTERRUPTED);
    candidates_clear(&chosen);
    walk_close(&walk);
}

static const struct CMUnitTest tests[] = {walk_test(the_first_by_name_and_hash),
                                          walk_test(a_stop_interrupts_the_choice)};
TEST_GROUP(candidates, NULL, NULL)
