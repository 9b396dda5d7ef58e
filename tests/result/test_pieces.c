/* test_pieces.c: digests of pieces that are read directly and through HDF5, compared with digests
 * of the same bytes in memory. */
#include "matrix/raw_write.h"
#include "result/pieces.h"
#include "test_store_common.h"
#include <hdf5.h>

/* 37 complete pieces of 128 rows and an incomplete one: several groups, of which the last has
 * several pieces but is not full. */
#define ROWS    4750
#define COLUMNS 1025
#define PIECE   128
#define BYTES   ((size_t)ROWS * COLUMNS * sizeof(float))

static void digest_dataset(struct pieces *pieces, hid_t file, const char *name)
{
    struct error error = ERROR_INIT;
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    assert_ok(pieces_digest(pieces, dataset, &error));
    H5Dclose(dataset);
}

/* Writes chunks of 63 rows, as --compress does. */
static void write_deflated(hid_t file, const float *data)
{
    const hsize_t size[2] = {ROWS, COLUMNS};
    struct error error = ERROR_INIT;
    struct raw *to;
    struct raw_turns turns;
    hid_t dataset;
    assert_ok(h5_create_chunked(&dataset, file, "deflated", VALUE_F32, size, 63, false, &error));
    assert_ok(raw_open(&to, dataset, "x.h5", &error));
    raw_turns_init(&turns);
    assert_ok(raw_write_rows(to, 0, ROWS, data, &turns, 0, &error));
    raw_turns_clear(&turns);
    raw_close(&to);
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
    assert_ok(h5_create_file(&file, f->output, f->output, false, &error));
    assert_ok(h5_create_dataset(&dataset, file, "plain", VALUE_F32, 2, size, &error));
    assert_ok(h5_write_rows(dataset, VALUE_F32, 0, ROWS, data, &error));
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
    assert_int_equal(plain.count, (ROWS + PIECE - 1) / PIECE);
    assert_int_equal(plain.count, chunked.count);
    assert_int_equal(plain.count, deflated.count);
    for (uint64_t i = 0; i < plain.count; i++) {
        const size_t piece = (size_t)PIECE * COLUMNS * sizeof(float), left = BYTES - i * piece;
        uint8_t digest[32];
        sha256_of(digest, (uint8_t *)data + i * piece, left < piece ? left : piece);
        assert_memory_equal(plain.digest[i], digest, sizeof digest);
        assert_memory_equal(chunked.digest[i], digest, sizeof digest);
        assert_memory_equal(deflated.digest[i], digest, sizeof digest);
    }
    uint64_t first, last;
    pieces_rows(&plain, 0, &first, &last);
    assert_int_equal(first, 0);
    assert_int_equal(last, PIECE - 1);
    pieces_rows(&plain, plain.count - 1, &first, &last);
    assert_int_equal(first, (plain.count - 1) * PIECE);
    assert_int_equal(last, ROWS - 1);
    pieces_clear(&plain);
    pieces_clear(&chunked);
    pieces_clear(&deflated);
    free(data);
}

static void damage_chunk(hid_t dataset, hsize_t row)
{
    const hsize_t at[2] = {row, 0};
    assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, at, 5, "wrong") >= 0);
}

/* The message is that of the first damaged piece, whichever thread comes last; other pieces have
 * their digests. */
static void test_damage(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    static const uint8_t none[PIECE_DIGEST] = {0};
    struct pieces whole, pieces;
    float *data = malloc(BYTES);
    hid_t file;
    assert_non_null(data);
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
        data[i] = (float)(mix(i) >> 40);
    assert_ok(h5_create_file(&file, f->output, f->output, false, &error));
    write_deflated(file, data);
    free(data);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    digest_dataset(&whole, file, "deflated");
    hid_t dataset = H5Dopen2(file, "deflated", H5P_DEFAULT);
    damage_chunk(dataset, 2 * 63); /* in pieces 0 and 1 */
    damage_chunk(dataset, 64 * 63);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    for (int run = 0; run < 5; run++) {
        assert_int_equal(pieces_digest(&pieces, dataset, &error), STATUS_FAILED);
        assert_non_null(strstr(error.sentence, "the chunk of row 126 and column 0"));
        assert_int_equal(pieces.count, whole.count);
        for (uint64_t i = 0; i < pieces.count; i++)
            assert_memory_equal(pieces.digest[i],
                                i < 2 || i == 64 * 63 / PIECE ? none : whole.digest[i],
                                PIECE_DIGEST);
        pieces_clear(&pieces);
    }
    pieces_clear(&whole);
    H5Dclose(dataset);
    H5Fclose(file);
}

/* Strings with padding, contiguous and compressed; and rows that are larger than a piece. */
static void test_texts(void **state)
{
    struct fixture *f = *state;
    struct error error = ERROR_INIT;
    static const struct {
        const char *name;
        uint64_t rows, width, length, piece;
        bool deflated;
    } cases[] = {{"short", 2100, 1000, 900, 1024, false},
                 {"wide", 2100, 1000, 10, 1024, true},
                 {"huge", 3, (1 << 20) + 1, 10, 1, true},
                 {"few", 3, 1000, 1, 1024, false}};
    hid_t file, dataset;
    assert_ok(h5_create_file(&file, f->output, f->output, false, &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t bytes = (size_t)(cases[i].rows * cases[i].width);
        const struct text_size size = {cases[i].width, cases[i].rows * cases[i].length};
        char *texts = calloc(bytes, 1);
        assert_non_null(texts);
        for (uint64_t r = 0; r < cases[i].rows; r++)
            memset(texts + r * cases[i].width, 'a' + (int)(r % 20), (size_t)cases[i].length);
        assert_ok(h5_create_texts(&dataset, file, cases[i].name, cases[i].rows, &size, &error));
        assert_ok(h5_write_rows(dataset, VALUE_TEXT, 0, cases[i].rows, texts, &error));
        assert_int_equal(h5_is_compressed(dataset), cases[i].deflated);
        H5Dclose(dataset);
        H5Fflush(file, H5F_SCOPE_GLOBAL);
        struct pieces pieces;
        digest_dataset(&pieces, file, cases[i].name);
        assert_int_equal(pieces.piece_rows, cases[i].piece);
        assert_int_equal(pieces.count, (cases[i].rows + cases[i].piece - 1) / cases[i].piece);
        for (uint64_t p = 0; p < pieces.count; p++) {
            const size_t at = (size_t)(p * cases[i].piece * cases[i].width);
            const size_t whole = (size_t)(cases[i].piece * cases[i].width);
            uint8_t digest[32];
            sha256_of(digest, texts + at, bytes - at < whole ? bytes - at : whole);
            assert_memory_equal(pieces.digest[p], digest, sizeof digest);
        }
        pieces_clear(&pieces);
        free(texts);
    }
    H5Fclose(file);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_all_ways_agree, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_damage, fixture_open, fixture_close),
    cmocka_unit_test_setup_teardown(test_texts, fixture_open, fixture_close),
};

TEST_GROUP(pieces, NULL, NULL)
