/* test_chunks.c: chunks as HDF5 reads them, whatever the threads and however rows are given. */
#include "file/chunks.h"
#include "file/result_internal.h"
#include "test_store_common.h"

#define ROWS     90
#define DATASETS 3

/* A chunk of the first has 65 rows; a row of the second is a chunk; the third is one. */
static const struct result_feature features[DATASETS] = {
    {.name = "shares", .kind = "gray", .normalize = "l1", .is_float = true, .dimension = 1000},
    {.name = "wide", .kind = "rgb", .normalize = "none", .dimension = 66000},
    {.name = "bytes",
     .kind = "hog",
     .normalize = "l1",
     .is_float = true,
     .store = STORE_UINT8,
     .dimension = 7}};

static size_t row_bytes(unsigned i)
{
    return result_feature_row_bytes(&features[i]);
}

/* All values of a dataset: some compress, some do not. */
static uint8_t *make_values(unsigned i)
{
    const size_t bytes = ROWS * row_bytes(i);
    uint8_t *values = malloc(bytes);
    assert_non_null(values);
    for (size_t b = 0; b < bytes; b++)
        values[b] = (uint8_t)(b % 4 < 2 ? 0 : mix(b / 2));
    return values;
}

static void write_chunks(const struct fixture *f, unsigned threads, uint8_t *const values[DATASETS])
{
    static const unsigned counts[] = {1, 0, 64, 3, 9};
    const struct chunks_config config = {.rows = ROWS,
                                         .datasets = DATASETS,
                                         .widest = row_bytes(1),
                                         .threads = threads,
                                         .path = f->output};
    struct error error = ERROR_INIT;
    struct chunks *chunks;
    hid_t file, dataset[DATASETS];
    uint64_t count;
    assert_ok(h5_create_file(&file, f->output, &error));
    assert_ok(chunks_open(&chunks, &config, &error));
    for (unsigned i = 0; i < DATASETS; i++)
        assert_ok(chunks_create(chunks, &dataset[i], file, &features[i], &error));
    for (uint64_t row = 0, n = 0; row < ROWS; row += count) {
        count = counts[n++ % 5];
        if (count > ROWS - row)
            count = ROWS - row;
        for (unsigned i = 0; i < DATASETS; i++)
            assert_ok(
                chunks_add(chunks, dataset[i], values[i] + row * row_bytes(i), count, &error));
    }
    assert_ok(chunks_finish(chunks, &error));
    chunks_close(&chunks);
    for (unsigned i = 0; i < DATASETS; i++)
        h5_close(&dataset[i]);
    assert_ok(h5_finish_file(&file, f->output, &error));
}

static void check_file(const struct fixture *f, uint8_t *const values[DATASETS])
{
    static const hsize_t chunk_rows[DATASETS] = {65, 1, ROWS};
    static const int filters[DATASETS] = {1, 2, 1};
    struct error error = ERROR_INIT;
    hid_t file;
    assert_ok(h5_open_file(&file, f->output, false, &error));
    for (unsigned i = 0; i < DATASETS; i++) {
        const enum value_type type = result_feature_type(&features[i]);
        hsize_t size[2], chunk[2];
        hid_t dataset, list;
        uint8_t *found = malloc(ROWS * row_bytes(i));
        assert_ok(h5_open_dataset(&dataset, file, features[i].name, type, 2, size, "/x", f->output,
                                  &error));
        assert_int_equal(size[0], ROWS);
        assert_ok(h5_read_rows(dataset, type, 0, ROWS, found, f->output, &error));
        assert_memory_equal(found, values[i], ROWS * row_bytes(i));
        assert_true(h5_is_compressed(dataset));
        assert_true(h5_stored_bytes(dataset) < ROWS * row_bytes(i) * 9 / 10);
        list = H5Dget_create_plist(dataset);
        assert_int_equal(H5Pget_chunk(list, 2, chunk), 2);
        assert_int_equal(chunk[0], chunk_rows[i]);
        assert_int_equal(H5Pget_nfilters(list), filters[i]);
        H5Pclose(list);
        h5_close(&dataset);
        free(found);
    }
    H5Fclose(file);
}

static void test_any_threads(void **state)
{
    struct fixture *f = *state;
    uint8_t *values[DATASETS];
    char *first = NULL;
    size_t first_size = 0;
    for (unsigned i = 0; i < DATASETS; i++)
        values[i] = make_values(i);
    for (unsigned threads = 0; threads < 6; threads += 1 + 3 * (threads > 0)) {
        size_t size;
        write_chunks(f, threads, values);
        check_file(f, values);
        char *bytes = read_file(f->output, &size);
        if (!first) {
            first = bytes;
            first_size = size;
            continue;
        }
        assert_int_equal(size, first_size);
        assert_memory_equal(bytes, first, size);
        free(bytes);
    }
    free(first);
    for (unsigned i = 0; i < DATASETS; i++)
        free(values[i]);
}

/* A run that ends early: chunks are filled, queued and being deflated. */
static void test_closed_early(void **state)
{
    struct fixture *f = *state;
    const struct chunks_config config = {
        .rows = ROWS, .datasets = 1, .widest = row_bytes(1), .threads = 3, .path = f->output};
    struct error error = ERROR_INIT;
    uint8_t *values = make_values(1);
    struct chunks *chunks;
    hid_t file, dataset;
    assert_ok(h5_create_file(&file, f->output, &error));
    assert_ok(chunks_open(&chunks, &config, &error));
    assert_ok(chunks_create(chunks, &dataset, file, &features[1], &error));
    assert_ok(chunks_add(chunks, dataset, values, 20, &error));
    chunks_close(&chunks);
    assert_null(chunks);
    chunks_close(&chunks);
    h5_close(&dataset);
    h5_discard_file(&file);
    free(values);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_any_threads, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_closed_early, fixture_open, fixture_close),
};

TEST_GROUP(chunks, NULL, NULL)
