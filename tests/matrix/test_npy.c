/* test_npy.c: the reader and writer of .npy: all types and versions, wrong and hostile headers, and
 * thousands of valid headers with random changes. The files are in memory. */
#include "runner.h"

#include "matrix/npy.h"

#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUZZ_ROUNDS 30000

static int memory = -1;
static char path[64];

static int open_memory(void **state)
{
    (void)state;
    memory = memfd_create("npy", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    return memory < 0;
}

static int close_memory(void **state)
{
    (void)state;
    close(memory);
    return 0;
}

/* Makes a file of these `size` bytes. */
static void put(const void *bytes, size_t size)
{
    assert_int_equal(ftruncate(memory, 0), 0);
    assert_int_equal(pwrite(memory, bytes, size, 0), (ssize_t)size);
}

/* Writes the magic, version, length, `text` and a newline, followed by `size` bytes of data. */
static size_t put_array(int version, const char *text, const void *data, size_t size)
{
    unsigned char file[4096] = "\223NUMPY";
    size_t length = strlen(text) + 1, at = version == 1 ? 10 : 12;
    file[6] = (unsigned char)version;
    for (size_t i = 8; i < at; i++)
        file[i] = (unsigned char)(length >> 8 * (i - 8));
    memcpy(file + at, text, length - 1);
    file[at + length - 1] = '\n';
    assert_true(at + length + size <= sizeof file);
    if (size > 0)
        memcpy(file + at + length, data, size);
    put(file, at + length + size);
    return at + length;
}

static void expect_refusal(const char *words)
{
    struct error err = ERROR_INIT;
    struct matrix_source npy = {.context = &err};
    assert_int_equal(npy_open(&npy, path, false, &err), STATUS_FAILED);
    assert_null(npy.context);
    if (!strstr(err.sentence, words) || !strstr(err.sentence, path))
        fail_msg("the message is '%s'; it lacks '%s'", err.sentence, words);
    assert_null(strchr(err.sentence, '\n'));
}

static struct matrix_source expect_open(uint64_t rows, uint32_t dimension)
{
    struct error err = ERROR_INIT;
    struct matrix_source npy;
    if (npy_open(&npy, path, false, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(npy.rows, rows);
    assert_int_equal(npy.dimension, dimension);
    return npy;
}

/* --- types ------------------------------------------------------------------------------------ */

static void test_types(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        unsigned char bytes[2][8];
        float values[2];
    } types[] = {
        {"<f4", {{0, 0, 0x80, 0x3f}, {1, 0, 0, 0x80}}, {1, -0x1p-149f}},
        {"=f4", {{0, 0, 0x80, 0x3f}, {0, 0, 0x80, 0xff}}, {1, -INFINITY}},
        /* 0.1, and a double outside the range of float32. */
        {"<f8",
         {{0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f}, {0, 0, 0, 0, 0, 0, 0, 0x7e}},
         {0.1f, INFINITY}},
        {"<f8",
         {{0, 0, 0, 0, 0, 0, 0xa0, 0x36}, {0, 0, 0, 0, 0, 0, 0x80, 0xb6}},
         {0x1p-149f, -0.0f}},
        {"<f2", {{0, 0x3c}, {0xff, 0xfb}}, {1, -65504}},
        {"|i1", {{127}, {128}}, {127, -128}},
        {">i1", {{1}, {255}}, {1, -1}},
        {"|u1", {{127}, {255}}, {127, 255}},
        {"<i2", {{0xff, 0x7f}, {0, 0x80}}, {32767, -32768}},
        {"<u2", {{0xff, 0x7f}, {0xff, 0xff}}, {32767, 65535}},
        /* 2^24 + 1 is halfway between two floats and is rounded to even. */
        {"<i4", {{1, 0, 0, 1}, {0, 0, 0, 0x80}}, {0x1p24f, -0x1p31f}},
        {"<u4", {{3, 0, 0, 1}, {255, 255, 255, 255}}, {0x1p24f + 4, 0x1p32f}},
        {"<i8", {{1, 0, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 0x80}}, {0x1p24f, -0x1p63f}},
        {"<u8", {{0, 0, 0, 0, 1}, {255, 255, 255, 255, 255, 255, 255, 255}}, {0x1p32f, 0x1p64f}},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char text[120];
        unsigned char data[16];
        const size_t item = (size_t)(types[i].descr[2] - '0');
        memcpy(data, types[i].bytes[0], item);
        memcpy(data + item, types[i].bytes[1], item);
        for (int version = 1; version <= 3; version++) {
            float values[2] = {7, 7};
            struct error err = ERROR_INIT;
            snprintf(text, sizeof text,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (2, 1), }", types[i].descr);
            put_array(version, text, data, 2 * item);
            struct matrix_source npy = expect_open(2, 1);
            assert_int_equal(matrix_read(&npy, 0, 2, values, &err), STATUS_OK);
            if (memcmp(values, types[i].values, sizeof values) != 0)
                fail_msg("%s: %.9g and %.9g", types[i].descr, (double)values[0], (double)values[1]);
            matrix_close(&npy);
            assert_null(npy.context);
        }
    }
}

/* Big-endian values are those of the table with the bytes reversed; arrays in column order are
 * returned by rows. */
static void test_orders(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        unsigned char bytes[8];
        float value;
    } types[] = {
        {">f2", {0x3c, 0}, 1},
        {">f4", {0x80, 0, 0, 1}, -0x1p-149f},
        {">f8", {0x3f, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a}, 0.1f},
        {">i2", {0xfe, 0xff}, -257},
        {">u2", {0xfe, 0xff}, 65279},
        {">i4", {0x80, 0, 0, 0}, -0x1p31f},
        {">u4", {1, 0, 0, 3}, 0x1p24f + 4},
        {">i8", {255, 255, 255, 255, 255, 255, 255, 254}, -2},
        {">u8", {0, 0, 0, 1, 0, 0, 0, 0}, 0x1p32f},
    };
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char text[120];
        float value = 7;
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (1, 1), }",
                 types[i].descr);
        put_array(1, text, types[i].bytes, (size_t)(types[i].descr[2] - '0'));
        struct matrix_source npy = expect_open(1, 1);
        assert_int_equal(matrix_read(&npy, 0, 1, &value, &err), STATUS_OK);
        if (memcmp(&value, &types[i].value, sizeof value) != 0)
            fail_msg("%s: %.9g", types[i].descr, (double)value);
        matrix_close(&npy);
    }
    /* 300 rows of 2 columns: longer than one read of part of a column. */
    enum { ROWS = 300 };
    uint16_t columns[2][ROWS];
    float rows[ROWS][2];
    for (uint16_t i = 0; i < ROWS; i++) {
        columns[0][i] = i;
        columns[1][i] = (uint16_t)(i + 1000);
    }
    for (int big = 0; big < 2; big++) {
        for (int i = 0; big && i < 2 * ROWS; i++)
            columns[i / ROWS][i % ROWS] = __builtin_bswap16(columns[i / ROWS][i % ROWS]);
        put_array(2,
                  big ? "{'descr': '>u2', 'fortran_order': True, 'shape': (300, 2), }"
                      : "{'descr': '<u2', 'fortran_order': True, 'shape': (300, 2), }",
                  columns, sizeof columns);
        struct matrix_source npy = expect_open(ROWS, 2);
        for (uint64_t first = 0; first < ROWS; first += 150)
            assert_int_equal(matrix_read(&npy, first, 150, rows[first], &err), STATUS_OK);
        for (int i = 0; i < ROWS; i++)
            if (rows[i][0] != (float)i || rows[i][1] != (float)(i + 1000))
                fail_msg("row %d is %.9g, %.9g", i, (double)rows[i][0], (double)rows[i][1]);
        matrix_close(&npy);
    }
}

/* All float16 values. */
static void test_halves(void **state)
{
    (void)state;
    static unsigned char file[16 + 128 + 0x20000];
    static float values[0x10000];
    struct error err = ERROR_INIT;
    const char *text = "{'descr': '<f2', 'fortran_order': False, 'shape': (256, 256)}";
    size_t data = put_array(1, text, NULL, 0);
    assert_int_equal(pread(memory, file, data, 0), (ssize_t)data);
    for (size_t i = 0; i < 0x10000; i++) {
        file[data + 2 * i] = (unsigned char)i;
        file[data + 2 * i + 1] = (unsigned char)(i >> 8);
    }
    put(file, data + 0x20000);
    struct matrix_source npy = expect_open(256, 256);
    assert_int_equal(matrix_read(&npy, 0, 256, values, &err), STATUS_OK);
    matrix_close(&npy);
    for (unsigned i = 0; i < 0x10000; i++) {
        int exponent = (int)(i >> 10 & 31);
        double size =
            ldexp(exponent ? 1024 + (i & 1023) : i & 1023, (exponent ? exponent : 1) - 25);
        if (exponent == 31)
            size = i & 1023 ? (double)NAN : (double)INFINITY;
        double wanted = i & 0x8000 ? -size : size;
        if (isnan(wanted) ? !isnan(values[i])
                          : (double)values[i] != wanted || !signbit(values[i]) != !signbit(wanted))
            fail_msg("float16 %04x is %.9g, not %.9g", i, (double)values[i], wanted);
    }
}

static void test_reading_parts(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    int16_t data[60];
    float values[60];
    for (int i = 0; i < 60; i++)
        data[i] = (int16_t)(i * 100 - 3000);
    put_array(1, "{'descr': '<i2', 'fortran_order': False, 'shape': (20, 3), }", data, sizeof data);
    struct matrix_source npy = expect_open(20, 3);
    for (uint64_t first = 0; first <= 20; first++)
        for (uint64_t count = 0; count <= 20 - first; count++) {
            assert_int_equal(matrix_read(&npy, first, count, values, &err), STATUS_OK);
            for (uint64_t i = 0; i < 3 * count; i++)
                assert_true(values[i] == (float)data[3 * first + i]);
        }
    static const uint64_t beyond[][2] = {
        {0, 21}, {20, 1}, {21, 0}, {1, UINT64_MAX}, {UINT64_MAX, 1}};
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++)
        assert_int_equal(matrix_read(&npy, beyond[i][0], beyond[i][1], values, &err),
                         STATUS_FAILED);
    /* The file is truncated while it is open. */
    assert_int_equal(ftruncate(memory, 150), 0);
    err = (struct error)ERROR_INIT;
    assert_int_equal(matrix_read(&npy, 0, 20, values, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "was truncated"));
    matrix_close(&npy);
    matrix_close(&npy);
}

/* Rows longer than the reader's buffer, which is not a multiple of a row. */
static void test_long_rows(void **state)
{
    (void)state;
    const uint32_t dimension = 300007, rows = 3;
    const size_t count = (size_t)rows * dimension;
    double *data = malloc(count * sizeof *data);
    float *values = malloc(count * sizeof *values);
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < count; i++)
        data[i] = (double)i;
    size_t at =
        put_array(2, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 300007)}", NULL, 0);
    assert_int_equal(pwrite(memory, data, count * sizeof *data, (off_t)at),
                     (ssize_t)(count * sizeof *data));
    struct matrix_source npy = expect_open(rows, dimension);
    assert_int_equal(matrix_read(&npy, 0, rows, values, &err), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        assert_true(values[i] == (float)i);
    assert_int_equal(matrix_read(&npy, 2, 1, values, &err), STATUS_OK);
    assert_true(values[0] == (float)(2 * dimension));
    matrix_close(&npy);
    free(data);
    free(values);
}

/* --- headers ---------------------------------------------------------------------------------- */

static void test_spellings(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }",
        "{'descr':'<f4','fortran_order':False,'shape':(2,2)}",
        "{\"shape\": (2, 2,), \"descr\": \"<f4\", \"fortran_order\": False}   ",
        "  { 'shape' : ( 2 , 2 ) , 'fortran_order' : False , 'descr' : '<f4' , }\t\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 2L), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (02, 000000000000000000000000002), }",
    };
    const float data[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        put_array(1 + (int)i % 3, good[i], data, sizeof data);
        struct matrix_source npy = expect_open(2, 2);
        matrix_close(&npy);
    }
}

static void test_wrong_headers(void **state)
{
    (void)state;
#define REST "'fortran_order': False, 'shape': (2, 2), }"
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"", "damaged"},
        {"{}", "damaged"},
        {"{", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, }", "damaged"},
        {"{'descr': '<f4', 'shape': (2, 2), }", "damaged"},
        {"{'fortran_order': False, 'shape': (2, 2), }", "damaged"},
        {"{'descr': '<f4', 'descr': '<f4', " REST, "damaged"},
        {"{'descr': '<f4', 'more': 1, " REST, "damaged"},
        {"{'descr': '<f4' " REST, "damaged"},
        {"{'descr' '<f4', " REST, "damaged"},
        {"{'descr': <f4, " REST, "damaged"},
        {"{'descr': '<f4, " REST, "damaged"},
        {"{'descr': '<f4\", " REST, "damaged"},
        {"{'descr': '\\x3cf4', " REST, "damaged"},
        {"{'descr': '<f4444444444444444444444444444444444444444', " REST, "damaged"},
        {"{'descr': '<f4', " REST " more", "damaged"},
        {"{'descr': '<f4', 'fortran_order': Falsely, 'shape': (2, 2), }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 2), }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2, 2, }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2), }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -2), }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2.0), }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,), }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616, 2), }",
         "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "0 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "1 dimension;"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 1), }", "3 dimensions"},
        {"{'descr': '>f3', " REST, "'>f3'"},
        {"{'descr': '<f3', " REST, "'<f3'"},
        {"{'descr': '<f16', " REST, "'<f16'"},
        {"{'descr': '<f', " REST, "'<f'"},
        {"{'descr': '', " REST, "''"},
        {"{'descr': '<f4 ', " REST, "'<f4 '"},
        {"{'descr': '<f+4', " REST, "'<f+4'"},
        {"{'descr': 'f4', " REST, "'f4'"},
        {"{'descr': '!f4', " REST, "'!f4'"},
        {"{'descr': '<f99999999999999999999', " REST, "'<f99999999999999999999'"},
        {"{'descr': '<c8', " REST, "'<c8'"},
        {"{'descr': '|b1', " REST, "'|b1'"},
        {"{'descr': '|O', " REST, "'|O'"},
        {"{'descr': [('a', '<f4')], " REST, "named fields"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", "24 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 1), }",
         "impossible"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
         "impossible"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4294967296), }", "impossible"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952, 1), }",
         "impossible"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976, 1), }",
         "truncated"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4294967295), }", "truncated"},
    };
    const float data[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put_array(1 + (int)i % 3, bad[i].text, data, sizeof data);
        expect_refusal(bad[i].words);
    }
    /* A NUL byte that a string parser would take for the end. */
    size_t at = put_array(1, "{'descr': '<f4', " REST, data, sizeof data);
    assert_int_equal(pwrite(memory, "", 1, (off_t)at - 1), 1);
    expect_refusal("damaged");
}

static void test_lengths(void **state)
{
    (void)state;
    const float data[4] = {1, 2, 3, 4};
    const char *text = "{'descr': '<f4', " REST;
    static const unsigned char lengths[][4] = {
        {0}, {1}, {255, 255}, {255, 255, 255, 255}, {0, 0, 0, 128}, {0, 0, 16, 0}};
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            put_array(version, text, data, sizeof data);
            size_t bytes = version == 1 ? 2 : 4;
            assert_int_equal(pwrite(memory, lengths[i], bytes, 8), (ssize_t)bytes);
            expect_refusal("damaged");
        }
    /* The file is truncated at each length. */
    size_t whole = put_array(1, text, data, sizeof data) + sizeof data;
    while (whole-- > 0) {
        assert_int_equal(ftruncate(memory, (off_t)whole), 0);
        expect_refusal("");
    }
    /* Versions that do not exist. */
    static const unsigned char versions[][2] = {{0, 0}, {4, 0}, {1, 1}, {255, 255}};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        put_array(1, text, data, sizeof data);
        assert_int_equal(pwrite(memory, versions[i], 2, 6), 2);
        expect_refusal("supported are 1.0 to 3.0");
    }
    put_array(1, text, data, sizeof data);
    assert_int_equal(pwrite(memory, "\224NUMPZ", 6, 0), 6);
    expect_refusal("not a .npy file");
}

static void test_not_a_regular_file(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct matrix_source npy;
    assert_int_equal(npy_open(&npy, "/nonexistent/x.npy", false, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "/nonexistent/x.npy"));
    err = (struct error)ERROR_INIT;
    assert_int_equal(npy_open(&npy, "/", false, &err), STATUS_FAILED);
    err = (struct error)ERROR_INIT;
    assert_int_equal(npy_open(&npy, "/dev/null", false, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "not a regular file"));
}

/* --- changed headers -------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Changes `size` bytes in place, with space for twice as many; returns the new size. */
static size_t mutate(unsigned char *bytes, size_t size, uint64_t *state)
{
    static const char *const pieces[] = {
        "'",          "(",           ")",         "{",    "}", ",",
        ":",          "\\",          "\"",        "0",    "9", "18446744073709551615",
        "4294967295", "L",           "'shape': ", "True", ">", "[",
        "\n",         "99999999999", "(1,)",      " "};
    for (uint64_t changes = 1 + next_random(state) % 4; changes > 0 && size > 1; changes--) {
        size_t at = next_random(state) % size;
        const char *piece = pieces[next_random(state) % (sizeof pieces / sizeof pieces[0])];
        size_t length = strlen(piece), gone;
        switch (next_random(state) % 6) {
        case 0:
            bytes[at] ^= (unsigned char)(1u << next_random(state) % 8);
            break;
        case 1:
            bytes[at] = (unsigned char)next_random(state);
            break;
        case 2: /* delete */
            gone = 1 + next_random(state) % 8;
            gone = gone < size - at ? gone : size - at;
            memmove(bytes + at, bytes + at + gone, size - at - gone);
            size -= gone;
            break;
        case 3: /* insert */
            memmove(bytes + at + length, bytes + at, size - at);
            memcpy(bytes + at, piece, length);
            size += length;
            break;
        case 4: /* overwrite */
            length = length < size - at ? length : size - at;
            memcpy(bytes + at, piece, length);
            break;
        default:
            if (next_random(state) % 4 == 0)
                size = at;
        }
    }
    return size;
}

/* A file that opens can be read to the last row and not beyond. */
static void use(const struct matrix_source *npy, size_t size, uint64_t round)
{
    struct error err = ERROR_INIT;
    const uint64_t rows = npy->rows, dimension = npy->dimension;
    if (rows > 0 && dimension > 0 && (rows > size || dimension > size || rows * dimension > size))
        fail_msg("round %llu: %llu x %llu values in %zu bytes", (unsigned long long)round,
                 (unsigned long long)rows, (unsigned long long)dimension, size);
    float *values = malloc((rows > 0 ? dimension : 0) * sizeof *values + 1);
    assert_non_null(values);
    if (rows > 0) {
        assert_int_equal(matrix_read(npy, 0, 1, values, &err), STATUS_OK);
        assert_int_equal(matrix_read(npy, rows - 1, 1, values, &err), STATUS_OK);
    }
    assert_int_equal(matrix_read(npy, rows, 1, values, &err), STATUS_FAILED);
    free(values);
}

static void test_changed_headers(void **state)
{
    (void)state;
    static const char *const seeds[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3), }",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (10, 6), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 7), }",
        "{'descr': '<f2', 'fortran_order': True, 'shape': (30,), }",
    };
    const float data[15] = {1, 2, 3};
    unsigned char seed[256], bytes[1024];
    uint64_t random = 20;
    unsigned opened = 0;
    for (uint64_t round = 0; round < FUZZ_ROUNDS; round++) {
        struct error err = ERROR_INIT;
        struct matrix_source npy = {0};
        const char *text = seeds[round % (sizeof seeds / sizeof seeds[0])];
        size_t size = put_array(1 + (int)(round / 4 % 3), text, data, sizeof data) + sizeof data;
        assert_int_equal(pread(memory, seed, sizeof seed, 0), (ssize_t)size);
        memcpy(bytes, seed, size);
        size = mutate(bytes, size, &random);
        put(bytes, size);
        enum status status = npy_open(&npy, path, false, &err);
        if (status == STATUS_OK) {
            opened++;
            use(&npy, size, round);
        } else if (status != STATUS_FAILED || npy.context || !err.sentence[0]) {
            fail_msg("round %llu: status %d, '%s'", (unsigned long long)round, status,
                     err.sentence);
        }
        matrix_close(&npy);
    }
    /* A sufficient share of the changed files is still valid. */
    assert_in_range(opened, FUZZ_ROUNDS / 50, FUZZ_ROUNDS / 2);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void test_writing(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char header[256], wanted[80];
    static const uint64_t shapes[][2] = {{0, 3}, {1, 1}, {100000, 768}, {INT64_MAX, UINT32_MAX}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        put("", 0);
        assert_int_equal(lseek(memory, 0, SEEK_SET), 0);
        assert_int_equal(npy_write_header(memory, "<f4", shapes[i][0], shapes[i][1], "x", &err),
                         STATUS_OK);
        ssize_t size = pread(memory, header, sizeof header - 1, 0);
        assert_true(size > 10 && size % 64 == 0);
        header[size] = 0;
        assert_memory_equal(header, "\223NUMPY\1\0", 8);
        assert_int_equal((unsigned char)header[8] + 256 * (unsigned char)header[9], size - 10);
        snprintf(wanted, sizeof wanted, "'shape': (%llu, %llu)", (unsigned long long)shapes[i][0],
                 (unsigned long long)shapes[i][1]);
        assert_non_null(strstr(header + 10, wanted));
        assert_int_equal(header[size - 1], '\n');
    }
    /* Reads the values back. */
    const float rows[6] = {1, 2, 3, 4, 5, 6};
    float back[6];
    put("", 0);
    assert_int_equal(lseek(memory, 0, SEEK_SET), 0);
    assert_int_equal(npy_write_header(memory, "<f4", 3, 2, "x", &err), STATUS_OK);
    assert_int_equal(write(memory, rows, sizeof rows), (ssize_t)sizeof rows);
    struct matrix_source npy = expect_open(3, 2);
    assert_int_equal(matrix_read(&npy, 0, 3, back, &err), STATUS_OK);
    assert_memory_equal(back, rows, sizeof rows);
    matrix_close(&npy);
    /* An array with one dimension. */
    put("", 0);
    assert_int_equal(lseek(memory, 0, SEEK_SET), 0);
    assert_int_equal(npy_write_header(memory, "<i4", 3, 0, "x", &err), STATUS_OK);
    assert_int_equal(write(memory, rows, 12), 12);
    expect_refusal("1 dimension;");
    /* A full disk is reported. */
    int full = open("/dev/full", O_WRONLY);
    if (full >= 0) {
        err = (struct error)ERROR_INIT;
        assert_int_equal(npy_write_header(full, "<f4", 3, 2, "x.npy", &err), STATUS_FAILED);
        assert_non_null(strstr(err.sentence, "x.npy"));
        close(full);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_types),
    cmocka_unit_test(test_orders),
    cmocka_unit_test(test_halves),
    cmocka_unit_test(test_reading_parts),
    cmocka_unit_test(test_long_rows),
    cmocka_unit_test(test_spellings),
    cmocka_unit_test(test_wrong_headers),
    cmocka_unit_test(test_lengths),
    cmocka_unit_test(test_not_a_regular_file),
    cmocka_unit_test(test_changed_headers),
    cmocka_unit_test(test_writing),
};
TEST_GROUP(npy, open_memory, close_memory)
