/* test_matrix.c: columns, and the number of distinct rows. */
#include "runner.h"

#include "matrix/matrix.h"

#include <stdlib.h>
#include <string.h>

struct values {
    const float *value;
    uint32_t columns;
    uint64_t most_rows; /* maximum number of rows per read */
};

static enum status read_values(void *context, uint64_t first, uint64_t count, float *rows,
                               struct error *err)
{
    struct values *values = context;
    if (!values->value)
        return error_set(err, STATUS_FAILED, "these rows cannot be read");
    if (count > values->most_rows)
        values->most_rows = count;
    memcpy(rows, values->value + first * values->columns,
           (size_t)count * values->columns * sizeof *rows);
    return STATUS_OK;
}

static struct matrix_source matrix_of(struct values *values, uint64_t rows)
{
    return (struct matrix_source){
        .rows = rows, .dimension = values->columns, .read = read_values, .context = values};
}

static void test_column(void **state)
{
    (void)state;
    static const float value[] = {1, -2, 3.5f};
    struct values values = {value, 1, 0};
    struct matrix_source matrix = matrix_of(&values, 3);
    struct error err = ERROR_INIT;
    float *column;
    assert_int_equal(matrix_column(&column, &matrix, "w.npy", &err), STATUS_OK);
    assert_memory_equal(column, value, sizeof value);
    free(column);
    matrix.rows = 0;
    assert_int_equal(matrix_column(&column, &matrix, "w.npy", &err), STATUS_OK);
    assert_non_null(column);
    free(column);
    matrix.dimension = 3;
    assert_int_equal(matrix_column(&column, &matrix, "w.npy", &err), STATUS_FAILED);
    assert_string_equal(err.sentence,
                        "w.npy has 0 rows of 3 columns; expected one row or one column");
    assert_null(column);
    values.value = NULL;
    matrix = matrix_of(&values, 3);
    assert_int_equal(matrix_column(&column, &matrix, "w.npy", &err), STATUS_FAILED);
    assert_string_equal(err.sentence, "these rows cannot be read");
    assert_null(column);
}

static void test_distinct(void **state)
{
    (void)state;
    /* The third row differs from the first only before square roots are taken. */
    static const float value[] = {1, 4, 1, 9, 1, 4.0000005f, 1, 4, 0, 0};
    struct values values = {value, 2, 0};
    struct matrix_source matrix = matrix_of(&values, 5);
    struct error err = ERROR_INIT;
    uint32_t distinct;
    assert_int_equal(matrix_distinct(&distinct, &matrix, 10, false, &err), STATUS_OK);
    assert_int_equal(distinct, 4);
    assert_int_equal(matrix_distinct(&distinct, &matrix, 10, true, &err), STATUS_OK);
    assert_int_equal(distinct, 3);
    assert_int_equal(matrix_distinct(&distinct, &matrix, 2, false, &err), STATUS_OK);
    assert_int_equal(distinct, 2);
    values.value = NULL;
    assert_int_equal(matrix_distinct(&distinct, &matrix, 2, false, &err), STATUS_FAILED);
}

static void test_rows_at_once(void **state)
{
    (void)state;
    const struct matrix_source wide = {.rows = 9, .dimension = 1u << 22};
    const struct matrix_source narrow = {.rows = 10000000, .dimension = 1};
    const struct matrix_source few = {.rows = 9, .dimension = 1};
    const struct matrix_source none = {.rows = 0, .dimension = 1};
    assert_int_equal(matrix_rows_at_once(&wide), 1);
    assert_int_equal(matrix_rows_at_once(&narrow), (4 << 20) / 5);
    assert_int_equal(matrix_rows_at_once(&few), 9);
    assert_int_equal(matrix_rows_at_once(&none), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_column),
    cmocka_unit_test(test_distinct),
    cmocka_unit_test(test_rows_at_once),
};
TEST_GROUP(matrix, NULL, NULL)
