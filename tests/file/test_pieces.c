/* test_pieces.c: pieces past HDF5 and through it, against digests of the same bytes in memory. */
#include "file/chunks.h"
#include "file/pieces.h"
#include "test_store_common.h"
#include <hdf5.h>

/* 37 pieces and a part: several groups, the last of them neither full nor alone. */
#define ROWS    9500
#define COLUMNS 1025
#define BYTES   ((size_t)ROWS * COLUMNS * sizeof(float))

static bool no_attribute(const void *context, const char *attribute)
{
    (void)context;
    (void)attribute;
    return false;
}

static void digest_dataset(struct pieces *pieces, hid_t file, const char *name)
{
    struct error error = ERROR_INIT;
    struct serial serial;
    struct serial_values values;
    struct vlen *vlen;
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    assert_ok(vlen_open(&vlen, file, "x.h5", &error));
    serial_init(&serial, vlen, "x.h5");
    assert_ok(serial_dataset(&values, &serial, dataset, name, no_attribute, NULL, &error));
    assert_ok(pieces_digest(pieces, &serial, dataset, name, &values, &error));
    h5_close(&values.memory);
    vlen_close(&vlen);
    H5Dclose(dataset);
}

/* In chunks of 63 rows, as --compress has them. */
static void write_deflated(hid_t file, const float *data)
{
    const struct result_feature feature = {.name = "deflated",
                                           .kind = "gray",
                                           .normalize = "l1",
                                           .is_float = true,
                                           .dimension = COLUMNS};
    const struct chunks_config config = {
        .rows = ROWS, .datasets = 1, .widest = 4 * COLUMNS, .threads = 2, .path = "x.h5"};
    struct error error = ERROR_INIT;
    struct chunks *chunks;
    hid_t dataset;
    assert_ok(chunks_open(&chunks, &config, &error));
    assert_ok(chunks_create(chunks, &dataset, file, &feature, &error));
    assert_ok(chunks_add(chunks, dataset, data, ROWS, &error));
    assert_ok(chunks_finish(chunks, &error));
    chunks_close(&chunks);
    H5Dclose(dataset);
}

static void test_all_ways_agree(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    const hsize_t size[2] = {ROWS, COLUMNS}, chunk[2] = {1000, COLUMNS};
    float *data = malloc(BYTES);
    hid_t file, dataset;
    assert_non_null(data);
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
        data[i] = (float)(mix(i) >> 40);
    assert_ok(h5_create_file(&file, f->output, &error));
    assert_ok(h5_create_dataset(&dataset, file, "plain", VALUE_F32, 2, size, "x.h5", &error));
    assert_ok(h5_write_rows(dataset, VALUE_F32, 0, ROWS, data, "x.h5", &error));
    H5Dclose(dataset);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, size, NULL);
    H5Pset_chunk(list, 2, chunk);
    dataset = H5Dcreate2(file, "chunked", H5T_IEEE_F32BE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(list);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    struct pieces plain, chunked, deflated;
    write_deflated(file, data);
    digest_dataset(&plain, file, "plain");
    digest_dataset(&chunked, file, "chunked");
    digest_dataset(&deflated, file, "deflated");
    H5Fclose(file);
    assert_int_equal(plain.count, (BYTES + PIECE_BYTES - 1) / PIECE_BYTES);
    assert_int_equal(plain.count, chunked.count);
    assert_int_equal(plain.count, deflated.count);
    for (uint64_t i = 0; i < plain.count; i++) {
        const size_t left = BYTES - i * PIECE_BYTES;
        struct sha256 sha;
        uint8_t digest[32];
        sha256_init(&sha);
        sha256_update(&sha, (uint8_t *)data + i * PIECE_BYTES,
                      left < PIECE_BYTES ? left : PIECE_BYTES);
        sha256_final(&sha, digest);
        assert_memory_equal(plain.digest[i], digest, sizeof digest);
        assert_memory_equal(chunked.digest[i], digest, sizeof digest);
        assert_memory_equal(deflated.digest[i], digest, sizeof digest);
    }
    uint64_t first, last;
    pieces_rows(&plain, 0, &first, &last);
    assert_int_equal(first, 0);
    assert_int_equal(last, (PIECE_BYTES - 1) / (4 * COLUMNS));
    pieces_rows(&plain, plain.count - 1, &first, &last);
    assert_int_equal(first, (plain.count - 1) * PIECE_BYTES / (4 * COLUMNS));
    assert_int_equal(last, ROWS - 1);
    pieces_clear(&plain);
    pieces_clear(&chunked);
    pieces_clear(&deflated);
    free(data);
}

/* Texts, whose bytes and lengths are one stream: here of 20 pieces. */
static void test_texts(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    const hsize_t rows = 2100;
    static char text[10001];
    const char *at = text;
    hid_t file, dataset;
    struct sha256 sha;
    uint8_t digest[32];
    uint64_t done = 0, piece = 0;
    memset(text, 'a', 10000);
    assert_ok(h5_create_file(&file, f->output, &error));
    assert_ok(h5_create_dataset(&dataset, file, "texts", VALUE_TEXT, 1, &rows, "x.h5", &error));
    for (hsize_t i = 0; i < rows; i++) {
        text[i % 9999] = (char)('b' + i % 20);
        assert_ok(h5_write_rows(dataset, VALUE_TEXT, i, 1, &at, "x.h5", &error));
    }
    H5Dclose(dataset);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    struct pieces pieces;
    digest_dataset(&pieces, file, "texts");
    H5Fclose(file);
    assert_int_equal(pieces.count, (rows * 10008 + PIECE_BYTES - 1) / PIECE_BYTES);
    memset(text, 'a', 10000);
    sha256_init(&sha);
    for (hsize_t i = 0; i < rows; i++) {
        uint8_t element[10008];
        const uint64_t length = 10000;
        text[i % 9999] = (char)('b' + i % 20);
        memcpy(element, &length, 8);
        memcpy(element + 8, text, 10000);
        for (size_t byte = 0; byte < sizeof element; byte++) {
            sha256_update(&sha, element + byte, 1);
            if (++done % PIECE_BYTES == 0) {
                sha256_final(&sha, digest);
                assert_memory_equal(pieces.digest[piece], digest, sizeof digest);
                assert_true(pieces.row[piece] == piece * PIECE_BYTES / 10008);
                piece++;
                sha256_init(&sha);
            }
        }
    }
    sha256_final(&sha, digest);
    assert_memory_equal(pieces.digest[piece], digest, sizeof digest);
    assert_int_equal(piece + 1, pieces.count);
    pieces_clear(&pieces);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_all_ways_agree, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_texts, fixture_open, fixture_close),
};

TEST_GROUP(pieces, NULL, NULL)
