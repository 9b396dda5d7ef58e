/* test_clustering.c: valid names of clusterings, and the default k and number of restarts. */
#include "runner.h"

#include "jobs/clustering.h"

#include <string.h>

static void test_names(void **state)
{
    (void)state;
    static const char *const good[] = {"kmeans", "a", "k-7_b.c", "..a"};
    static const struct {
        const char *name, *said;
    } bad[] = {{"a/b", "'a/b' cannot be the name of a clustering"},
               {"my name", "'my name' cannot be the name of a clustering"},
               {".", "'.' cannot be the name of a clustering"},
               {"..", "'..' cannot be the name of a clustering"},
               {"", "'' cannot be the name of a clustering"}};
    char longest[FEATURE_NAME_MAX + 1];
    struct error err = ERROR_INIT;
    memset(longest, 'n', sizeof longest);
    longest[FEATURE_NAME_MAX - 1] = '\0';
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(clustering_check_name(good[i], &err), STATUS_OK);
    assert_int_equal(clustering_check_name(longest, &err), STATUS_OK);
    longest[FEATURE_NAME_MAX - 1] = 'n';
    longest[FEATURE_NAME_MAX] = '\0';
    assert_int_equal(clustering_check_name(longest, &err), STATUS_USAGE);
    assert_non_null(strstr(err.sentence, "use 1 to 63 letters"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(clustering_check_name(bad[i].name, &err), STATUS_USAGE);
        assert_int_equal(err.remedy, REMEDY_OTHER_NAME);
        if (!strstr(err.sentence, bad[i].said))
            fail_msg("'%s' lacks '%s'", err.sentence, bad[i].said);
    }
}

static void test_default_k(void **state)
{
    (void)state;
    static const struct {
        uint64_t rows;
        uint32_t k;
    } cases[] = {{0, 2},  {1, 2},  {9, 2},   {10, 2},  {14, 2},         {15, 3},
                 {40, 8}, {49, 9}, {50, 10}, {51, 10}, {UINT64_MAX, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(clustering_usual_k(cases[i].rows), cases[i].k);
}

static void test_default_restarts(void **state)
{
    (void)state;
    static const struct {
        uint64_t rows;
        uint32_t dimension;
        struct number_range k;
        uint32_t restarts;
    } cases[] = {{1000, 512, {10, 10, 1}, 10},
                 {419430, 512, {10, 10, 1}, 10}, /* just below 2^31 */
                 {419431, 512, {10, 10, 1}, 1},
                 {1u << 20, 1u << 10, {2, 2, 1}, 10}, /* 2^31 */
                 {1u << 20, 1u << 10, {3, 3, 1}, 1},
                 {10000, 512, {2, 28, 1}, 10}, /* the sum of k is 405 */
                 {10000, 512, {2, 29, 1}, 1},  /* 434 */
                 {10000, 512, {2, 38, 2}, 10}, /* 380 */
                 {10000, 512, {2, 40, 2}, 1},  /* 420 */
                 {UINT64_MAX, UINT32_MAX, {1, INT32_MAX, 1}, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(clustering_usual_restarts(cases[i].rows, cases[i].dimension, &cases[i].k),
                         cases[i].restarts);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_default_k),
    cmocka_unit_test(test_default_restarts),
    cmocka_unit_test(test_names),
};
TEST_GROUP(clustering, NULL, NULL)
