/* pca.c: a sample, its symmetric matrix, and Chebyshev-filtered subspace iteration.
 *
 * float64 matrices are stored in panels of PRODUCT_COLUMNS columns: value (row, column) is at
 * ((column / 8) * rows + row) * 8 + column % 8. */
#include "features/pca.h"
#include "base/minmax.h"
#include "features/eigen.h"
#include "kmeans/canonical.h"
#include "kmeans/transform.h"
#include "matrix/product.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_ROWS  65536u
#define SAMPLE_BYTES ((uint64_t)64 << 20)
#define SIDE_MOST    4096u
#define PART         64u /* rows of the sample, or columns of the mean, per part */
#define PANEL        PRODUCT_COLUMNS
#define BLOCK_ROWS   32u /* of a product, per thread, */
#define BLOCK_PANELS 8u
#define DEPTH        128u /* terms of a sum added at a time */
#define CHUNK        256u /* rows (columns) of the sample expanded into panels at a time */
#define ALONE                                                                                      \
    ((uint64_t)1 << 21)     /* multiplications for which more threads are not
                                            * worthwhile */
#define PRODUCTS_MOST  400u /* with the matrix */
#define DEGREE_MOST    40u
#define RESIDUAL       1e-12
#define LEAST_VARIANCE 1e-12

_Static_assert((int)SPACE_COSINE == (int)METRIC_COSINE &&
                   (int)SPACE_HELLINGER == (int)METRIC_HELLINGER,
               "spaces are numbered as metrics");

struct pca {
    const struct pca_config *config;
    struct workers *workers;
    product_function kernel;
    float *sample; /* rows x stride, in the space */
    uint32_t rows, columns, stride;
    double *mean;
    bool by_rows;  /* Gram matrix of the rows instead of the columns' covariance */
    uint32_t side; /* of the matrix, and padded to whole panels */
    uint32_t padded;
    double *matrix; /* padded x padded */
    double *chunk;  /* CHUNK rows, or columns, of the centred sample */
};

static uint32_t round_up(uint32_t columns)
{
    return (columns + PANEL - 1) / PANEL * PANEL;
}

/* --- products ------------------------------------------------------------------------------------ */

/* out += a^T b, or a b if `straight`; panels of a and b may be parts of longer ones. */
struct product {
    product_function kernel;
    double *out;
    const double *a, *b;
    size_t a_panel, b_panel;       /* values between panels */
    uint32_t rows, columns, depth; /* of out, multiples of PANEL; terms of a sum */
    bool straight, upper;          /* upper: values below the diagonal are not needed */
};

static void product_block(const struct product *p, uint32_t first_row, uint32_t first_panel)
{
    const uint32_t end_row = min_u32(first_row + BLOCK_ROWS, p->rows);
    const uint32_t end_panel = min_u32(first_panel + BLOCK_PANELS, p->columns / PANEL);
    const uint32_t step = p->straight ? PANEL : DEPTH;
    for (uint32_t c = 0; c < p->depth; c += step)
        for (uint32_t k = first_panel; k < end_panel; k++)
            for (uint32_t i = first_row; i < end_row; i += PRODUCT_ROWS)
                p->kernel(p->out + ((size_t)k * p->rows + i) * PANEL,
                          p->straight
                              ? p->a + c / PANEL * p->a_panel + (size_t)i * PANEL
                              : p->a + i / PANEL * p->a_panel + (size_t)c * PANEL + i % PANEL,
                          p->straight ? PANEL : 1, p->straight ? 1 : PANEL,
                          p->b + k * p->b_panel + (size_t)c * PANEL, min_u32(step, p->depth - c));
}

static void product_part(void *context, uint64_t part)
{
    const struct product *p = context;
    const uint32_t across = (p->columns / PANEL + BLOCK_PANELS - 1) / BLOCK_PANELS;
    const uint32_t row = (uint32_t)(part / across) * BLOCK_ROWS;
    const uint32_t panel = (uint32_t)(part % across) * BLOCK_PANELS;
    if (!p->upper || row < (panel + BLOCK_PANELS) * PANEL)
        product_block(p, row, panel);
}

static void multiply(const struct pca *pca, struct product product)
{
    const uint64_t down = (product.rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    const uint64_t across = (product.columns / PANEL + BLOCK_PANELS - 1) / BLOCK_PANELS;
    product.kernel = pca->kernel;
    if ((uint64_t)product.rows * product.columns * product.depth >= ALONE)
        workers_run(pca->workers, product_part, &product, down * across);
    else
        for (uint64_t part = 0; part < down * across; part++)
            product_part(&product, part);
}

/* --- the sample and its matrix -------------------------------------------------------------------- */

struct sampling {
    struct pca *pca;
    const struct matrix_source *rows;
};

/* Reads PART rows of the sample. */
static enum status sample_part(void *context, uint64_t part, struct error *err)
{
    const struct sampling *sampling = context;
    struct pca *pca = sampling->pca;
    const struct matrix_source *rows = sampling->rows;
    const struct transform transform = {(enum cluster_metric)pca->config->space, pca->columns,
                                        pca->stride, "row"};
    const uint64_t first = part * PART, end = min_u64(first + PART, pca->rows);
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
    return status;
}

/* Uses all threads if the matrix allows it, since chunks of a dataset must be inflated. */
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
    const size_t bytes = (size_t)count * pca->stride * sizeof *pca->sample;
    struct sampling sampling = {pca, rows};
    pca->sample = malloc(bytes);
    if (!pca->sample)
        return error_memory(err, bytes, "a sample of rows");
    return workers_try(rows->concurrent ? pca->workers : NULL, sample_part, &sampling,
                       (count + PART - 1) / PART, err);
}

/* Computes the mean of PART columns, rounded to float32 as stored before it is used. */
static void mean_part(void *context, uint64_t part)
{
    struct pca *pca = context;
    const uint32_t first = (uint32_t)part * PART, end = min_u32(first + PART, pca->columns);
    for (uint32_t row = 0; row < pca->rows; row++)
        for (uint32_t j = first; j < end; j++)
            pca->mean[j] += (double)pca->sample[(size_t)row * pca->stride + j];
    for (uint32_t j = first; j < end; j++)
        pca->mean[j] = (double)(float)(pca->mean[j] / pca->rows);
}

static enum status find_mean(struct pca *pca, float *rounded, struct error *err)
{
    pca->mean = calloc(pca->columns, sizeof *pca->mean);
    if (!pca->mean)
        return error_memory(err, pca->columns * sizeof *pca->mean, "the mean of rows");
    workers_run(pca->workers, mean_part, pca, (pca->columns + PART - 1) / PART);
    for (uint32_t j = 0; j < pca->columns; j++)
        rounded[j] = (float)pca->mean[j];
    return STATUS_OK;
}

/* Expands rows [first, first + depth) of the sample, or columns as rows, into panels. */
struct spreading {
    struct pca *pca;
    bool columns;
    uint32_t first, depth, width; /* width: of the sample in the other direction */
};

static void spread_panel(void *context, uint64_t panel)
{
    const struct spreading *s = context;
    const struct pca *pca = s->pca;
    double *to = pca->chunk + panel * s->depth * PANEL;
    const uint32_t begin = (uint32_t)panel * PANEL;
    for (uint32_t k = begin; k < begin + PANEL; k++)
        for (uint32_t c = 0; c < s->depth; c++) {
            const uint32_t row = s->columns ? k : s->first + c;
            const uint32_t column = s->columns ? s->first + c : k;
            to[(size_t)c * PANEL + k - begin] =
                k < s->width
                    ? (double)pca->sample[(size_t)row * pca->stride + column] - pca->mean[column]
                    : 0;
        }
}

static void spread(struct pca *pca, bool columns, uint32_t first, uint32_t depth)
{
    struct spreading spreading = {pca, columns, first, depth, columns ? pca->rows : pca->columns};
    workers_run(pca->workers, spread_panel, &spreading, round_up(spreading.width) / PANEL);
}

static enum status make_matrix(struct pca *pca, struct error *err)
{
    pca->by_rows = pca->rows < pca->columns;
    pca->side = pca->by_rows ? pca->rows : pca->columns;
    pca->padded = round_up(pca->side);
    const uint32_t all = pca->by_rows ? pca->columns : pca->rows;
    const size_t values = (size_t)pca->padded * pca->padded;
    /* For either direction: `expand` needs rows. */
    pca->chunk = malloc(CHUNK * ((size_t)pca->columns + PANEL) * sizeof *pca->chunk);
    pca->matrix = calloc(values, sizeof *pca->matrix);
    if (!pca->chunk || !pca->matrix)
        return error_memory(err, values * sizeof *pca->matrix, "the covariance of rows");
    for (uint32_t first = 0; first < all; first += CHUNK) {
        const uint32_t depth = min_u32(CHUNK, all - first);
        if (stop_check(pca->config->stop, "adding up the covariance of rows", err) != STATUS_OK)
            return err->status;
        spread(pca, pca->by_rows, first, depth);
        multiply(pca, (struct product){.out = pca->matrix,
                                       .a = pca->chunk,
                                       .b = pca->chunk,
                                       .a_panel = (size_t)depth * PANEL,
                                       .b_panel = (size_t)depth * PANEL,
                                       .rows = pca->padded,
                                       .columns = pca->padded,
                                       .depth = depth,
                                       .upper = true});
    }
    for (uint32_t i = 0; i < pca->padded; i++)
        for (uint32_t k = 0; k < i / PANEL * PANEL; k++)
            pca->matrix[((size_t)(k / PANEL) * pca->padded + i) * PANEL + k % PANEL] =
                pca->matrix[((size_t)(i / PANEL) * pca->padded + k) * PANEL + i % PANEL];
    return STATUS_OK;
}

/* --- eigenvectors --------------------------------------------------------------------------------- */

struct block {
    uint32_t count;  /* vectors, a multiple of PANEL */
    double *vectors; /* padded x count */
    double *images;  /* the matrix times the vectors */
    double *other;   /* padded x count */
    double *small;   /* count x count */
    double *turn;    /* count x count, in rows and in panels */
    double *values;  /* count, in descending order */
};

/* out (rows x columns) = x^T y, both with `padded` rows. */
static void multiply_across(const struct pca *pca, double *out, const double *x, uint32_t rows,
                            const double *y, uint32_t columns)
{
    const size_t panel = (size_t)pca->padded * PANEL;
    memset(out, 0, (size_t)rows * columns * sizeof *out);
    multiply(pca, (struct product){.out = out,
                                   .a = x,
                                   .b = y,
                                   .a_panel = panel,
                                   .b_panel = panel,
                                   .rows = rows,
                                   .columns = columns,
                                   .depth = pca->padded});
}

/* out (padded x columns) += x (padded x depth) y. */
static void add_combinations(const struct pca *pca, double *out, const double *x, uint32_t depth,
                             const double *y, uint32_t columns)
{
    multiply(pca, (struct product){.out = out,
                                   .a = x,
                                   .b = y,
                                   .a_panel = (size_t)pca->padded * PANEL,
                                   .b_panel = (size_t)depth * PANEL,
                                   .rows = pca->padded,
                                   .columns = columns,
                                   .depth = depth,
                                   .straight = true});
}

static void swap(double **a, double **b)
{
    double *c = *a;
    *a = *b;
    *b = c;
}

/* Gram-Schmidt, applied twice: each panel against the previous ones, then within itself; dependent
 * vectors become zero. */
static void orthonormalise(const struct pca *pca, struct block *block)
{
    const uint32_t n = pca->padded;
    for (uint32_t twice = 0; twice < 2 * (block->count / PANEL); twice++) {
        const uint32_t before = twice / 2 * PANEL;
        double *panel = block->vectors + (size_t)before * n, length[PANEL] = {0};
        for (size_t i = 0; i < (size_t)n * PANEL; i++)
            length[i % PANEL] += panel[i] * panel[i];
        multiply_across(pca, block->small, block->vectors, before, panel, PANEL);
        for (uint32_t i = 0; i < before * PANEL; i++)
            block->small[i] = -block->small[i];
        add_combinations(pca, panel, block->vectors, before, block->small, PANEL);
        for (uint32_t l = 0; l < PANEL; l++) {
            double along[PANEL] = {0}, square = 0;
            for (size_t r = 0; r < (size_t)n * PANEL; r += PANEL)
                for (uint32_t j = 0; j < PANEL; j++)
                    along[j] += panel[r + l] * panel[r + j];
            for (size_t r = 0; r < (size_t)n * PANEL; r += PANEL) {
                for (uint32_t j = 0; j < l; j++)
                    panel[r + l] -= along[j] * panel[r + j];
                square += panel[r + l] * panel[r + l];
            }
            const double factor = square > length[l] * 1e-26 ? 1 / sqrt(square) : 0;
            for (size_t r = 0; r < (size_t)n * PANEL; r += PANEL)
                panel[r + l] *= factor;
        }
    }
}

/* Rayleigh-Ritz: rotates vectors and images to the best eigenvectors in their span. */
static enum status turn(const struct pca *pca, struct block *block, struct error *err)
{
    const uint32_t count = block->count;
    multiply_across(pca, block->turn, block->vectors, count, block->images, count);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i; j < count; j++)
            block->small[i * count + j] = block->small[j * count + i] =
                block->turn[(j / PANEL * count + i) * PANEL + j % PANEL];
    if (eigen_symmetric(block->small, block->values, count, err) != STATUS_OK)
        return err->status;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++)
            block->turn[(i / PANEL * count + j) * PANEL + i % PANEL] = block->small[i * count + j];
    for (uint32_t which = 0; which < 2; which++) {
        double **rows = which ? &block->images : &block->vectors;
        memset(block->other, 0, (size_t)count * pca->padded * sizeof *block->other);
        add_combinations(pca, block->other, *rows, count, block->turn, count);
        swap(rows, &block->other);
    }
    return STATUS_OK;
}

/* The largest residual of the first `wanted` vectors, relative to the largest eigenvalue. */
static double residual(const struct pca *pca, const struct block *block, uint32_t wanted)
{
    double largest = 0;
    for (uint32_t i = 0; i < wanted; i++) {
        const size_t first = (size_t)(i / PANEL) * pca->padded * PANEL + i % PANEL;
        double square = 0;
        for (size_t j = first; j < first + (size_t)pca->padded * PANEL; j += PANEL) {
            const double t = block->images[j] - block->values[i] * block->vectors[j];
            square += t * t;
        }
        largest = square > largest ? square : largest;
    }
    return block->values[0] > 0 ? sqrt(largest) / block->values[0] : 0;
}

/* The number of products before the next rotation: until the Chebyshev polynomial, which is at most
 * 1 up to `bound`, has grown by `gain` at the last eigenvalue wanted, or by `most` at the first. */
static uint32_t choose_degree(double first, double last, double bound, double gain, double most)
{
    const double t[2] = {2 * first / bound - 1, 2 * last / bound - 1};
    double before[2] = {1, 1}, now[2] = {t[0], t[1]};
    uint32_t degree = 1;
    for (; degree < DEGREE_MOST && now[1] < gain; degree++) {
        for (uint32_t i = 0; i < 2; i++) {
            const double next = 2 * t[i] * now[i] - before[i];
            before[i] = now[i];
            now[i] = next;
        }
        if (now[0] > most)
            break;
    }
    return degree;
}

/* vectors = the matrix polynomial of this degree times vectors; images = the matrix times them. */
static void filter(const struct pca *pca, struct block *block, double bound, uint32_t degree)
{
    const size_t values = (size_t)block->count * pca->padded;
    for (size_t i = 0; i < values; i++)
        block->images[i] = 2 / bound * block->images[i] - block->vectors[i];
    for (uint32_t d = 1; d < degree; d++) {
        multiply_across(pca, block->other, pca->matrix, pca->padded, block->images, block->count);
        for (size_t i = 0; i < values; i++)
            block->vectors[i] =
                4 / bound * block->other[i] - 2 * block->images[i] - block->vectors[i];
        swap(&block->vectors, &block->images);
    }
    swap(&block->vectors, &block->images);
}

static enum status iterate(const struct pca *pca, struct block *block, uint32_t wanted,
                           struct error *err)
{
    const uint32_t count = block->count;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < pca->side; j++)
            block->vectors[((size_t)(i / PANEL) * pca->padded + j) * PANEL + i % PANEL] =
                canonical_random(0, i, j) - 0.5;
    for (uint32_t products = 0, degree;; products += degree) {
        if (stop_check(pca->config->stop, "computing principal components", err) != STATUS_OK)
            return err->status;
        orthonormalise(pca, block);
        multiply_across(pca, block->images, pca->matrix, pca->padded, block->vectors, count);
        if (turn(pca, block, err) != STATUS_OK)
            return err->status;
        const double left = residual(pca, block, wanted), *values = block->values;
        if (!(left > RESIDUAL) || products >= PRODUCTS_MOST)
            return STATUS_OK;
        degree = 1;
        if (values[count - 1] > 1e-14 * values[0]) {
            degree = choose_degree(values[0], values[wanted - 1], values[count - 1],
                                   10 * left / RESIDUAL, products > 0 ? 1e13 : 1e5);
            filter(pca, block, values[count - 1], degree);
        } else {
            swap(&block->vectors, &block->images);
        }
    }
}

/* --- components ----------------------------------------------------------------------------------- */

/* x^-exponent, with an exponent below 1, by square roots, which are the same in all libraries. */
static double negative_power(double x, double exponent)
{
    double power = 1;
    while (exponent > 0) {
        x = sqrt(x);
        exponent *= 2;
        if (exponent >= 1) {
            power *= x;
            exponent -= 1;
        }
    }
    return 1 / power;
}

/* Eigenvectors over columns, padded, of any length; `out`: where to compute them if necessary. */
static const double *expand(struct pca *pca, double *out, const struct block *block,
                            uint32_t wanted)
{
    if (!pca->by_rows)
        return block->vectors;
    for (uint32_t first = 0; first < pca->rows; first += CHUNK) {
        const uint32_t depth = min_u32(CHUNK, pca->rows - first);
        spread(pca, false, first, depth);
        multiply(pca, (struct product){.out = out,
                                       .a = pca->chunk,
                                       .b = block->vectors + (size_t)first * PANEL,
                                       .a_panel = (size_t)depth * PANEL,
                                       .b_panel = (size_t)pca->padded * PANEL,
                                       .rows = round_up(pca->columns),
                                       .columns = round_up(wanted),
                                       .depth = depth});
    }
    return out;
}

/* Component i with length `scale` and its largest value positive. */
static void take_component(const struct pca *pca, float *out, const double *axes, uint32_t i,
                           double scale)
{
    const double *axis = axes + (size_t)(i / PANEL) * round_up(pca->columns) * PANEL + i % PANEL;
    double square = 0, largest = 0;
    for (size_t j = 0; j < pca->columns; j++) {
        const double value = axis[j * PANEL];
        square += value * value;
        if (fabs(value) > fabs(largest))
            largest = value;
    }
    const double length = largest < 0 ? -sqrt(square) : sqrt(square);
    for (size_t j = 0; j < pca->columns; j++)
        out[j] = (float)(scale * (axis[j * PANEL] / length));
}

static enum status take_components(struct pca *pca, struct projection *out,
                                   const struct block *block, uint32_t wanted, struct error *err)
{
    const size_t values = (size_t)round_up(wanted) * round_up(pca->columns);
    double *room = calloc(values, sizeof *room);
    out->components = malloc((size_t)wanted * pca->columns * sizeof *out->components);
    if (!room || !out->components) {
        free(room);
        return error_memory(err, values * sizeof *room, "components");
    }
    const double *axes = expand(pca, room, block, wanted);
    out->dimension = 0;
    for (uint32_t i = 0; i < wanted; i++) {
        const double share = block->values[i] / block->values[0];
        if (!(block->values[0] > 0) || !(share > LEAST_VARIANCE))
            break;
        take_component(pca, out->components + (size_t)i * pca->columns, axes, i,
                       negative_power(share, pca->config->whiten / 2));
        out->dimension++;
    }
    free(room);
    if (out->dimension == 0 && pca->config->optional) {
        free(out->components);
        out->components = NULL;
        out->dimension = pca->columns;
    }
    return out->dimension > 0 ? STATUS_OK
                              : error_set(err, STATUS_FAILED,
                                          "all rows are equal: they have no principal components; "
                                          "--pca 0 uses them unchanged");
}

static enum status find_components(struct pca *pca, struct projection *out, struct error *err)
{
    const uint32_t asked = pca->config->components, wanted = min_u32(asked, pca->side);
    const uint32_t usual = max_u32(2 * asked, asked + 8);
    /* Computes all of them at once if that costs little more. */
    const uint32_t count = round_up(3 * usual / 2 < pca->side ? usual : pca->side);
    const size_t values = (size_t)count * pca->padded, square = (size_t)count * count;
    double *room = calloc(3 * values + 2 * square + count, sizeof *room);
    if (!room)
        return error_memory(err, 3 * values * sizeof *room, "principal components");
    struct block block = {.count = count,
                          .vectors = room,
                          .images = room + values,
                          .other = room + 2 * values,
                          .small = room + 3 * values,
                          .turn = room + 3 * values + square,
                          .values = room + 3 * values + 2 * square};
    enum status status = iterate(pca, &block, wanted, err);
    if (status == STATUS_OK)
        status = take_components(pca, out, &block, wanted, err);
    free(room);
    return status;
}

enum status pca_fit(struct projection *out, const struct matrix_source *rows,
                    const struct pca_config *config, struct error *err)
{
    struct pca pca = {.config = config, .kernel = product_choose()};
    *out = (struct projection){
        .space = config->space, .columns = rows->dimension, .dimension = rows->dimension};
    out->mean = malloc(rows->dimension * sizeof *out->mean);
    enum status status = out->mean
                             ? workers_open(&pca.workers, config->threads, err)
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
    free(pca.chunk);
    if (status != STATUS_OK)
        projection_clear(out);
    return status;
}
