/* test_neighbours.c: neighbours equal those that the canonical distances of all pairs have, whatever
 * the metric, the processor's instructions, the blocks and the ties. */
#include "runner.h"

#include "cluster/canonical.h"
#include "cluster/transform.h"
#include "kmeans.h"
#include "search/choice.h"
#include "search/neighbours.h"
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

/* The rows of `source` in the metric's space, padded. */
static float *transformed(const struct matrix_source *source, enum cluster_metric metric,
                          uint32_t *stride)
{
    struct error err = ERROR_INIT;
    const struct memory_matrix *matrix = source->context;
    *stride = (source->dimension + KMEANS_LANES - 1) / KMEANS_LANES * KMEANS_LANES;
    float *rows = malloc((size_t)source->rows * *stride * sizeof *rows);
    const struct transform transform = {metric, source->dimension, *stride, "row"};
    assert_int_equal(transform_rows(&transform, NULL, rows, matrix->values, 0,
                                    (uint32_t)source->rows, &err),
                     STATUS_OK);
    return rows;
}

/* Compares the neighbours of one row with those of the definition. own: -1 for none. */
static void check_row(const struct neighbours *got, uint64_t query, const float *x, int64_t own,
                      const float *rows, uint64_t count, uint32_t stride)
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

static void check_all(const struct matrix_source *source, const struct neighbours_config *config)
{
    struct error err = ERROR_INIT;
    struct neighbours got;
    uint32_t stride;
    float *rows = transformed(source, config->metric, &stride);
    if (neighbours_of_all(&got, source, config, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(got.queries, source->rows);
    assert_int_equal(got.n, config->n);
    for (uint64_t i = 0; i < source->rows; i++)
        check_row(&got, i, rows + i * stride, (int64_t)i, rows, source->rows, stride);
    neighbours_clear(&got);
    free(rows);
}

static uint32_t state;

static float uniform(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) * 0x1p-24f;
}

enum pattern { NOISE, CLUMPS, SPARSE, DUPLICATES, ZEROS, HUGE_VALUES, OUTLIER, LADDER, PATTERNS };

static float value(enum pattern pattern, uint64_t row, uint32_t column)
{
    switch (pattern) {
    case NOISE: return uniform() - 0.5f;
    case CLUMPS: return (float)(row % 7 * (column % 5)) + 1e-3f * uniform();
    case SPARSE: return uniform() < 0.9f ? 0 : uniform();
    case DUPLICATES: return (float)((row % 11 * 31 + column * 7) % 13);
    case ZEROS: return row % 3 ? 0 : uniform();
    case HUGE_VALUES: return (uniform() - 0.5f) * 3e38f;
    case OUTLIER: return row == 5 ? 1e30f : row == 6 ? 1e-30f * uniform() : uniform();
    default: return column == row % 40 ? ldexpf(1, (int)(row % 90) - 45) : 0;
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

static const char *const tiles[] = {NULL, "avx2", "plain"};

static void all_rows(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t rows;
        uint32_t dimension, n;
    } shapes[] = {{1, 3, 2}, {2, 1, 5}, {31, 16, 40}, {97, 33, 1}, {200, 20, 7}, {400, 64, 10}};
    state = test_seed();
    for (enum pattern pattern = 0; pattern < PATTERNS; pattern++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            struct memory_matrix matrix;
            const struct matrix_source source =
                make(&matrix, shapes[s].rows, shapes[s].dimension, pattern);
            for (size_t t = 0; t < sizeof tiles / sizeof *tiles; t++) {
                const struct neighbours_choice choice = {.tile = tiles[t],
                                                         .block_rows = t == 1 ? 96 : 0};
                const struct neighbours_config config = {.n = shapes[s].n,
                                                         .threads = 2,
                                                         .memory = 64u << 20,
                                                         .choice = &choice};
                check_all(&source, &config);
            }
            free(matrix.values);
        }
}

static void metrics(void **unused)
{
    (void)unused;
    struct memory_matrix matrix;
    state = test_seed();
    struct matrix_source source = make(&matrix, 210, 48, SPARSE);
    for (uint64_t i = 0; i < source.rows; i++)
        matrix.values[i * 48] += 0.01f;
    for (int metric = METRIC_EUCLIDEAN; metric <= METRIC_HELLINGER; metric++) {
        const struct neighbours_config config = {.metric = (enum cluster_metric)metric,
                                                 .n = 6,
                                                 .threads = 2,
                                                 .memory = 1 << 20};
        check_all(&source, &config);
    }
    free(matrix.values);
}

static void queries(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    struct memory_matrix matrix;
    struct neighbours got;
    uint32_t stride;
    state = test_seed();
    const struct matrix_source source = make(&matrix, 150, 20, DUPLICATES);
    const struct neighbours_config config = {
        .n = 9, .metric = METRIC_HELLINGER, .threads = 3, .memory = 16 << 10};
    float *rows = transformed(&source, config.metric, &stride);
    const uint64_t wanted[] = {149, 0, 70, 70, 3, 12, 99};
    assert_int_equal(neighbours_of_rows(&got, &source, wanted, 7, &config, &err), STATUS_OK);
    for (uint64_t i = 0; i < 7; i++)
        check_row(&got, i, rows + wanted[i] * stride, (int64_t)wanted[i], rows, 150, stride);
    neighbours_clear(&got);
    assert_int_equal(neighbours_of_values(&got, &source, matrix.values + 40, 2, &config, &err),
                     STATUS_OK);
    for (uint64_t i = 0; i < 2; i++)
        check_row(&got, i, rows + (2 + i) * stride, -1, rows, 150, stride);
    neighbours_clear(&got);
    const uint64_t beyond = 150;
    assert_int_equal(neighbours_of_rows(&got, &source, &beyond, 1, &config, &err), STATUS_USAGE);
    assert_non_null(strstr(err.sentence, "no row 150"));
    free(rows);
    free(matrix.values);
}

static void refusals(void **unused)
{
    (void)unused;
    struct memory_matrix matrix;
    struct neighbours got;
    const struct matrix_source source = make(&matrix, 40, 8, CLUMPS);
    struct neighbours_config config = {.n = 2, .threads = 1, .memory = 1 << 20};
    struct error err = ERROR_INIT;
    matrix.values[17 * 8 + 3] = NAN;
    assert_int_equal(neighbours_of_all(&got, &source, &config, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "row 17"));
    assert_null(got.rows);
    matrix.values[17 * 8 + 3] = 0;
    memset(matrix.values + 9 * 8, 0, 8 * sizeof(float));
    memset(matrix.values, 0, 8 * sizeof(float));
    config.metric = METRIC_COSINE;
    assert_int_equal(neighbours_of_all(&got, &source, &config, &err), STATUS_FAILED);
    assert_non_null(strstr(err.sentence, "row 0"));
    config.metric = METRIC_EUCLIDEAN;
    config.n = 0;
    assert_int_equal(neighbours_of_all(&got, &source, &config, &err), STATUS_USAGE);
    struct stop stop = {0};
    config.n = 2;
    config.stop = &stop;
    stop_request(&stop, STOP_SIGNAL);
    assert_int_equal(neighbours_of_all(&got, &source, &config, &err), STATUS_INTERRUPTED);
    free(matrix.values);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(all_rows), cmocka_unit_test(metrics),
                                          cmocka_unit_test(queries), cmocka_unit_test(refusals)};
TEST_GROUP(neighbours, NULL, NULL)
