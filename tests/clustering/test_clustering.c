/* test_clustering.c: names that a clustering can have. */
#include "runner.h"

#include "clustering/clustering.h"

#include <string.h>

static void test_names(void **state)
{
    (void)state;
    static const char *const good[] = {"kmeans", "a", "k-7_b.c", "..a"};
    static const struct {
        const char *name, *said;
    } bad[] = {{"a/b", "'a/b' is not a valid name"},
               {"my name", "'my name' is not a valid name"},
               {".", "'.' is not a valid name"},
               {"..", "'..' is not a valid name"},
               {"", "'' is not a valid name"}};
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
    assert_non_null(strstr(err.sentence, "at most 63 characters"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(clustering_check_name(bad[i].name, &err), STATUS_USAGE);
        assert_int_equal(err.remedy, REMEDY_OTHER_NAME);
        if (!strstr(err.sentence, bad[i].said))
            fail_msg("'%s' lacks '%s'", err.sentence, bad[i].said);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names),
};
TEST_GROUP(clustering, NULL, NULL)
