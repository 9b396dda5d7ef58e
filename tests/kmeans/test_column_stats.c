/* test_column_stats.c: sums of columns do not depend on how blocks of rows are grouped, or on threads. */
#include "runner.h"

#include "base/random.h"
#include "kmeans/transform.h"

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

/* Adds all rows in groups of `step`, which grow by a block each time if `growing`. */
static void add_all(struct column_stats *stats, const float *rows, uint32_t dimension,
                    uint32_t stride, uint32_t step, bool growing, unsigned threads)
{
    struct error err = ERROR_INIT;
    struct workers *workers;
    assert_int_equal(workers_open(&workers, threads, &err), STATUS_OK);
    assert_int_equal(column_stats_open(stats, dimension, ROWS, 0, ROWS, &err), STATUS_OK);
    for (uint32_t at = 0; at < ROWS; step += growing ? 256 : 0) {
        const uint32_t now = ROWS - at < step ? ROWS - at : step;
        assert_int_equal(
            column_stats_add(stats, workers, rows + (size_t)at * stride, NULL, now, stride, &err),
            STATUS_OK);
        at += now;
    }
    workers_close(&workers);
    column_stats_follow(stats, NULL);
    assert_int_equal(stats->rows, ROWS);
}

static void check(uint32_t dimension)
{
    const uint32_t stride = (dimension + 15) / 16 * 16;
    static const struct {
        uint32_t step;
        bool growing;
        unsigned threads;
    } ways[] = {{ROWS, false, 1}, {ROWS, false, 3}, {256, false, 2},
                {256, false, 1},  {256, true, 2},   {768, false, 3}};
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

static void test_any_grouping(void **state)
{
    (void)state;
    static const uint32_t dimensions[] = {1, 16, 63, 64, 65, 200};
    for (size_t i = 0; i < sizeof dimensions / sizeof dimensions[0]; i++)
        check(dimensions[i]);
}

static const float *plain;

static void add_plain(double *sums, uint64_t from, uint64_t to, uint32_t dimension)
{
    for (uint32_t j = 0; j < dimension; j++) {
        double block[2] = {0, 0};
        for (uint64_t i = from; i < to; i++) {
            const double t = (double)plain[i * dimension + j] - (double)plain[j];
            block[0] += t;
            block[1] += t * t;
        }
        sums[j] += block[0];
        sums[dimension + j] += block[1];
    }
}

/* The documented order: rows within blocks of 256, blocks within at most 1,024 chunks, chunks, and
 * the remaining rows. */
static void test_chunks(void **state)
{
    (void)state;
    enum { DIMENSION = 16, BLOCKS = 2500, REST = 100, MANY = BLOCKS * 256 + REST };
    const uint64_t chunk = column_stats_chunk(MANY), first = 400 * chunk;
    assert_int_equal(column_stats_chunk(1), 256);
    assert_int_equal(column_stats_chunk(1024 * 256), 256);
    assert_int_equal(column_stats_chunk(1024 * 256 + 1), 512);
    assert_int_equal(chunk, 3 * 256);
    float *rows = malloc((size_t)MANY * DIMENSION * sizeof *rows);
    double wanted[2 * DIMENSION] = {0};
    uint32_t random = RANDOM_START;
    struct column_stats whole, before, stats;
    struct error err = ERROR_INIT;
    struct workers *workers;
    assert_non_null(rows);
    for (size_t i = 0; i < (size_t)MANY * DIMENSION; i++) {
        random_next(&random);
        rows[i] = (float)((double)random * 0x1p-32 - 0.3);
    }
    plain = rows;
    for (uint64_t at = 0; at < BLOCKS * 256; at += chunk) {
        double sums[2 * DIMENSION] = {0};
        for (uint64_t block = at; block < at + chunk && block < BLOCKS * 256; block += 256)
            add_plain(sums, block, block + 256, DIMENSION);
        for (uint32_t j = 0; j < 2 * DIMENSION; j++)
            wanted[j] += sums[j];
    }
    assert_int_equal(workers_open(&workers, 2, &err), STATUS_OK);
    assert_int_equal(column_stats_open(&whole, DIMENSION, MANY, 0, MANY, &err), STATUS_OK);
    enum { STEP = 274 * 256 };
    for (uint32_t at = 0; at < MANY; at += STEP)
        assert_int_equal(column_stats_add(&whole, workers, rows + (size_t)at * DIMENSION, NULL,
                                          MANY - at < STEP ? MANY - at : STEP, DIMENSION, &err),
                         STATUS_OK);
    column_stats_follow(&whole, NULL);
    assert_memory_equal(whole.sum, wanted, DIMENSION * sizeof *wanted);
    assert_memory_equal(whole.squares, wanted + DIMENSION, DIMENSION * sizeof *wanted);
    /* Two objects give the same sums; the second receives those of the first at the end. */
    assert_int_equal(column_stats_open(&stats, DIMENSION, MANY, first, MANY - first, &err),
                     STATUS_OK);
    memcpy(stats.origin, rows, DIMENSION * sizeof *rows);
    assert_int_equal(column_stats_add(&stats, workers, rows + first * DIMENSION, NULL,
                                      (uint32_t)(MANY - first), DIMENSION, &err),
                     STATUS_OK);
    assert_int_equal(column_stats_open(&before, DIMENSION, MANY, 0, first, &err), STATUS_OK);
    assert_int_equal(
        column_stats_add(&before, workers, rows, NULL, (uint32_t)first, DIMENSION, &err),
        STATUS_OK);
    column_stats_follow(&before, NULL);
    column_stats_follow(&stats, &before);
    assert_memory_equal(stats.sum, whole.sum, whole.bytes);
    column_stats_close(&whole);
    column_stats_close(&before);
    column_stats_close(&stats);
    workers_close(&workers);
    free(rows);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_grouping),
                                          cmocka_unit_test(test_chunks)};
TEST_GROUP(column_stats, NULL, NULL)
