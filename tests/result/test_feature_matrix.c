/* test_feature_matrix.c: the names of single and joined features, and their rows. */
#include "runner.h"

#include "result/choose.h"
#include "result/feature_matrix.h"
#include "test_clusters_common.h"

static void test_one_feature(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct result *result;
    struct matrix_source rows;
    struct result_feature about;
    float whole[24], alone[24];
    char hex[65], wanted[65];
    ingest(f, ITEMS, &summary);
    assert_ok(result_open(&result, f->output, &error));
    const struct result_feature *feature = result_feature_find(result, "rgb_8");
    assert_ok(feature_matrix_open(&rows, &about, result, "rgb_8", &error));
    assert_int_equal(rows.rows, feature->rows);
    assert_int_equal(rows.dimension, 24);
    assert_string_equal(about.name, "rgb_8");
    assert_string_equal(about.normalize, "l1");
    assert_string_equal(about.spec, feature->spec);
    assert_ok(matrix_read(&rows, 7, 1, whole, &error));
    assert_ok(read_feature(result, feature, 7, 1, alone, &error));
    assert_memory_equal(whole, alone, sizeof whole);
    assert_ok(rows.identity(rows.context, hex, &error));
    assert_ok(result_feature_identity(result, feature, wanted, &error));
    assert_string_equal(hex, wanted);
    matrix_close(&rows);
    /* The file has three features, so one must be chosen. */
    assert_int_equal(feature_matrix_open(&rows, &about, result, NULL, &error), STATUS_USAGE);
    assert_int_equal(error.remedy, REMEDY_CHOOSE_FEATURE);
    assert_non_null(strstr(error.sentence, "several features: gray_16, joint, rgb_8"));
    assert_int_equal(feature_matrix_open(&rows, &about, result, "rgb", &error), STATUS_USAGE);
    assert_non_null(strstr(error.sentence, "no feature 'rgb', only gray_16, joint, rgb_8"));
    result_close(&result);
}

static void test_joined_features(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct result *result;
    struct matrix_source rows;
    struct result_feature about;
    float whole[24 + 16], first[24], second[16];
    ingest(f, ITEMS, &summary);
    assert_ok(result_open(&result, f->output, &error));
    assert_ok(feature_matrix_open(&rows, &about, result, "rgb_8:0.50+gray_16:1", &error));
    assert_string_equal(about.name, "rgb_8:0.5+gray_16");
    assert_string_equal(about.kind, "joined");
    assert_string_equal(about.normalize, ""); /* one part has l1, the other none */
    assert_int_equal(about.dimension, 24 + 16);
    assert_true(about.is_float);
    assert_ok(matrix_read(&rows, 5, 1, whole, &error));
    assert_ok(read_feature(result, result_feature_find(result, "rgb_8"), 5, 1, first, &error));
    assert_ok(read_feature(result, result_feature_find(result, "gray_16"), 5, 1, second, &error));
    for (int i = 0; i < 24; i++)
        assert_true(whole[i] == first[i] / 2);
    assert_memory_equal(whole + 24, second, sizeof second);
    matrix_close(&rows);
    static const struct {
        const char *name, *said;
    } wrong[] = {
        {"rgb_8+", "holds no feature ''"},
        {"rgb_8+absent:2", "holds no feature 'absent'"},
        {"rgb_8:1+joint+rgb_8:2", "rgb_8 is joined with itself"},
        {"rgb_8:0", "'0' is not a valid weight for feature rgb_8"},
        {"rgb_8:2e6", "'2e6' is not a valid weight for feature rgb_8"},
        {"rgb_8:", "'' is not a valid weight for feature rgb_8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(feature_matrix_open(&rows, &about, result, wrong[i].name, &error),
                         STATUS_USAGE);
        if (!strstr(error.sentence, wrong[i].said))
            fail_msg("'%s' lacks '%s'", error.sentence, wrong[i].said);
        assert_null(rows.context);
    }
    result_close(&result);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_one_feature, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_joined_features, fixture_open, fixture_close),
};
TEST_GROUP(feature_matrix, NULL, NULL)
