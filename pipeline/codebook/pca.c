/* pca.c: a sample, its symmetric matrix, and the block power iteration.
 *
 * Matrices of float64 lie in panels of 8 columns: value (row, column) is at ((column / 8) * rows + row) * 8
 * + column % 8. So one kernel serves for all products: out(i, k) += sum over c of a(c, i) b(c, k), with a
 * panel of b in the cache while all of a passes. */
#include "codebook/pca.h"
#include "base/minmax.h"
#include "cluster/canonical.h"
#include "cluster/transform.h"
#include "codebook/eigen.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_ROWS    65536u
#define SAMPLE_BYTES   ((uint64_t)64 << 20)
#define SIDE_MOST      4096u
#define PART           64u  /* rows of the sample that a thread reads at a time */
#define PANEL          8u
#define GROUP          4u  /* rows of a tile */
#define DEPTH          128u /* rows (columns) that are added at a time */
#define STEPS_MOST     100u
#define RESIDUAL       1e-10
#define LEAST_VARIANCE 1e-12

_Static_assert((int)SPACE_COSINE == (int)METRIC_COSINE &&
                   (int)SPACE_HELLINGER == (int)METRIC_HELLINGER,
               "spaces are numbered as metrics");

struct pca {
    const struct pca_config *config;
    struct workers *workers;
    float *sample; /* rows x stride, in the space */
    uint32_t rows, columns, stride;
    double *mean;
    bool by_rows;   /* the matrix is that of rows' products, not of columns' */
    uint32_t side;  /* of the matrix, and padded to whole panels: */
    uint32_t padded;
    double *matrix; /* padded x padded */
    /* A product: */
    double *out;
    const double *a, *b;
    uint32_t depth, a_columns;
    bool symmetric; /* only i <= k is wanted */
};

/* --- products ------------------------------------------------------------------------------------ */

/* GROUP rows of a tile: out is GROUP x PANEL, a points to the first row's value. */
static void tile_plain(double *out, const double *a, const double *b, uint32_t depth)
{
    for (uint32_t c = 0; c < depth; c++)
        for (uint32_t i = 0; i < GROUP; i++)
            for (uint32_t k = 0; k < PANEL; k++)
                out[i * PANEL + k] += a[c * PANEL + i] * b[c * PANEL + k];
}

typedef void (*tile_function)(double *out, const double *a, const double *b, uint32_t depth);

#if defined(__x86_64__)

#include <immintrin.h>

/* A multiplication and an addition each, as in plain C. */
__attribute__((target("avx2"))) static void tile_avx2(double *out, const double *a, const double *b,
                                                      uint32_t depth)
{
#define EACH(DO) DO(0) DO(1) DO(2) DO(3)
#define BEGIN(i)                                                                                   \
    __m256d s##i = _mm256_loadu_pd(out + i * PANEL), t##i = _mm256_loadu_pd(out + i * PANEL + 4);
#define ADD(i)                                                                                     \
    {                                                                                              \
        const __m256d one = _mm256_broadcast_sd(a + i);                                            \
        s##i = _mm256_add_pd(s##i, _mm256_mul_pd(one, low));                                       \
        t##i = _mm256_add_pd(t##i, _mm256_mul_pd(one, high));                                      \
    }
#define END(i)                                                                                     \
    _mm256_storeu_pd(out + i * PANEL, s##i);                                                       \
    _mm256_storeu_pd(out + i * PANEL + 4, t##i);
    EACH(BEGIN)
    for (uint32_t c = 0; c < depth; c++, a += PANEL, b += PANEL) {
        const __m256d low = _mm256_loadu_pd(b), high = _mm256_loadu_pd(b + 4);
        EACH(ADD)
    }
    EACH(END)
#undef EACH
#undef BEGIN
#undef ADD
#undef END
}

static tile_function choose_tile(void)
{
    return __builtin_cpu_supports("avx2") ? tile_avx2 : tile_plain;
}

#else

static tile_function choose_tile(void)
{
    return tile_plain;
}

#endif

static void product_part(void *context, uint64_t panel)
{
    const struct pca *pca = context;
    const tile_function tile = choose_tile();
    const uint32_t last = (uint32_t)(panel + 1) * PANEL;
    const uint32_t end = pca->symmetric && last < pca->a_columns ? last : pca->a_columns;
    const double *b = pca->b + panel * pca->depth * PANEL;
    double *out = pca->out + panel * pca->a_columns * PANEL;
    for (uint32_t i = 0; i < end; i += GROUP)
        tile(out + (size_t)i * PANEL,
             pca->a + (size_t)(i / PANEL) * pca->depth * PANEL + i % PANEL, b, pca->depth);
}

/* out (a_columns x padded) += a^T b, both of `depth` rows. */
static void add_product(struct pca *pca, double *out, const double *a, uint32_t a_columns,
                        const double *b, uint32_t depth, bool symmetric)
{
    pca->out = out;
    pca->a = a;
    pca->b = b;
    pca->a_columns = a_columns;
    pca->depth = depth;
    pca->symmetric = symmetric;
    workers_run(pca->workers, product_part, pca, pca->padded / PANEL);
}

/* --- the sample and its matrix -------------------------------------------------------------------- */

struct sampling {
    struct pca *pca;
    const struct matrix_source *rows;
    struct error *errors; /* one a part */
};

/* PART rows of the sample. */
static void sample_part(void *context, uint64_t part)
{
    const struct sampling *sampling = context;
    struct pca *pca = sampling->pca;
    const struct matrix_source *rows = sampling->rows;
    const struct transform transform = {(enum cluster_metric)pca->config->space, pca->columns,
                                        pca->stride, "row"};
    const uint64_t first = part * PART, end = min_u64(first + PART, pca->rows);
    struct error *err = &sampling->errors[part];
    enum status status = stop_check(pca->config->stop, "reading rows", err);
    float *row = malloc(rows->dimension * sizeof *row);
    if (!row && status == STATUS_OK)
        status = error_memory(err, rows->dimension * sizeof *row, "a sample of rows");
    for (uint64_t i = first; i < end && status == STATUS_OK; i++) {
        const uint64_t at = i * rows->rows / pca->rows;
        status = matrix_read(rows, at, 1, row, err);
        if (status == STATUS_OK)
            status =
                transform_rows(&transform, NULL, pca->sample + i * pca->stride, row, at, 1, err);
    }
    free(row);
}

/* By all threads, where they may: chunks of a dataset have to be inflated. */
static enum status read_sample(struct pca *pca, const struct matrix_source *rows, struct error *err)
{
    const uint64_t fits = SAMPLE_BYTES / sizeof(float) / rows->dimension;
    uint64_t count = rows->rows < SAMPLE_ROWS ? rows->rows : SAMPLE_ROWS;
    count = count < fits ? count : fits > 2 ? fits : 2;
    if (rows->dimension > SIDE_MOST && count > SIDE_MOST)
        count = SIDE_MOST;
    if (count > rows->rows)
        count = rows->rows;
    pca->rows = (uint32_t)count;
    pca->columns = rows->dimension;
    pca->stride = (rows->dimension + KMEANS_LANES - 1) / KMEANS_LANES * KMEANS_LANES;
    const uint64_t parts = (count + PART - 1) / PART;
    const size_t bytes = (size_t)count * pca->stride * sizeof *pca->sample;
    struct sampling sampling = {pca, rows, calloc(parts, sizeof *sampling.errors)};
    enum status status = STATUS_OK;
    pca->sample = malloc(bytes);
    if (!sampling.errors || !pca->sample)
        status = error_memory(err, bytes, "a sample of rows");
    if (status == STATUS_OK && rows->concurrent)
        workers_run(pca->workers, sample_part, &sampling, parts);
    for (uint64_t i = 0; i < parts && status == STATUS_OK; i++) {
        if (!rows->concurrent)
            sample_part(&sampling, i);
        status = sampling.errors[i].status;
        if (status != STATUS_OK && err)
            *err = sampling.errors[i];
    }
    free(sampling.errors);
    return status;
}

/* The mean is rounded to float32, as it is stored, before it is used. */
static enum status find_mean(struct pca *pca, float *rounded, struct error *err)
{
    pca->mean = calloc(pca->columns, sizeof *pca->mean);
    if (!pca->mean)
        return error_memory(err, pca->columns * sizeof *pca->mean, "the mean of rows");
    for (uint32_t row = 0; row < pca->rows; row++)
        for (uint32_t j = 0; j < pca->columns; j++)
            pca->mean[j] += (double)pca->sample[(size_t)row * pca->stride + j];
    for (uint32_t j = 0; j < pca->columns; j++) {
        rounded[j] = (float)(pca->mean[j] / pca->rows);
        pca->mean[j] = (double)rounded[j];
    }
    return STATUS_OK;
}

/* DEPTH rows of the sample as they are, or columns as rows, in panels. */
static void fill_chunk(const struct pca *pca, double *chunk, uint32_t first, uint32_t depth)
{
    for (uint32_t c = 0; c < depth; c++)
        for (uint32_t k = 0; k < pca->padded; k++) {
            const uint32_t row = pca->by_rows ? k : first + c, column = pca->by_rows ? first + c : k;
            double *to = &chunk[((size_t)(k / PANEL) * depth + c) * PANEL + k % PANEL];
            *to = 0;
            if (k < pca->side)
                *to = (double)pca->sample[(size_t)row * pca->stride + column] - pca->mean[column];
        }
}

static enum status make_matrix(struct pca *pca, struct error *err)
{
    pca->by_rows = pca->rows < pca->columns;
    pca->side = pca->by_rows ? pca->rows : pca->columns;
    pca->padded = (pca->side + PANEL - 1) / PANEL * PANEL;
    const uint32_t all = pca->by_rows ? pca->columns : pca->rows;
    const size_t values = (size_t)pca->padded * pca->padded;
    double *chunk = calloc((size_t)DEPTH * pca->padded, sizeof *chunk);
    pca->matrix = calloc(values, sizeof *pca->matrix);
    if (!chunk || !pca->matrix) {
        free(chunk);
        return error_memory(err, values * sizeof *pca->matrix, "the covariance of rows");
    }
    enum status status = STATUS_OK;
    for (uint32_t first = 0; first < all && status == STATUS_OK; first += DEPTH) {
        const uint32_t depth = all - first < DEPTH ? all - first : DEPTH;
        fill_chunk(pca, chunk, first, depth);
        add_product(pca, pca->matrix, chunk, pca->padded, chunk, depth, true);
        status = stop_check(pca->config->stop, "adding up the covariance of rows", err);
    }
    free(chunk);
    for (uint32_t i = 0; i < pca->padded; i++)
        for (uint32_t k = 0; k < i / PANEL * PANEL; k++)
            pca->matrix[((size_t)(k / PANEL) * pca->padded + i) * PANEL + k % PANEL] =
                pca->matrix[((size_t)(i / PANEL) * pca->padded + k) * PANEL + i % PANEL];
    return status;
}

/* --- eigenvectors --------------------------------------------------------------------------------- */

/* In eight partial sums, added up in order. */
static double dot(const double *x, const double *y, uint32_t n)
{
    double sum[PANEL] = {0}, all = 0;
    for (uint32_t j = 0; j < n; j += PANEL)
        for (uint32_t l = 0; l < PANEL; l++)
            sum[l] += x[j + l] * y[j + l];
    for (uint32_t l = 0; l < PANEL; l++)
        all += sum[l];
    return all;
}

static void add_times(double *to, const double *from, double factor, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++)
        to[j] += factor * from[j];
}

/* Gram and Schmidt's, twice; what depends on others becomes zero. */
static void orthonormalise(double *vectors, uint32_t count, uint32_t n)
{
    for (uint32_t i = 0; i < count; i++) {
        double *v = vectors + (size_t)i * n;
        const double before = sqrt(dot(v, v, n));
        for (uint32_t twice = 0; twice < 2; twice++)
            for (uint32_t j = 0; j < i; j++)
                add_times(v, vectors + (size_t)j * n, -dot(v, vectors + (size_t)j * n, n), n);
        const double length = sqrt(dot(v, v, n));
        const double factor = length > before * 1e-13 ? 1 / length : 0;
        for (uint32_t j = 0; j < n; j++)
            v[j] *= factor;
    }
}

struct block {
    uint32_t count;   /* vectors, a multiple of PANEL */
    double *vectors;  /* count x padded, a vector in each row */
    double *images;   /* the matrix times them */
    double *packed;   /* the same in panels, either of them */
    double *turned;   /* count x padded */
    double *small;    /* count x count */
    double *values;   /* count */
};

/* images = the matrix times vectors. */
static void apply_matrix(struct pca *pca, struct block *block)
{
    const uint32_t n = pca->padded, count = block->count;
    double *vectors = block->packed, *images = vectors + (size_t)count * n;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t c = 0; c < n; c++)
            vectors[((size_t)(i / PANEL) * n + c) * PANEL + i % PANEL] =
                block->vectors[(size_t)i * n + c];
    memset(images, 0, (size_t)count * n * sizeof *images);
    add_product(pca, images, vectors, count, pca->matrix, n, false);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < n; k++)
            block->images[(size_t)i * n + k] =
                images[((size_t)(k / PANEL) * count + i) * PANEL + k % PANEL];
}

/* Vectors and images turned so that the vectors are the best eigenvectors in their span. */
static enum status turn(struct pca *pca, struct block *block, struct error *err)
{
    const uint32_t n = pca->padded, count = block->count;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j <= i; j++)
            block->small[i * count + j] = block->small[j * count + i] =
                dot(block->vectors + (size_t)i * n, block->images + (size_t)j * n, n);
    if (eigen_symmetric(block->small, block->values, count, err) != STATUS_OK)
        return err->status;
    for (uint32_t which = 0; which < 2; which++) {
        double **rows = which ? &block->images : &block->vectors, *from = *rows;
        memset(block->turned, 0, (size_t)count * n * sizeof *from);
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t j = 0; j < count; j++)
                add_times(block->turned + (size_t)i * n, from + (size_t)j * n,
                          block->small[i * count + j], n);
        *rows = block->turned;
        block->turned = from;
    }
    return STATUS_OK;
}

static bool converged(const struct block *block, uint32_t wanted, uint32_t n)
{
    for (uint32_t i = 0; i < wanted; i++) {
        const double *v = block->vectors + (size_t)i * n, *w = block->images + (size_t)i * n;
        double square = 0;
        for (uint32_t j = 0; j < n; j++) {
            const double t = w[j] - block->values[i] * v[j];
            square += t * t;
        }
        if (!(square <= RESIDUAL * RESIDUAL * block->values[0] * block->values[0]))
            return false;
    }
    return true;
}

static enum status iterate(struct pca *pca, struct block *block, uint32_t wanted, struct error *err)
{
    const uint32_t n = pca->padded;
    for (uint32_t i = 0; i < block->count; i++)
        for (uint32_t j = 0; j < pca->side; j++)
            block->vectors[(size_t)i * n + j] =
                canonical_random(0, i, j) - 0.5;
    for (uint32_t step = 0; step < STEPS_MOST; step++) {
        if (stop_check(pca->config->stop, "computing principal components", err) != STATUS_OK)
            return err->status;
        orthonormalise(block->vectors, block->count, n);
        apply_matrix(pca, block);
        if (turn(pca, block, err) != STATUS_OK)
            return err->status;
        if (converged(block, wanted, n))
            break;
        /* Turned vectors stay apart for a few steps without being made orthogonal. */
        for (uint32_t more = 0; more < (step < 3 ? 1 : 3); more++) {
            double *vectors = block->vectors;
            block->vectors = block->images;
            block->images = vectors;
            if (more + 1 < (step < 3 ? 1u : 3u))
                apply_matrix(pca, block);
        }
    }
    return STATUS_OK;
}

/* --- components ----------------------------------------------------------------------------------- */

/* Eigenvector i over columns, of length 1. */
static void expand(const struct pca *pca, double *axis, const double *vector)
{
    double square = 0;
    if (!pca->by_rows) {
        memcpy(axis, vector, pca->columns * sizeof *axis);
    } else {
        memset(axis, 0, pca->columns * sizeof *axis);
        for (uint32_t row = 0; row < pca->rows; row++)
            for (uint32_t j = 0; j < pca->columns; j++)
                axis[j] += vector[row] *
                           ((double)pca->sample[(size_t)row * pca->stride + j] - pca->mean[j]);
    }
    uint32_t largest = 0;
    for (uint32_t j = 0; j < pca->columns; j++) {
        square += axis[j] * axis[j];
        if (fabs(axis[j]) > fabs(axis[largest]))
            largest = j;
    }
    const double length = axis[largest] < 0 ? -sqrt(square) : sqrt(square);
    for (uint32_t j = 0; j < pca->columns; j++)
        axis[j] /= length;
}

static enum status take_components(struct pca *pca, struct projection *out,
                                   const struct block *block, uint32_t wanted, struct error *err)
{
    double *axis = malloc(pca->columns * sizeof *axis);
    out->components = malloc((size_t)wanted * pca->columns * sizeof *out->components);
    if (!axis || !out->components) {
        free(axis);
        return error_memory(err, (size_t)wanted * pca->columns * sizeof *axis, "components");
    }
    out->dimension = 0;
    for (uint32_t i = 0; i < wanted; i++) {
        const double share = block->values[i] / block->values[0];
        if (!(block->values[0] > 0) || !(share > LEAST_VARIANCE))
            break;
        const double scale = pow(share, -pca->config->whiten / 2);
        expand(pca, axis, block->vectors + (size_t)i * pca->padded);
        for (uint32_t j = 0; j < pca->columns; j++)
            out->components[(size_t)i * pca->columns + j] = (float)(scale * axis[j]);
        out->dimension++;
    }
    free(axis);
    if (out->dimension == 0 && pca->config->optional) {
        free(out->components);
        out->components = NULL;
        out->dimension = pca->columns;
    }
    return out->dimension > 0 ? STATUS_OK
                              : error_set(err, STATUS_FAILED,
                                          "all rows are alike: they have no principal components; "
                                          "--pca 0 takes them as they are");
}

static enum status find_components(struct pca *pca, struct projection *out, struct error *err)
{
    const uint32_t asked = pca->config->components;
    uint32_t wanted = asked < pca->side ? asked : pca->side;
    struct block block = {.count = 2 * asked < asked + 8 ? asked + 8 : 2 * asked};
    block.count = block.count < pca->side ? block.count : pca->side;
    block.count = (block.count + PANEL - 1) / PANEL * PANEL;
    const size_t values = (size_t)block.count * pca->padded;
    block.vectors = calloc(values, sizeof(double));
    block.images = calloc(values, sizeof(double));
    block.turned = calloc(values, sizeof(double));
    block.packed = calloc(2 * values, sizeof(double));
    block.small = calloc((size_t)block.count * (block.count + 1), sizeof(double));
    block.values = block.small + (size_t)block.count * block.count;
    enum status status = STATUS_OK;
    if (!block.vectors || !block.images || !block.turned || !block.packed || !block.small)
        status = error_memory(err, 5 * values * sizeof(double), "principal components");
    if (status == STATUS_OK)
        status = iterate(pca, &block, wanted, err);
    if (status == STATUS_OK)
        status = take_components(pca, out, &block, wanted, err);
    free(block.vectors);
    free(block.images);
    free(block.turned);
    free(block.packed);
    free(block.small);
    return status;
}

enum status pca_fit(struct projection *out, const struct matrix_source *rows,
                    const struct pca_config *config, struct error *err)
{
    struct pca pca = {.config = config};
    *out = (struct projection){
        .space = config->space, .columns = rows->dimension, .dimension = rows->dimension};
    out->mean = malloc(rows->dimension * sizeof *out->mean);
    enum status status = out->mean ? workers_open(&pca.workers, config->threads, err)
                                   : error_memory(err, rows->dimension * sizeof *out->mean, "a mean");
    if (status == STATUS_OK)
        status = read_sample(&pca, rows, err);
    if (status == STATUS_OK)
        status = find_mean(&pca, out->mean, err);
    if (status == STATUS_OK && config->components > 0)
        status = make_matrix(&pca, err);
    if (status == STATUS_OK && config->components > 0)
        status = find_components(&pca, out, err);
    workers_close(&pca.workers);
    free(pca.sample);
    free(pca.mean);
    free(pca.matrix);
    if (status != STATUS_OK)
        projection_clear(out);
    return status;
}
