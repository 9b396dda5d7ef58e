/* test_column_stats.c: the columns' sums do not depend on how the rows come, nor on threads. */
#include "runner.h"

#include "base/random.h"
#include "cluster/transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 1111u

static float *make_rows(uint32_t dimension, uint32_t stride)
{
    float *rows = calloc((size_t)ROWS * stride, sizeof *rows);
    uint32_t state = RANDOM_START;
    assert_non_null(rows);
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t j = 0; j < dimension; j++) {
            random_next(&state);
            rows[(size_t)i * stride + j] = (float)((double)state * 0x1p-32 - 0.3) * (float)(j + 1);
        }
    return rows;
}

/* Adds all rows, `step` at a time (growing by one each time where `growing`). */
static void add_all(struct column_stats *stats, const float *rows, uint32_t dimension,
                    uint32_t stride, uint32_t step, bool growing, unsigned threads)
{
    struct error err = ERROR_INIT;
    struct workers *workers;
    assert_int_equal(workers_open(&workers, threads, &err), STATUS_OK);
    assert_int_equal(column_stats_open(stats, dimension, &err), STATUS_OK);
    for (uint32_t at = 0; at < ROWS; step += growing) {
        const uint32_t now = ROWS - at < step ? ROWS - at : step;
        assert_int_equal(
            column_stats_add(stats, workers, rows + (size_t)at * stride, NULL, now, stride, &err),
            STATUS_OK);
        at += now;
    }
    workers_close(&workers);
    assert_int_equal(stats->rows, ROWS);
}

static void check(uint32_t dimension)
{
    const uint32_t stride = (dimension + 15) / 16 * 16;
    static const struct {
        uint32_t step;
        bool growing;
        unsigned threads;
    } ways[] = {{ROWS, false, 1}, {ROWS, false, 3}, {256, false, 2}, {1, false, 1},
                {7, true, 2},     {255, false, 1},  {257, false, 3}, {600, false, 2}};
    float *rows = make_rows(dimension, stride);
    struct column_stats first = {0};
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct column_stats stats;
        add_all(&stats, rows, dimension, stride, ways[w].step, ways[w].growing, ways[w].threads);
        if (w == 0) {
            first = stats;
            continue;
        }
        for (uint32_t j = 0; j < dimension; j++) {
            double a[2] = {column_stats_mean(&first, j), column_stats_scatter(&first, j)};
            double b[2] = {column_stats_mean(&stats, j), column_stats_scatter(&stats, j)};
            if (memcmp(a, b, sizeof a) != 0 || first.largest[j] != stats.largest[j])
                fail_msg("%u columns, way %zu, column %u: %.17g and %.17g, not %.17g and %.17g",
                         dimension, w, j, b[0], b[1], a[0], a[1]);
        }
        column_stats_close(&stats);
    }
    for (uint32_t j = 0; j < dimension; j++) {
        double sum = 0, squares = 0, largest = 0;
        for (uint32_t i = 0; i < ROWS; i++) {
            sum += (double)rows[(size_t)i * stride + j];
            largest = fmax(largest, fabs((double)rows[(size_t)i * stride + j]));
        }
        for (uint32_t i = 0; i < ROWS; i++) {
            const double t = (double)rows[(size_t)i * stride + j] - sum / ROWS;
            squares += t * t;
        }
        assert_true(fabs(column_stats_mean(&first, j) - sum / ROWS) < 1e-12 * largest);
        assert_true(fabs(column_stats_scatter(&first, j) - squares) < 1e-9 * squares);
        assert_true((double)first.largest[j] == largest);
    }
    column_stats_close(&first);
    free(rows);
}

static void test_any_way(void **state)
{
    (void)state;
    static const uint32_t dimensions[] = {1, 16, 63, 64, 65, 200};
    for (size_t i = 0; i < sizeof dimensions / sizeof dimensions[0]; i++)
        check(dimensions[i]);
}

/* Rows from the middle on, added before those in front of them. */
static void test_apart(void **state)
{
    (void)state;
    const uint32_t dimension = 65, stride = 80, first = 512;
    float *rows = make_rows(dimension, stride);
    struct column_stats whole, before, stats;
    struct error err = ERROR_INIT;
    struct workers *workers;
    add_all(&whole, rows, dimension, stride, ROWS, false, 1);
    assert_int_equal(workers_open(&workers, 2, &err), STATUS_OK);
    assert_int_equal(column_stats_open(&stats, dimension, &err), STATUS_OK);
    assert_int_equal(column_stats_apart(&stats, first, ROWS - first, &err), STATUS_OK);
    memcpy(stats.origin, rows, dimension * sizeof *rows);
    for (uint32_t at = first; at < ROWS; at += 300)
        assert_int_equal(column_stats_add(&stats, workers, rows + (size_t)at * stride, NULL,
                                          ROWS - at < 300 ? ROWS - at : 300, stride, &err),
                         STATUS_OK);
    assert_int_equal(column_stats_open(&before, dimension, &err), STATUS_OK);
    assert_int_equal(column_stats_add(&before, workers, rows, NULL, first, stride, &err), STATUS_OK);
    column_stats_follow(&stats, &before);
    assert_memory_equal(stats.sum, whole.sum, whole.bytes);
    column_stats_close(&whole);
    column_stats_close(&before);
    column_stats_close(&stats);
    workers_close(&workers);
    free(rows);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_way),
                                          cmocka_unit_test(test_apart)};
TEST_GROUP(column_stats, NULL, NULL)
