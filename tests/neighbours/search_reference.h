/* search_reference.h: matrices in memory, and the neighbours given by the canonical distances of
 * all pairs. */
#ifndef CLPIPE_TESTS_SEARCH_SEARCH_REFERENCE_H
#define CLPIPE_TESTS_SEARCH_SEARCH_REFERENCE_H

#include "runner.h"

#include "kmeans.h"
#include "kmeans/canonical.h"
#include "kmeans/transform.h"
#include "neighbours/choice.h"
#include "neighbours/neighbours.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory_matrix {
    uint32_t dimension;
    float *values;
};

static enum status read_memory(void *context, uint64_t first, uint64_t count, float *rows,
                               struct error *err)
{
    (void)err;
    const struct memory_matrix *matrix = context;
    memcpy(rows, matrix->values + first * matrix->dimension,
           (size_t)count * matrix->dimension * sizeof *rows);
    return STATUS_OK;
}

struct entry {
    double squared;
    int64_t row;
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->squared != y->squared ? (x->squared > y->squared) - (x->squared < y->squared)
                                    : (x->row > y->row) - (x->row < y->row);
}

/* Returns the rows of `source` in the metric's space, padded. */
static float *transformed(const struct matrix_source *source, enum cluster_metric metric,
                          uint32_t *stride)
{
    struct error err = ERROR_INIT;
    const struct memory_matrix *matrix = source->context;
    *stride = (source->dimension + KMEANS_LANES - 1) / KMEANS_LANES * KMEANS_LANES;
    float *rows = malloc((size_t)source->rows * *stride * sizeof *rows);
    const struct transform transform = {metric, source->dimension, *stride, "row"};
    assert_int_equal(
        transform_rows(&transform, NULL, rows, matrix->values, 0, (uint32_t)source->rows, &err),
        STATUS_OK);
    return rows;
}

/* Compares the neighbours of one row with the definition. own: the row's own number, or -1 for
 * none. */
static inline void check_row(const struct neighbours *got, uint64_t query, const float *x,
                             int64_t own, const float *rows, uint64_t count, uint32_t stride)
{
    struct entry *all = malloc((count + got->n) * sizeof *all);
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++)
        if ((int64_t)i != own)
            all[found++] =
                (struct entry){canonical_distance(x, rows + i * stride, stride), (int64_t)i};
    qsort(all, found, sizeof *all, compare);
    for (uint32_t i = 0; i < got->n; i++) {
        const int64_t row = got->rows[query * got->n + i];
        const double squared = got->squared[query * got->n + i];
        assert_int_equal(row, i < found ? all[i].row : -1);
        if (i < found)
            assert_memory_equal(&squared, &all[i].squared, sizeof squared);
        else
            assert_true(isnan(squared));
    }
    free(all);
}

static inline void check_all(const struct matrix_source *source,
                             const struct neighbours_config *config)
{
    struct error err = ERROR_INIT;
    struct neighbours got;
    uint32_t stride;
    float *rows = transformed(source, config->metric, &stride);
    if (neighbours_find(&got, source, NULL, config, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(got.queries, source->rows);
    assert_int_equal(got.n, config->n);
    for (uint64_t i = 0; i < source->rows; i++)
        check_row(&got, i, rows + i * stride, (int64_t)i, rows, source->rows, stride);
    neighbours_clear(&got);
    free(rows);
}

static uint32_t random_state;

static float uniform(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(random_state >> 8) * 0x1p-24f;
}

enum pattern { NOISE, CLUMPS, SPARSE, DUPLICATES, ZEROS, HUGE_VALUES, OUTLIER, LADDER, PATTERNS };

static float value(enum pattern pattern, uint64_t row, uint32_t column)
{
    switch (pattern) {
    case NOISE:
        return uniform() - 0.5f;
    case CLUMPS:
        return (float)(row % 7 * (column % 5)) + 1e-3f * uniform();
    case SPARSE:
        return uniform() < 0.9f ? 0 : uniform();
    case DUPLICATES:
        return (float)((row % 11 * 31 + column * 7) % 13);
    case ZEROS:
        return row % 3 ? 0 : uniform();
    case HUGE_VALUES:
        return (uniform() - 0.5f) * 3e38f;
    case OUTLIER:
        return row == 5 ? 1e30f : row == 6 ? 1e-30f * uniform() : uniform();
    default:
        return column == row % 40 ? ldexpf(1, (int)(row % 90) - 45) : 0;
    }
}

static struct matrix_source make(struct memory_matrix *matrix, uint64_t rows, uint32_t dimension,
                                 enum pattern pattern)
{
    matrix->dimension = dimension;
    matrix->values = malloc((size_t)rows * dimension * sizeof *matrix->values);
    for (uint64_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < dimension; j++)
            matrix->values[i * dimension + j] = value(pattern, i, j);
    return (struct matrix_source){
        .rows = rows, .dimension = dimension, .read = read_memory, .context = matrix};
}

#endif
