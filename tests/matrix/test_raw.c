/* test_raw.c: reading chunked datasets directly gives the values that HDF5 reads; damaged datasets
 * are refused. */
#include "runner.h"

#include "matrix/h5_driver.h"
#include "matrix/hdf5_matrix.h"
#include "matrix/raw.h"
#include <malloc.h>

#define H5_USE_110_API
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define ROWS    61
#define COLUMNS 13
#define THREADS 4

static char path[64];

static int make_name(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/test_raw.XXXXXX");
    const int fd = mkstemp(path);
    close(fd);
    return fd < 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

/* --- files ------------------------------------------------------------------------------------- */

enum { DEFLATE = 1, SHUFFLE = 2, FLETCHER32 = 4, SUM_FIRST = 8, NBIT = 16 };

struct layout {
    hsize_t chunk[2];
    unsigned filters;
    hid_t type;
    bool latest; /* uses another chunk index */
    hsize_t user_block;
};

/* Creates a dataset "m" without values; file and dataset stay open. */
static void create(hid_t *file, hid_t *dataset, const struct layout *layout)
{
    const hsize_t size[2] = {ROWS, COLUMNS}, most[2] = {H5S_UNLIMITED, COLUMNS};
    const double fill = 7;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE),
          space = H5Screate_simple(2, size, layout->chunk[0] > 0 ? most : size);
    if (layout->latest)
        H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    H5Pset_userblock(creation, layout->user_block);
    if (layout->chunk[0] > 0)
        H5Pset_chunk(list, 2, layout->chunk);
    H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &fill);
    if (layout->filters & SUM_FIRST)
        H5Pset_fletcher32(list);
    if (layout->filters & NBIT)
        H5Pset_nbit(list);
    if (layout->filters & SHUFFLE && layout->chunk[0] > 0)
        H5Pset_shuffle(list);
    if (layout->filters & DEFLATE)
        H5Pset_deflate(list, 6);
    if (layout->filters & FLETCHER32)
        H5Pset_fletcher32(list);
    *file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    *dataset = H5Dcreate2(*file, "m", layout->type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(*dataset > 0);
    H5Sclose(space);
    H5Pclose(list);
    H5Pclose(creation);
    H5Pclose(access);
}

/* Writes values to rows [first, last). */
static void fill_rows(hid_t dataset, hsize_t first, hsize_t last)
{
    const hsize_t from[2] = {first, 0}, size[2] = {last - first, COLUMNS};
    double values[ROWS * COLUMNS];
    for (hsize_t i = 0; i < size[0] * COLUMNS; i++)
        values[i] = (double)((i + first * COLUMNS) * 7 % 101) + 0.25 * (double)(i % 3);
    hid_t memory = H5Screate_simple(2, size, NULL), space = H5Dget_space(dataset);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, size, NULL);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values) >= 0);
    H5Sclose(memory);
    H5Sclose(space);
}

static void close_both(hid_t file, hid_t dataset)
{
    H5Dclose(dataset);
    H5Fclose(file);
}

/* --- values ------------------------------------------------------------------------------------ */

struct job {
    const struct matrix_source *matrix;
    const float *wanted;
    uint64_t step, begin;
    bool wrong;
};

/* Reads all rows in groups of `step`, starting at a given position. */
static void *read_all(void *context)
{
    struct job *job = context;
    float rows[ROWS * COLUMNS];
    const uint64_t steps = (ROWS + job->step - 1) / job->step;
    for (uint64_t i = 0; i < steps; i++) {
        struct error err = ERROR_INIT;
        const uint64_t first = (i + job->begin) % steps * job->step;
        const uint64_t count = ROWS - first < job->step ? ROWS - first : job->step;
        if (matrix_read(job->matrix, first, count, rows, &err) != STATUS_OK ||
            memcmp(rows, job->wanted + first * COLUMNS, count * COLUMNS * sizeof *rows) != 0)
            job->wrong = true;
    }
    return NULL;
}

static void compare(const struct layout *layout)
{
    static const uint64_t steps[] = {1, 3, 16, ROWS};
    struct matrix_source matrix;
    struct error err = ERROR_INIT;
    float wanted[ROWS * COLUMNS];
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT),
          dataset = H5Dopen2(file, "m", H5P_DEFAULT);
    assert_true(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, wanted) >= 0);
    close_both(file, dataset);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct job jobs[THREADS];
        pthread_t threads[THREADS];
        assert_int_equal(hdf5_matrix_open(&matrix, path, "m", false, &err), STATUS_OK);
        assert_true(matrix.concurrent);
        for (unsigned t = 0; t < THREADS; t++) {
            jobs[t] = (struct job){&matrix, wanted, steps[i], t, false};
            assert_int_equal(pthread_create(&threads[t], NULL, read_all, &jobs[t]), 0);
        }
        for (unsigned t = 0; t < THREADS; t++) {
            pthread_join(threads[t], NULL);
            if (jobs[t].wrong)
                fail_msg("chunks of %d x %d, filters %u, %d rows at a time", (int)layout->chunk[0],
                         (int)layout->chunk[1], layout->filters, (int)steps[i]);
        }
        matrix_close(&matrix);
    }
}

static void test_types(void **state)
{
    (void)state;
    const hid_t types[] = {H5T_STD_I8LE,   H5T_STD_U8LE,   H5T_STD_I16BE,  H5T_STD_U16LE,
                           H5T_STD_I32LE,  H5T_STD_U32BE,  H5T_STD_I64BE,  H5T_STD_U64LE,
                           H5T_IEEE_F32LE, H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE};
    static const unsigned filters[] = {0, DEFLATE | SHUFFLE};
    for (size_t i = 0; i < 2 * sizeof types / sizeof *types; i++) {
        const struct layout layout = {{8, 5}, filters[i % 2], types[i / 2], false, 0};
        hid_t file, dataset;
        create(&file, &dataset, &layout);
        fill_rows(dataset, 0, ROWS);
        close_both(file, dataset);
        compare(&layout);
    }
}

/* Reads rows of one band, of part of a band and of several bands; chunks wider than the matrix; and
 * chunks that were never written. */
static void test_grids(void **state)
{
    (void)state;
    static const hsize_t chunks[][2] = {{1, 1}, {7, COLUMNS}, {61, 4}, {64, 13}, {3, 12}};
    static const unsigned filters[] = {
        DEFLATE, SHUFFLE, FLETCHER32, SHUFFLE | DEFLATE | FLETCHER32, SUM_FIRST | SHUFFLE | DEFLATE,
        NBIT};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++)
        for (size_t f = 0; f < sizeof filters / sizeof *filters; f++) {
            const struct layout layout = {{chunks[i][0], chunks[i][1]},
                                          filters[f],
                                          H5T_IEEE_F32LE,
                                          f % 2 == 0,
                                          f == 1 ? 1024 : 0};
            hid_t file, dataset;
            create(&file, &dataset, &layout);
            fill_rows(dataset, 0, 9);
            fill_rows(dataset, 40, 50);
            close_both(file, dataset);
            compare(&layout);
        }
}

/* HDF5 reads the types that values.h does not support: here 12-bit integers in 16 bits, at any bit
 * offset. */
static void test_padded_integers(void **state)
{
    (void)state;
    static const hsize_t chunks[] = {0, 8, ROWS};
    hid_t type = H5Tcopy(H5T_STD_I16LE);
    H5Tset_precision(type, 12);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        const struct layout layout = {{chunks[i], 5}, SHUFFLE, type, false, 0};
        hid_t file, dataset;
        create(&file, &dataset, &layout);
        fill_rows(dataset, 0, 50);
        close_both(file, dataset);
        compare(&layout);
    }
    H5Tclose(type);
}

/* Reads ranges of rows across chunks, in little-endian order. */
static void test_bytes(void **state)
{
    (void)state;
    const struct layout layouts[] = {{{0, 0}, 0, H5T_STD_I32BE, false, 0},
                                     {{8, 5}, SHUFFLE | DEFLATE, H5T_STD_I32BE, false, 0},
                                     {{7, 4}, NBIT, H5T_STD_I32BE, false, 0}};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        struct error err = ERROR_INIT;
        struct raw *raw;
        int32_t wanted[ROWS * COLUMNS], found[ROWS * COLUMNS];
        hid_t file, dataset;
        create(&file, &dataset, &layouts[i]);
        fill_rows(dataset, 0, ROWS);
        close_both(file, dataset);
        hid_t access = H5Pcreate(H5P_FILE_ACCESS);
        h5_driver_use(access);
        file = H5Fopen(path, H5F_ACC_RDONLY, access);
        dataset = H5Dopen2(file, "m", H5P_DEFAULT);
        assert_true(H5Dread(dataset, H5T_STD_I32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, wanted) >= 0);
        assert_int_equal(raw_open(&raw, dataset, path, &err), STATUS_OK);
        for (uint64_t first = 0; first < ROWS; first++)
            for (uint64_t count = 0; first + count <= ROWS; count++) {
                assert_int_equal(raw_read(raw, first, count, found, &err), STATUS_OK);
                assert_memory_equal(found, wanted + first * COLUMNS, 4 * count * COLUMNS);
            }
        assert_int_equal(raw_read(raw, ROWS - 1, 2, found, &err), STATUS_FAILED);
        assert_non_null(strstr(err.sentence, "has 61 rows; asked for 2 from 60"));
        raw_close(&raw);
        close_both(file, dataset);
        H5Pclose(access);
    }
}

/* --- memory ------------------------------------------------------------------------------------ */

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
/* The number of allocated bytes, or 0 with a sanitizer's allocator. */
static size_t allocated(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}
#else
static size_t allocated(void)
{
    return 0;
}
#endif

/* Several datasets are open, with chunks of 1 MiB of which every second row remains unread. */
static void test_memory(void **state)
{
    (void)state;
    enum { DATASETS = 3, CHUNKS = 130 };
    const hsize_t size[2] = {2 * CHUNKS, 1 << 16}, chunk[2] = {2, 1 << 16};
    struct matrix_source matrix[DATASETS];
    struct error err = ERROR_INIT;
    float *row = malloc(chunk[1] * sizeof *row);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, size, NULL);
    H5Pset_chunk(list, 2, chunk);
    hid_t dataset = H5Dcreate2(file, "m", H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_non_null(row);
    assert_true(dataset > 0);
    H5Sclose(space);
    H5Pclose(list);
    close_both(file, dataset);
    for (unsigned i = 0; i < DATASETS; i++)
        assert_int_equal(hdf5_matrix_open(&matrix[i], path, "m", false, &err), STATUS_OK);
    const size_t before = allocated();
    for (unsigned i = 0; i < DATASETS; i++)
        for (uint64_t c = 0; c < CHUNKS; c++)
            assert_int_equal(matrix_read(&matrix[i], 2 * c, 1, row, &err), STATUS_OK);
    const size_t grown = allocated() - before;
    if (grown > 160u << 20)
        fail_msg("%zu MiB for chunks of %d datasets", grown >> 20, DATASETS);
    for (unsigned i = 0; i < DATASETS; i++)
        matrix_close(&matrix[i]);
    /* All of the memory was released. */
    assert_true(allocated() < before + (8u << 20));
    free(row);
}

/* --- damage ------------------------------------------------------------------------------------ */

#define CHUNK_VALUES (8 * COLUMNS)

/* Writes `size` raw bytes as the second chunk of a file whose other chunks are intact. */
static void write_chunk(const struct layout *layout, const void *bytes, size_t size, uint32_t mask)
{
    const hsize_t at[2] = {8, 0};
    hid_t file, dataset;
    create(&file, &dataset, layout);
    fill_rows(dataset, 0, ROWS);
    assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, mask, at, size, bytes) >= 0);
    close_both(file, dataset);
}

static void expect(const char *words)
{
    struct matrix_source matrix;
    struct error err = ERROR_INIT;
    float rows[ROWS * COLUMNS];
    assert_int_equal(hdf5_matrix_open(&matrix, path, "m", false, &err), STATUS_OK);
    assert_int_equal(matrix_read(&matrix, 0, 8, rows, &err), STATUS_OK);
    if (words) {
        assert_int_equal(matrix_read(&matrix, 7, 2, rows, &err), STATUS_FAILED);
        if (!strstr(err.sentence, "row 8 and column 0") || !strstr(err.sentence, words))
            fail_msg("'%s' lacks '%s'", err.sentence, words);
    } else {
        assert_int_equal(matrix_read(&matrix, 8, 8, rows, &err), STATUS_OK);
        for (int i = 0; i < CHUNK_VALUES; i++)
            assert_true(rows[i] == (float)i);
    }
    /* The other chunks can be read. */
    assert_int_equal(matrix_read(&matrix, 16, ROWS - 16, rows, &err), STATUS_OK);
    matrix_close(&matrix);
}

static void test_damage(void **state)
{
    (void)state;
    const struct layout deflated = {{8, COLUMNS}, DEFLATE, H5T_IEEE_F32LE, false, 0};
    const struct layout summed = {{8, COLUMNS}, FLETCHER32, H5T_IEEE_F32LE, false, 0};
    float values[2 * CHUNK_VALUES];
    unsigned char packed[8 * CHUNK_VALUES] = {0};
    uLongf size = sizeof packed;
    for (int i = 0; i < 2 * CHUNK_VALUES; i++)
        values[i] = (float)i;
    compress(packed, &size, (const Bytef *)values, sizeof values / 2);
    write_chunk(&deflated, packed, size, 0);
    expect(NULL);
    write_chunk(&deflated, packed, size - 1, 0);
    expect("deflate stream is damaged");
    packed[size - 1] ^= 1; /* in the Adler-32 checksum */
    write_chunk(&deflated, packed, size, 0);
    expect("deflate stream is damaged");
    write_chunk(&deflated, values, sizeof values / 2, 0);
    expect("deflate stream is damaged");
    write_chunk(&deflated, values, sizeof values / 2, 1); /* its filter was skipped */
    expect(NULL);
    write_chunk(&deflated, values, sizeof values / 2 - 4, 1);
    expect("its size is not that of its values");
    write_chunk(&deflated, values, sizeof values, 1);
    expect("its size is not that of its values");
    size = sizeof packed;
    compress(packed, &size, (const Bytef *)values, sizeof values);
    write_chunk(&deflated, packed, size, 0);
    expect("it has more values than its shape");
    size = sizeof packed;
    compress(packed, &size, (const Bytef *)values, sizeof values / 2 - 4);
    write_chunk(&deflated, packed, size, 0);
    expect("it has fewer values than its shape");
    static const unsigned char large[CHUNK_VALUES * 4 + 4096];
    write_chunk(&deflated, large, sizeof large, 0);
    expect("it is larger than its values");
    memcpy(packed, values, sizeof values / 2);
    write_chunk(&summed, packed, sizeof values / 2 + 4, 0);
    expect("its checksum is wrong");
    write_chunk(&summed, packed, 3, 0);
    expect("its checksum is wrong");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_types),           cmocka_unit_test(test_grids),
    cmocka_unit_test(test_padded_integers), cmocka_unit_test(test_bytes),
    cmocka_unit_test(test_memory),          cmocka_unit_test(test_damage),
};
TEST_GROUP(raw, make_name, remove_file)
