/* test_transform.c: a value that is not finite is found at any position in a row, with and without
 * a team of threads; the largest finite values are accepted. */
#include "runner.h"

#include "kmeans/transform.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS_MOST = 35, STRIDE = 48, ROWS = 70 };

static const float numbers[] = {0, -0.0f, 1, -FLT_MAX, FLT_MAX, FLT_TRUE_MIN, -FLT_MIN};
static const struct {
    float value;
    const char *says;
} others[] = {{INFINITY, "infinity"}, {-INFINITY, "infinity"}, {NAN, "NaN"}, {-NAN, "NaN"}};

static void check(struct workers *workers, uint32_t columns)
{
    float from[ROWS * COLUMNS_MOST], to[ROWS * STRIDE];
    const struct transform transform = {METRIC_EUCLIDEAN, columns, (columns + 15) / 16 * 16, "row"};
    struct error err = ERROR_INIT;
    for (uint32_t i = 0; i < ROWS * columns; i++)
        from[i] = numbers[i % (sizeof numbers / sizeof numbers[0])];
    assert_int_equal(transform_rows(&transform, workers, to, from, 0, ROWS, &err), STATUS_OK);
    for (uint32_t row = 0; row < ROWS; row++)
        assert_memory_equal(to + row * transform.stride, from + row * columns,
                            columns * sizeof *to);
    for (uint32_t j = 0; j < columns; j++)
        for (size_t o = 0; o < sizeof others / sizeof others[0]; o++) {
            float *bad = &from[(ROWS - 1) * columns + j];
            const float good = *bad;
            char column[32];
            *bad = others[o].value;
            snprintf(column, sizeof column, "in column %u", j);
            assert_int_equal(transform_rows(&transform, workers, to, from, 5, ROWS, &err),
                             STATUS_FAILED);
            assert_non_null(strstr(err.sentence, "row 74"));
            assert_non_null(strstr(err.sentence, others[o].says));
            assert_non_null(strstr(err.sentence, column));
            *bad = good;
        }
}

static void values_that_are_not_finite(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct workers *workers;
    assert_int_equal(workers_open(&workers, 2, &err), STATUS_OK);
    for (uint32_t columns = 1; columns <= COLUMNS_MOST; columns++) {
        check(NULL, columns);
        check(workers, columns);
    }
    workers_close(&workers);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(values_that_are_not_finite)};
TEST_GROUP(transform, NULL, NULL)
