/* test_verify_clusters.c: verify detects each damaged value of a clustering. */
#include "test_clusters_common.h"
#include <hdf5.h>

struct lines {
    char text[4000];
};

static void collect(const char *line, void *context)
{
    struct lines *lines = context;
    size_t used = strlen(lines->text);
    snprintf(lines->text + used, sizeof lines->text - used, "%s\n", line);
}

static void expect_broken(const char *path, const char *part)
{
    struct error error = ERROR_INIT;
    struct result *result;
    struct lines lines = {""};
    uint64_t count;
    assert_ok(result_open(&result, path, &error));
    assert_ok(result_verify(result, collect, &lines, &count, &error));
    if (count == 0 || !strstr(lines.text, part))
        print_error("wanted '%s' among: %s\n", part, lines.text);
    assert_true(count > 0);
    assert_non_null(strstr(lines.text, part));
    result_close(&result);
}

/* Overwrites one element of a dataset. */
static void poke(const char *path, const char *dataset, hid_t type, hsize_t row, hsize_t column,
                 const void *value)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t id = H5Dopen2(file, dataset, H5P_DEFAULT), space = H5Dget_space(id);
    hsize_t at[2] = {row, column}, one = 1;
    hid_t memory = H5Screate_simple(1, &one, NULL);
    assert_true(H5Sselect_elements(space, H5S_SELECT_SET, 1, at) >= 0);
    assert_true(H5Dwrite(id, type, memory, space, H5P_DEFAULT, value) >= 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(id);
    H5Fclose(file);
}

static void test_verify_finds(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    struct store_summary summary;
    struct clustered c;
    ingest(f, ITEMS, &summary);
    cluster(&c, f->output, "rgb_8", "hellinger");
    assert_ok(result_write_clusters(f->output, f->output, &c.clustering, 1, false, &error));
    size_t size;
    char *good = read_file(f->output, &size);
    static const float nan_value = NAN, big = 7, third = 0.3f, half = 3.5f;
    static const uint32_t count = 12345, zero = 0;
    static const uint8_t nine = 9;
    static const uint16_t source = 3;
    static const int32_t label = K, other_label = 2;
    static const int64_t row = 1000, wrong_row = 0;
    static const uint64_t members = 1;
    const struct {
        const char *dataset;
        hid_t type;
        hsize_t row, column;
        const void *value;
        const char *line;
    } cases[] = {
        {"features/rgb_8", H5T_NATIVE_FLOAT, 5, 3, &nan_value,
         "/features/rgb_8: something in rows 0 to"},
        {"features/joint", H5T_NATIVE_FLOAT, 9, 50, &third,
         "/features/joint: something in rows 0 to"},
        {"features/gray_16", H5T_NATIVE_UINT32, 7, 2, &count,
         "/features/gray_16: something in rows 0 to"},
        {"images/width", H5T_NATIVE_UINT32, 2, 0, &zero, "/images: row 2 has no width"},
        {"images/orientation", H5T_NATIVE_UINT8, 2, 0, &nine, "impossible orientation"},
        {"images/source", H5T_NATIVE_UINT16, 60, 0, &source, "not in the list"},
        {"failures/source", H5T_NATIVE_UINT16, 1, 0, &source, "not in the list"},
        {"clusters/kmeans/labels", H5T_NATIVE_INT32, 4, 0, &label, "label that is not a cluster"},
        {"clusters/kmeans/labels", H5T_NATIVE_INT32, (hsize_t)c.nearest[0], 0, &other_label,
         "sizes"},
        {"clusters/kmeans/distances", H5T_NATIVE_FLOAT, 4, 0, &nan_value, "an invalid distance"},
        {"clusters/kmeans/distances", H5T_NATIVE_FLOAT, 4, 0, &big,
         "/clusters/kmeans/distances: something in rows 0 to"},
        {"clusters/kmeans/sizes", H5T_NATIVE_UINT64, 0, 0, &members, "sizes: cluster 0"},
        {"clusters/kmeans/nearest", H5T_NATIVE_INT64, 1, 1, &row, "nearest: the rows of cluster 1"},
        {"clusters/kmeans/nearest", H5T_NATIVE_INT64, 1, 0, &wrong_row, "rows of cluster 1"},
        {"clusters/kmeans/centroids", H5T_NATIVE_FLOAT, 1, 2, &nan_value, "not a number"},
        {"clusters/kmeans/centroids", H5T_NATIVE_FLOAT, 1, 2, &half,
         "/clusters/kmeans/centroids: something in rows 0 to"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(f->output, good, size);
        poke(f->output, cases[i].dataset, cases[i].type, cases[i].row, cases[i].column,
             cases[i].value);
        expect_broken(f->output, cases[i].line);
    }
    /* Two values of a histogram are exchanged: each is valid, but they are not the clustered
     * ones. */
    write_file(f->output, good, size);
    struct result *result;
    assert_ok(result_open(&result, f->output, &error));
    float values[24];
    assert_ok(read_feature(result, result_feature_find(result, "rgb_8"), 11, 1, values, &error));
    result_close(&result);
    unsigned a = 0, b = 1;
    while (values[a] == values[b])
        b++;
    assert_true(b < 8);
    poke(f->output, "features/rgb_8", H5T_NATIVE_FLOAT, 11, a, &values[b]);
    poke(f->output, "features/rgb_8", H5T_NATIVE_FLOAT, 11, b, &values[a]);
    expect_broken(f->output, "made from other rows");
    /* An unknown reason, paths in the wrong order, and a missing scale. */
    write_file(f->output, good, size);
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 16);
    H5Tset_cset(text, H5T_CSET_UTF8);
    poke(f->output, "failures/reason", text, 2, 0, "no-such-reason\0");
    expect_broken(f->output, "row 2 has a reason that does not exist");
    write_file(f->output, good, size);
    H5Tset_size(text, 1);
    poke(f->output, "images/path", text, 9, 0, "a");
    expect_broken(f->output, "row 9 does not come after");
    H5Tclose(text);
    write_file(f->output, good, size);
    hid_t file = H5Fopen(f->output, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(H5Adelete_by_name(file, "images/height", "DIMENSION_LIST", H5P_DEFAULT) >= 0);
    H5Fclose(file);
    expect_broken(f->output, "/images/height: its attributes, its type or its shape have changed");
    /* Unfinished work beside the file. */
    write_file(f->output, good, size);
    assert_int_equal(mkdir(f->work, 0777), 0);
    expect_broken(f->output, "out.h5.partial exists");
    rmdir(f->work);
    free(good);
    clustered_clear(&c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_verify_finds, fixture_open, fixture_close),
};
TEST_GROUP(verify_clusters, NULL, NULL)
