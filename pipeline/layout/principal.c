/* principal.c: the first two principal components, by subspace iteration on a sample of rows. */
#include "base/minmax.h"
#include "cluster/workers.h"
#include "layout/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE        8192u       /* rows that determine the axes, */
#define SAMPLE_VALUES (16u << 20) /* fewer if they have more values than this */
#define BLOCK         256u        /* rows summed in order by one thread */
/* More axes than needed: convergence then depends on the ratio of the second and the fifth. */
#define AXES       4u
#define ITERATIONS 30u

struct principal {
    const struct matrix_source *matrix;
    enum cluster_metric metric;
    const struct layout_config *config;
    struct workers *workers;
    uint32_t dimension;
    float *rows; /* the centred sample; later the rows being projected */
    uint64_t count;
    double *mean; /* dimension */
    double *axis; /* AXES x dimension, orthonormal */
    double *part; /* per block of rows: AXES x dimension */
    float *xy;    /* output for the rows in `rows` */
};

/* Transforms a row into the metric's space; false if it is undefined there. */
static bool transform(float *row, uint32_t dimension, enum cluster_metric metric)
{
    double length = 0;
    for (uint32_t j = 0; j < dimension; j++) {
        if (!isfinite(row[j]) || (metric == METRIC_HELLINGER && row[j] < 0))
            return false;
        length += (double)row[j] * row[j];
    }
    if (metric == METRIC_COSINE && length == 0)
        return false;
    for (uint32_t j = 0; j < dimension && metric != METRIC_EUCLIDEAN; j++)
        row[j] = metric == METRIC_HELLINGER ? sqrtf(row[j]) : (float)(row[j] / sqrt(length));
    return true;
}

/* The sample is evenly spaced from the first row to the last. */
static enum status read_sample(struct principal *principal, struct error *err)
{
    const uint64_t total = principal->matrix->rows;
    const uint32_t dimension = principal->dimension;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < principal->count; i++) {
        float *row = principal->rows + kept * dimension;
        enum status status =
            matrix_read(principal->matrix, i * total / principal->count, 1, row, err);
        if (status == STATUS_OK)
            status = stop_check(principal->config->stop, "the map was made", err);
        if (status != STATUS_OK)
            return status;
        if (matrix_is_blank(principal->matrix, row) || !transform(row, dimension, principal->metric))
            continue;
        for (uint32_t j = 0; j < dimension; j++)
            principal->mean[j] += row[j];
        kept++;
    }
    const double finite = kept ? (double)kept : 1;
    for (uint32_t j = 0; j < dimension; j++)
        principal->mean[j] /= finite;
    for (uint64_t i = 0; i < kept; i++)
        for (uint32_t j = 0; j < dimension; j++)
            principal->rows[i * dimension + j] -= (float)principal->mean[j];
    principal->count = kept;
    return STATUS_OK;
}

static double dot(const float *row, const double *axis, uint32_t dimension)
{
    /* Four sums, to hide the latency of additions. */
    double sum[4] = {0, 0, 0, 0};
    uint32_t j = 0;
    for (; j + 4 <= dimension; j += 4)
        for (unsigned l = 0; l < 4; l++)
            sum[l] += row[j + l] * axis[j + l];
    for (; j < dimension; j++)
        sum[0] += row[j] * axis[j];
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* A block's contribution to rows' * rows * axes. */
static void multiply_block(void *context, uint64_t block)
{
    const struct principal *principal = context;
    const uint32_t dimension = principal->dimension;
    const uint64_t end = min_u64((block + 1) * BLOCK, principal->count);
    double *part = principal->part + block * AXES * dimension;
    memset(part, 0, AXES * dimension * sizeof *part);
    for (uint64_t i = block * BLOCK; i < end; i++) {
        const float *row = principal->rows + i * dimension;
        for (unsigned a = 0; a < AXES; a++) {
            const double along = dot(row, principal->axis + (size_t)a * dimension, dimension);
            for (uint32_t j = 0; j < dimension; j++)
                part[(size_t)a * dimension + j] += along * row[j];
        }
    }
}

/* Gram-Schmidt, applied twice for accuracy. Vanishing axes stay zero: the rank is lower. */
static void orthonormalise(double *axis, uint32_t dimension)
{
    for (unsigned a = 0; a < AXES; a++) {
        double *here = axis + (size_t)a * dimension, length = 0, before = 0;
        for (uint32_t j = 0; j < dimension; j++)
            before += here[j] * here[j];
        for (unsigned pass = 0; pass < 2; pass++) {
            for (unsigned b = 0; b < a; b++) {
                const double *other = axis + (size_t)b * dimension;
                double along = 0;
                for (uint32_t j = 0; j < dimension; j++)
                    along += here[j] * other[j];
                for (uint32_t j = 0; j < dimension; j++)
                    here[j] -= along * other[j];
            }
        }
        for (uint32_t j = 0; j < dimension; j++)
            length += here[j] * here[j];
        const double scale = length > 1e-20 * before && length > 0 ? 1 / sqrt(length) : 0;
        for (uint32_t j = 0; j < dimension; j++)
            here[j] *= scale;
    }
}

static enum status find_axes(struct principal *principal, struct error *err)
{
    const size_t values = (size_t)AXES * principal->dimension;
    const uint64_t blocks = (principal->count + BLOCK - 1) / BLOCK;
    uint32_t state = 1;
    for (size_t i = 0; i < values; i++) {
        state = state * 1664525u + 1013904223u; /* a linear congruential generator suffices */
        principal->axis[i] = (double)(state >> 8) / (1 << 24) - 0.5;
    }
    orthonormalise(principal->axis, principal->dimension);
    for (unsigned iteration = 0; iteration < ITERATIONS; iteration++) {
        enum status status = stop_check(principal->config->stop, "the map was made", err);
        if (status != STATUS_OK)
            return status;
        workers_run(principal->workers, multiply_block, principal, blocks);
        memset(principal->axis, 0, values * sizeof *principal->axis);
        for (uint64_t b = 0; b < blocks; b++)
            for (size_t i = 0; i < values; i++)
                principal->axis[i] += principal->part[b * values + i];
        orthonormalise(principal->axis, principal->dimension);
    }
    return STATUS_OK;
}

static void project_block(void *context, uint64_t block)
{
    const struct principal *principal = context;
    const uint32_t dimension = principal->dimension;
    const uint64_t end = min_u64((block + 1) * BLOCK, principal->count);
    for (uint64_t i = block * BLOCK; i < end; i++) {
        float *row = principal->rows + i * dimension, *to = principal->xy + 2 * i;
        to[0] = to[1] = 0;
        if (matrix_is_blank(principal->matrix, row) || !transform(row, dimension, principal->metric))
            continue;
        for (uint32_t j = 0; j < dimension; j++)
            row[j] -= (float)principal->mean[j];
        for (unsigned a = 0; a < 2; a++)
            to[a] = (float)dot(row, principal->axis + (size_t)a * dimension, dimension);
    }
}

static enum status project(struct principal *principal, float *xy, uint64_t at_once,
                           struct error *err)
{
    const uint64_t total = principal->matrix->rows;
    for (uint64_t first = 0; first < total; first += principal->count) {
        principal->count = min_u64(at_once, total - first);
        principal->xy = xy + 2 * first;
        enum status status =
            matrix_read(principal->matrix, first, principal->count, principal->rows, err);
        if (status == STATUS_OK)
            status = stop_check(principal->config->stop, "the map was made", err);
        if (status != STATUS_OK)
            return status;
        workers_run(principal->workers, project_block, principal,
                    (principal->count + BLOCK - 1) / BLOCK);
    }
    return STATUS_OK;
}

enum status layout_principal(float *xy, const struct matrix_source *matrix,
                             enum cluster_metric metric, const struct layout_config *config,
                             struct error *err)
{
    const uint32_t dimension = matrix->dimension;
    const uint64_t fitting = max_u64(SAMPLE_VALUES / dimension, BLOCK);
    const uint64_t sample = min_u64(min_u64(matrix->rows, fitting), SAMPLE);
    const uint64_t blocks = (sample + BLOCK - 1) / BLOCK;
    struct principal principal = {.matrix = matrix,
                                  .metric = metric,
                                  .config = config,
                                  .dimension = dimension,
                                  .count = sample};
    if (matrix->rows == 0)
        return STATUS_OK;
    principal.rows = malloc(sample * dimension * sizeof *principal.rows);
    principal.mean = calloc(dimension, sizeof *principal.mean);
    principal.axis = malloc((size_t)AXES * dimension * sizeof *principal.axis);
    principal.part = malloc(blocks * AXES * dimension * sizeof *principal.part);
    enum status status = STATUS_OK;
    if (!principal.rows || !principal.mean || !principal.axis || !principal.part)
        status = error_memory(err, sample * dimension * sizeof *principal.rows,
                              "the principal components of a map");
    if (status == STATUS_OK)
        status = workers_open(&principal.workers, config->threads, err);
    if (status == STATUS_OK)
        status = read_sample(&principal, err);
    if (status == STATUS_OK)
        status = find_axes(&principal, err);
    if (status == STATUS_OK)
        status = project(&principal, xy, sample, err);
    workers_close(&principal.workers);
    free(principal.part);
    free(principal.axis);
    free(principal.mean);
    free(principal.rows);
    return status;
}
