/* test_joined.c: columns of several parts joined, weighted and rounded once; identities; closing of
 * parts. */
#include "runner.h"

#include "base/hash.h"
#include "matrix/joined.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 5

struct part {
    uint32_t columns;
    float start;
    const char *identity;
    unsigned closed;
};

static enum status read_part(void *context, uint64_t first, uint64_t count, float *rows,
                             struct error *err)
{
    const struct part *part = context;
    if (part->start < 0)
        return error_set(err, STATUS_FAILED, "a part cannot be read");
    for (uint64_t row = first; row < first + count; row++)
        for (uint32_t j = 0; j < part->columns; j++)
            *rows++ = part->start + (float)(10 * row + j);
    return STATUS_OK;
}

static enum status identify_part(void *context, char hex[65], struct error *err)
{
    const struct part *part = context;
    if (!part->identity)
        return error_set(err, STATUS_FAILED, "a part has no identity");
    memset(hex, part->identity[0], 64);
    hex[64] = '\0';
    return STATUS_OK;
}

static void close_part(void *context)
{
    ((struct part *)context)->closed++;
}

static struct matrix_source source_of(struct part *part)
{
    return (struct matrix_source){.rows = ROWS,
                                  .dimension = part->columns,
                                  .read = read_part,
                                  .identity = identify_part,
                                  .close = close_part,
                                  .context = part};
}

static void test_values(void **state)
{
    (void)state;
    struct part part[2] = {{.columns = 2, .start = 100}, {.columns = 1, .start = 0.1f}};
    const struct matrix_source parts[2] = {source_of(&part[0]), source_of(&part[1])};
    const struct join join = {.parts = 2, .columns = {2, 1}, .weight = {0.3, 1}};
    struct matrix_source whole;
    struct error err = ERROR_INIT;
    float rows[ROWS][3];
    assert_int_equal(joined_open(&whole, "a:0.3+b", parts, &join, &err), STATUS_OK);
    assert_int_equal(whole.rows, ROWS);
    assert_int_equal(whole.dimension, 3);
    assert_int_equal(matrix_read(&whole, 0, ROWS, rows[0], &err), STATUS_OK);
    for (int i = 0; i < ROWS; i++) {
        const float wanted[3] = {(float)((100.0 + 10 * i) * 0.3), (float)((101.0 + 10 * i) * 0.3),
                                 0.1f + (float)(10 * i)};
        assert_memory_equal(rows[i], wanted, sizeof wanted);
    }
    /* Reads some of the rows, then more than before. */
    float some[2][3];
    assert_int_equal(matrix_read(&whole, 3, 1, some[0], &err), STATUS_OK);
    assert_memory_equal(some[0], rows[3], sizeof some[0]);
    assert_int_equal(matrix_read(&whole, 1, 2, some[0], &err), STATUS_OK);
    assert_memory_equal(some, rows[1], sizeof some);
    matrix_close(&whole);
    assert_null(whole.read);
    assert_int_equal(part[0].closed, 1);
    assert_int_equal(part[1].closed, 1);
    matrix_close(&whole);
}

/* Each part is divided by its length, and the whole by the length of the weights of parts that have
 * one. */
static void test_unit_parts(void **state)
{
    (void)state;
    const struct join join = {.parts = 3,
                              .unit = true,
                              .columns = {2, 1, 2},
                              .weight = {3, 4, 12},
                              .roots = {false, false, true}};
    const struct {
        float row[5];
        double wanted[5];
    } cases[] = {
        {{3, 4, 2, 9, 16}, {3 * .6 / 13, 3 * .8 / 13, 4. / 13, 12 * .6 / 13, 12 * .8 / 13}},
        {{-3, 4, -2, 0, 0}, {-.6 * .6, .6 * .8, -.8, 0, 0}},
        {{0, 0, 7, 0, 0}, {0, 0, 1, 0, 0}},
        {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float row[5];
        memcpy(row, cases[i].row, sizeof row);
        join_row(row, &join);
        for (int j = 0; j < 5; j++)
            assert_float_equal(row[j], (float)cases[i].wanted[j], 1e-6);
    }
}

#define WIDE    30000
#define THREADS 3

static void *read_wide(void *matrix)
{
    struct error err = ERROR_INIT;
    float *rows = malloc(ROWS * (WIDE + 1) * sizeof *rows);
    if (rows && matrix_read(matrix, 0, ROWS, rows, &err) != STATUS_OK) {
        free(rows);
        rows = NULL;
    }
    return rows;
}

/* Reads a few rows at a time, with several threads if all parts allow it. */
static void test_threads(void **state)
{
    (void)state;
    struct part part[2] = {{.columns = WIDE, .start = 3}, {.columns = 1, .start = 50}};
    struct matrix_source parts[2] = {source_of(&part[0]), source_of(&part[1])};
    const struct join join = {.parts = 2, .columns = {WIDE, 1}, .weight = {1, 2}};
    struct matrix_source whole;
    struct error err = ERROR_INIT;
    pthread_t threads[THREADS];
    parts[0].concurrent = true;
    assert_int_equal(joined_open(&whole, "a+b:2", parts, &join, &err), STATUS_OK);
    assert_false(whole.concurrent);
    matrix_close(&whole);
    parts[1].concurrent = true;
    assert_int_equal(joined_open(&whole, "a+b:2", parts, &join, &err), STATUS_OK);
    assert_true(whole.concurrent);
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, read_wide, &whole), 0);
    for (int t = 0; t < THREADS; t++) {
        void *found;
        pthread_join(threads[t], &found);
        const float *rows = found;
        assert_non_null(rows);
        for (int i = 0; i < ROWS; i++) {
            assert_true(rows[i * (WIDE + 1) + WIDE - 1] == (float)(3 + 10 * i + WIDE - 1));
            assert_true(rows[i * (WIDE + 1) + WIDE] == (float)(2 * (50 + 10 * i)));
        }
        free(found);
    }
    matrix_close(&whole);
}

/* The SHA-256 of the name with its NUL and the parts' identities; clpipe files with clusters
 * contain it. */
static void test_identity(void **state)
{
    (void)state;
    struct part part[2] = {{.columns = 1, .identity = "7"}, {.columns = 1, .identity = "c"}};
    const struct matrix_source parts[2] = {source_of(&part[0]), source_of(&part[1])};
    const struct join join = {.parts = 2, .columns = {1, 1}, .weight = {2, 1}};
    struct matrix_source whole;
    struct error err = ERROR_INIT;
    char hex[65], wanted[65], bytes[6 + 64 + 64] = "a:2+b";
    struct sha256 sha;
    memset(bytes + 6, '7', 64);
    memset(bytes + 6 + 64, 'c', 64);
    sha256_init(&sha);
    sha256_update(&sha, bytes, sizeof bytes);
    sha256_hex(wanted, &sha);
    assert_int_equal(joined_open(&whole, "a:2+b", parts, &join, &err), STATUS_OK);
    assert_int_equal(whole.identity(whole.context, hex, &err), STATUS_OK);
    assert_string_equal(hex, wanted);
    part[1].identity = NULL;
    assert_int_equal(whole.identity(whole.context, hex, &err), STATUS_FAILED);
    assert_string_equal(err.sentence, "a part has no identity");
    matrix_close(&whole);
}

static void test_errors(void **state)
{
    (void)state;
    struct part part[2] = {{.columns = 1}, {.columns = UINT32_MAX}};
    struct matrix_source parts[2] = {source_of(&part[0]), source_of(&part[1])};
    struct join join = {.parts = 2, .columns = {1, UINT32_MAX}, .weight = {1, 1}};
    struct matrix_source whole;
    struct error err = ERROR_INIT;
    float row[2];
    assert_int_equal(joined_open(&whole, "a+b", parts, &join, &err), STATUS_USAGE);
    assert_non_null(strstr(err.sentence, "too many values"));
    assert_int_equal(part[0].closed, 1);
    assert_int_equal(part[1].closed, 1);
    part[1].columns = join.columns[1] = 1;
    part[1].start = -1;
    parts[1] = source_of(&part[1]);
    assert_int_equal(joined_open(&whole, "a+b", parts, &join, &err), STATUS_OK);
    assert_int_equal(matrix_read(&whole, 0, 1, row, &err), STATUS_FAILED);
    assert_string_equal(err.sentence, "a part cannot be read");
    matrix_close(&whole);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_values),  cmocka_unit_test(test_unit_parts),
    cmocka_unit_test(test_threads), cmocka_unit_test(test_identity),
    cmocka_unit_test(test_errors),
};
TEST_GROUP(joined, NULL, NULL)
