/* test_foreign.c: objects that others add to a file are found, kept and copied, and do no harm. */
#include "result/defined.h"
#include "result/foreign.h"
#include "test_store_common.h"
#include <hdf5_hl.h>

#define ITEMS 30

static void put_text_attribute(hid_t file, const char *object, const char *name, const char *text)
{
    assert_true(H5LTset_attribute_string(file, object, name, text) >= 0);
}

static void put_dataset(hid_t file, const char *name, hsize_t length, const char *scale)
{
    double values[4] = {1, 2, 3, 4};
    assert_true(length <= 4);
    assert_true(H5LTmake_dataset_double(file, name, 1, &length, values) >= 0);
    if (!scale)
        return;
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), axis = H5Dopen2(file, scale, H5P_DEFAULT);
    assert_true(H5DSattach_scale(dataset, axis, 0) >= 0);
    H5Dclose(axis);
    H5Dclose(dataset);
}

/* Adds one of each kind of object that users may add. */
static void add_foreign(const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file > 0);
    H5Gclose(H5Gcreate2(file, "notes", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "notes/deep", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    put_dataset(file, "my_axis", 3, NULL);
    hid_t scale = H5Dopen2(file, "my_axis", H5P_DEFAULT);
    assert_true(H5DSset_scale(scale, "my axis") >= 0);
    H5Dclose(scale);
    put_dataset(file, "notes/deep/values", 3, "my_axis");
    put_dataset(file, "features/own", 4, NULL);
    put_dataset(file, "images/rating", 4, NULL);
    H5Gclose(H5Gcreate2(file, "clusters", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "clusters/mine", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "features/group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    put_dataset(file, "clusters/dataset", 2, NULL);
    assert_true(H5Lcreate_soft("/images/path", file, "a_link", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_external("x.h5", "/y", file, "notes/far", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    put_text_attribute(file, "/", "owner", "me");
    put_text_attribute(file, "/features/gray_16", "seen", "yes");
    put_text_attribute(file, "/images", "remark", "some");
    H5Fclose(file);
}

static const char *const expected[] = {"/ @owner",
                                       "/a_link",
                                       "/clusters/dataset",
                                       "/clusters/mine",
                                       "/features/group",
                                       "/features/own",
                                       "/images @remark",
                                       "/features/gray_16 @seen",
                                       "/images/rating",
                                       "/my_axis",
                                       "/notes"};
#define EXPECTED (sizeof expected / sizeof *expected)

static enum status note(void *context, const char *name, const char *attribute, struct error *err)
{
    unsigned *seen = context;
    char line[300];
    (void)err;
    snprintf(line, sizeof line, "%s%s%s", name, attribute ? " @" : "", attribute ? attribute : "");
    for (unsigned i = 0; i < EXPECTED; i++)
        if (strcmp(line, expected[i]) == 0) {
            seen[i]++;
            return STATUS_OK;
        }
    print_error("unexpected: %s\n", line);
    seen[0] = 1000;
    return STATUS_OK;
}

static enum status find_foreign(hid_t file, unsigned *seen, struct error *err)
{
    const struct defined_visitor visitor = {NULL, note, seen};
    return defined_walk(file, "/", &visitor, err);
}

static void assert_all_there(const char *path)
{
    struct error error = ERROR_INIT;
    unsigned seen[EXPECTED] = {0};
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file > 0);
    assert_ok(find_foreign(file, seen, &error));
    for (unsigned i = 0; i < EXPECTED; i++)
        assert_int_equal(seen[i], 1);
    H5Fclose(file);
}

static void test_found_and_harmless(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct result *result;
    unsigned counts[3] = {0};
    char hex[65];
    run_items(f, 0, ITEMS, 1, 0, &summary, counts);
    /* A file that only clpipe has written contains none. */
    hid_t file = H5Fopen(f->output, H5F_ACC_RDONLY, H5P_DEFAULT);
    unsigned seen[EXPECTED] = {0};
    assert_ok(find_foreign(file, seen, &error));
    for (unsigned i = 0; i < EXPECTED; i++)
        assert_int_equal(seen[i], 0);
    H5Fclose(file);
    add_foreign(f->output);
    assert_all_there(f->output);
    identity_of(hex, f->output); /* opens the file and finds nothing broken */
    assert_ok(result_open(&result, f->output, &error));
    assert_int_equal(result->feature_count, 3);
    assert_int_equal(result->clusters_count, 0);
    result_close(&result);
    /* Nothing has changed, so nothing is written. */
    run_items(f, 0, ITEMS, 1, 0, &summary, counts);
    assert_true(summary.unchanged);
}

static void test_copied(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct foreign_copied copied;
    unsigned counts[3] = {0};
    char other[300];
    const char *output = f->config.output;
    snprintf(other, sizeof other, "%s/other.h5", f->directory);
    run_items(f, 0, ITEMS, 1, 0, &summary, counts);
    add_foreign(f->output);
    f->config.output = other;
    run_items(f, 0, ITEMS + 5, 1, 0, &summary, counts);
    f->config.output = output;
    hid_t from = H5Fopen(f->output, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t to = H5Fopen(other, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_ok(foreign_copy(&copied, from, to, &error));
    /* There is no group /clusters to copy to. */
    assert_int_equal(copied.objects, 6);
    assert_int_equal(copied.attributes, 3);
    assert_int_equal(copied.lost, 2);
    /* Copies into an existing group. */
    H5Gclose(H5Gcreate2(to, "clusters", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_ok(foreign_copy(&copied, from, to, &error));
    assert_int_equal(copied.objects, 2);
    /* Existing objects are not replaced. */
    assert_int_equal(copied.attributes, 0);
    assert_int_equal(copied.lost, 9);
    assert_ok(foreign_copy(&copied, from, to, &error));
    assert_int_equal(copied.objects + copied.attributes, 0);
    H5Fclose(to);
    H5Fclose(from);
    assert_all_there(other);
    /* The dataset has its scale again, now the copied one. */
    to = H5Fopen(other, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = H5Dopen2(to, "notes/deep/values", H5P_DEFAULT);
    hid_t scale = H5Dopen2(to, "my_axis", H5P_DEFAULT);
    double values[3];
    assert_true(H5DSis_attached(dataset, scale, 0) > 0);
    assert_true(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(values[0] == 1 && values[2] == 3);
    H5Dclose(scale);
    H5Dclose(dataset);
    char text[8] = "";
    assert_true(H5LTget_attribute_string(to, "/", "owner", text) >= 0);
    assert_string_equal(text, "me");
    H5L_info_t link;
    assert_true(H5Lget_info(to, "notes/far", &link, H5P_DEFAULT) >= 0);
    assert_int_equal(link.type, H5L_TYPE_EXTERNAL);
    H5Fclose(to);
    char hex[65];
    identity_of(hex, other);
}

static void test_names(void **state)
{
    (void)state;
    assert_non_null(defined_find("/"));
    assert_non_null(defined_find("/features/x.y-z"));
    assert_null(defined_find("/features/"));
    assert_null(defined_find("/features/x/y"));
    assert_null(defined_find("/clusters/kmeans/other"));
    assert_true(defined_find("/clusters/a/labels")->type == H5O_TYPE_DATASET);
    assert_non_null(defined_find("/checksums/clusters/a/labels"));
    assert_null(defined_find("/checksums/clusters/a/other"));
    const struct defined *root = defined_find("/");
    assert_true(defined_attribute(root, "created"));
    assert_false(defined_attribute(root, "creat"));
    assert_false(defined_attribute(root, "created "));
    assert_true(defined_attribute(root, "_NCProperties"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names),
    cmocka_unit_test_setup_teardown(test_found_and_harmless, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_copied, fixture_open, fixture_close),
};

TEST_GROUP(foreign, NULL, NULL)
