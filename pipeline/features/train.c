/* train.c: from bytes to integers, through float64 and k-means. */
#include "features/train.h"
#include "base/avx2.h"
#include "base/held.h"
#include "base/workers.h"
#include "features/eigen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ITERATIONS      30u
#define SPREAD          32.0       /* largest standard deviation of projected values */
#define NOISE           (1.0 / 64) /* variance of bytes below which there is only rounding noise */
#define WORDS_PASSES    256u       /* with more, seeding uses the few passes of k-means|| */
#define COVARIANCE_WORK (1u << 25) /* rows x columns used for the covariance, at most */
#define BLOCK           256u       /* rows at a time */
#define LANES           16u        /* of inner products; columns are padded to a multiple */
#define DEVIATION_LEAST 0.5        /* of a cluster; also at least a tenth of the overall one */

struct trainer {
    struct feature_codebook *codebook;
    const struct codebook_training *training;
    struct workers *workers;
    int16_t *matrix; /* the codebook's, rows padded to a multiple of LANES */
    uint32_t padded;
    int8_t *projected; /* training->rows x codebook->projected */
};

/* --- covariance ------------------------------------------------------------------------------ */

/* The sample rows used for the covariance, and the products of their columns. */
struct products {
    const struct trainer *trainer;
    uint64_t rows, step;       /* row r is row r * step of the sample */
    uint64_t parts;            /* of the rows, each with separate sums: */
    uint64_t *sums;            /* columns x columns, j <= i; then the sums of the columns */
    int16_t (*columns)[BLOCK]; /* per part: the columns of one block of rows */
};

/* Compilers turn the inner loop into vector products only if the index cannot wrap around. */
ALWAYS_INLINE int32_t multiply(const int16_t *a, const int16_t *b, size_t count)
{
    int32_t sum = 0;
    for (size_t first = 0; first < count; first += LANES)
        for (size_t k = 0; k < LANES; k++)
            sum += a[first + k] * b[first + k];
    return sum;
}

/* Adds the products of a block's columns; missing rows are zeros. */
AVX2_TOO static void add_block(uint64_t *sums, int16_t (*column)[BLOCK], uint32_t columns)
{
    for (uint32_t i = 0; i < columns; i++) {
        uint64_t own = 0;
        for (uint32_t j = 0; j <= i; j++)
            sums[i * columns + j] += (uint32_t)multiply(column[i], column[j], BLOCK);
        for (uint32_t k = 0; k < BLOCK; k++)
            own += (uint16_t)column[i][k];
        sums[(size_t)columns * columns + i] += own;
    }
}

static void load_block(int16_t (*column)[BLOCK], const struct products *products, uint64_t first)
{
    const uint32_t columns = products->trainer->codebook->columns;
    for (uint64_t r = 0; r < BLOCK; r++) {
        const bool there = first + r < products->rows;
        const uint8_t *row = products->trainer->training->sample +
                             (there ? (first + r) * products->step * columns : 0);
        for (uint32_t i = 0; i < columns; i++)
            column[i][r] = there ? row[i] : 0;
    }
}

static void add_part(void *context, uint64_t part)
{
    const struct products *products = context;
    const uint32_t columns = products->trainer->codebook->columns;
    const uint64_t blocks = (products->rows + BLOCK - 1) / BLOCK;
    uint64_t *sums = products->sums + part * columns * (columns + 1);
    int16_t(*column)[BLOCK] = products->columns + part * columns;
    for (uint64_t block = part; block < blocks; block += products->parts) {
        load_block(column, products, block * BLOCK);
        add_block(sums, column, columns);
    }
}

/* Covariance and mean of the sample's columns, from exact sums over evenly spaced rows. */
static enum status measure(double *covariance, double *mean, const struct trainer *trainer,
                           struct error *err)
{
    const uint32_t columns = trainer->codebook->columns;
    const uint64_t most = COVARIANCE_WORK / columns;
    const size_t values = (size_t)columns * (columns + 1);
    struct products products = {.trainer = trainer, .parts = workers_count(trainer->workers)};
    products.step = (trainer->training->rows + most - 1) / most;
    products.rows = (trainer->training->rows + products.step - 1) / products.step;
    SCOPED_HELD held = {0};
    products.columns = held_array(&held, products.parts * columns, sizeof *products.columns);
    products.sums = held_array(&held, products.parts * values, sizeof *products.sums);
    const enum status status = held_check(&held, "a covariance", err);
    if (status != STATUS_OK)
        return status;
    workers_run(trainer->workers, add_part, &products, products.parts);
    for (uint64_t part = 1; part < products.parts; part++)
        for (size_t i = 0; i < values; i++)
            products.sums[i] += products.sums[part * values + i];
    const uint64_t *sums = products.sums + (size_t)columns * columns;
    const double n = (double)products.rows;
    for (uint32_t i = 0; i < columns; i++) {
        mean[i] = (double)sums[i] / n;
        for (uint32_t j = 0; j <= i; j++) /* n sum - sums: exact, below 2^63 */
            covariance[i * columns + j] = covariance[j * columns + i] =
                (double)((int64_t)(products.rows * products.sums[i * columns + j]) -
                         (int64_t)(sums[i] * sums[j])) /
                (n * n);
    }
    return status;
}

/* --- projection ------------------------------------------------------------------------------ */

/* Rounds and stores the coefficients; whether they stay below the limits with that shift. */
static bool round_projection(struct feature_codebook *codebook, const double *weights,
                             const double *mean, uint32_t shift)
{
    const uint32_t columns = codebook->columns;
    codebook->shift = shift;
    for (uint32_t j = 0; j < codebook->projected; j++) {
        double offset = 0.5, sum = 0;
        for (uint32_t i = 0; i < columns; i++) {
            const double weight = floor(weights[j * columns + i] * (double)(1 << shift) + 0.5);
            if (fabs(weight) > INT16_MAX)
                return false;
            codebook->matrix[j * columns + i] = (int16_t)weight;
            offset -= weights[j * columns + i] * mean[i];
            sum += 255 * fabs(weight);
        }
        offset = floor(offset * (double)(1 << shift) + 0.5);
        if (sum + fabs(offset) >= CODEBOOK_SUM_MAX)
            return false;
        codebook->offset[j] = (int32_t)offset;
    }
    return true;
}

/* Principal components, divided by powers of their variances, at the finest scale that fits. A
 * component without variance is 0. */
static enum status find_projection(struct trainer *trainer, double whiten, struct error *err)
{
    struct feature_codebook *codebook = trainer->codebook;
    const uint32_t columns = codebook->columns, projected = codebook->projected;
    const size_t size = (size_t)columns * columns + 2 * (size_t)columns;
    double *vectors = malloc(size * sizeof *vectors);
    if (!vectors)
        return error_memory(err, size * sizeof *vectors, "a projection");
    double *values = vectors + (size_t)columns * columns, *mean = values + columns;
    enum status status = measure(vectors, mean, trainer, err);
    if (status == STATUS_OK)
        status = eigen_symmetric(vectors, values, columns, err);
    if (status != STATUS_OK)
        goto out;
    double widest = 0;
    for (uint32_t j = 0; j < projected; j++) {
        /* At most a fourth root: exact, unlike pow. */
        const double root = values[j] > NOISE ? sqrt(values[j]) : 0;
        const double scale = root == 0       ? 0
                             : whiten == 0   ? 1
                             : whiten == 0.5 ? 1 / root
                                             : 1 / sqrt(root);
        widest = root * scale > widest ? root * scale : widest;
        for (uint32_t i = 0; i < columns; i++)
            vectors[j * columns + i] *= scale;
    }
    for (size_t i = 0; i < (size_t)projected * columns && widest > 0; i++)
        vectors[i] *= SPREAD / widest;
    uint32_t shift = 23;
    while (!round_projection(codebook, vectors, mean, shift))
        shift--;
    for (uint32_t j = 0; j < projected; j++)
        memcpy(trainer->matrix + (size_t)j * trainer->padded,
               codebook->matrix + (size_t)j * columns, columns * sizeof *codebook->matrix);
out:
    free(vectors);
    return status;
}

/* Projects one block of the sample, like codebook_project: rounds down without a division. */
AVX2_TOO static void project_block(void *context, uint64_t block)
{
    const struct trainer *trainer = context;
    const struct feature_codebook *codebook = trainer->codebook;
    const uint32_t shift = codebook->shift, middle = 1u << 31;
    int16_t row[CODEBOOK_COLUMNS_MAX + LANES] = {0};
    for (uint64_t r = block * BLOCK; r < trainer->training->rows && r < (block + 1) * BLOCK; r++) {
        for (uint32_t i = 0; i < codebook->columns; i++)
            row[i] = trainer->training->sample[r * codebook->columns + i];
        for (uint32_t j = 0; j < codebook->projected; j++) {
            const int32_t sum =
                codebook->offset[j] +
                multiply(trainer->matrix + (size_t)j * trainer->padded, row, trainer->padded);
            int32_t value = (int32_t)((((uint32_t)sum + middle) >> shift) - (middle >> shift));
            value = value > CODEBOOK_VALUE_MAX ? CODEBOOK_VALUE_MAX : value;
            value = value < -CODEBOOK_VALUE_MAX ? -CODEBOOK_VALUE_MAX : value;
            trainer->projected[r * codebook->projected + j] = (int8_t)value;
        }
    }
}

/* --- words ----------------------------------------------------------------------------------- */

static enum status read_projected(void *context, uint64_t first, uint64_t count, float *rows,
                                  struct error *err)
{
    const struct trainer *trainer = context;
    const uint32_t projected = trainer->codebook->projected;
    (void)err;
    for (uint64_t i = 0; i < count * projected; i++)
        rows[i] = trainer->projected[first * projected + i];
    return STATUS_OK;
}

static void tell_iteration(void *context, uint32_t iteration, double inertia, uint64_t moved,
                           double pruned, double seconds)
{
    const struct codebook_training *training = context;
    (void)inertia, (void)moved, (void)pruned, (void)seconds;
    watch_show(&training->watch, "codebook", iteration, ITERATIONS);
}

/* Finds the words by k-means, as whole numbers; missing words repeat the first. The outcome's labels are the words
 * of the descriptors. */
static enum status find_words(struct cluster_outcome *outcome, struct trainer *trainer,
                              const struct matrix_source *rows, struct cluster_config *config,
                              struct error *err)
{
    struct feature_codebook *codebook = trainer->codebook;
    const uint32_t projected = codebook->projected;
    uint32_t distinct;
    enum status status = matrix_distinct(&distinct, rows, codebook->words, false, err);
    if (status != STATUS_OK)
        return status;
    config->k = distinct < codebook->words ? distinct : codebook->words;
    status = cluster_run(outcome, trainer->training->devices, rows, config, err);
    for (uint32_t w = 0; w < codebook->words && status == STATUS_OK; w++) {
        const float *centroid = outcome->centroids + (w < config->k ? (size_t)w * projected : 0);
        for (uint32_t j = 0; j < projected; j++)
            codebook->word[(size_t)w * projected + j] = (int8_t)centroid[j];
    }
    return status;
}

/* Means, deviations and shares of the projected descriptors nearest to each word, which are labelled so. */
static enum status find_statistics(struct trainer *trainer, const int32_t *labels,
                                   struct error *err)
{
    struct feature_codebook *codebook = trainer->codebook;
    const uint32_t projected = codebook->projected, words = codebook->words;
    const uint64_t n = trainer->training->rows;
    const size_t values = (size_t)words * projected;
    /* Sums, then squares, of each word, and of all; then the number of each. */
    const size_t number_of_sums = 2 * (values + projected) + words;
    int64_t *sums = calloc(number_of_sums, sizeof *sums);
    if (!sums)
        return error_memory(err, number_of_sums * sizeof *sums, "the statistics of a codebook");
    int64_t *squares = sums + values + projected, *number = squares + values + projected;
    for (uint64_t r = 0; r < n; r++) {
        const int8_t *row = trainer->projected + r * projected;
        const size_t at = (size_t)labels[r] * projected;
        number[labels[r]]++;
        for (uint32_t j = 0; j < projected; j++) {
            sums[at + j] += row[j];
            squares[at + j] += row[j] * row[j];
        }
    }
    for (size_t i = 0; i < values; i++) {
        sums[values + i % projected] += sums[i];
        squares[values + i % projected] += squares[i];
    }
    for (uint32_t w = 0; w < words; w++) {
        codebook->share[w] = (double)(number[w] > 0 ? number[w] : 1) / (double)n;
        for (uint32_t j = 0; j < projected; j++) {
            const size_t i = (size_t)w * projected + j;
            const double mean_all = (double)sums[values + j] / (double)n;
            const double all = (double)squares[values + j] / (double)n - mean_all * mean_all;
            const double count = (double)number[w];
            codebook->mean[i] = number[w] > 0 ? (double)sums[i] / count : codebook->word[i];
            const double own =
                number[w] > 0 ? (double)squares[i] / count - codebook->mean[i] * codebook->mean[i]
                              : all;
            const double least = all / 100 > DEVIATION_LEAST * DEVIATION_LEAST
                                     ? all / 100
                                     : DEVIATION_LEAST * DEVIATION_LEAST;
            codebook->deviation[i] = sqrt(own > least ? own : least);
        }
    }
    free(sums);
    return STATUS_OK;
}

enum status codebook_train(struct feature_codebook *codebook, const struct descriptor *descriptor,
                           uint32_t words, const struct codebook_training *training,
                           struct error *err)
{
    *codebook = (struct feature_codebook){.columns = 0};
    if (training->rows == 0)
        return error_set(err, STATUS_USAGE, "there are no descriptors to learn a codebook from");
    enum status status = feature_codebook_allocate(codebook, descriptor->name, descriptor->columns,
                                                   descriptor->projected, words, err);
    if (status != STATUS_OK)
        return status;
    const uint32_t projected = descriptor->projected;
    struct trainer trainer = {.codebook = codebook,
                              .training = training,
                              .padded = (descriptor->columns + LANES - 1) / LANES * LANES};
    const struct matrix_source rows = {.rows = training->rows,
                                       .dimension = projected,
                                       .read = read_projected,
                                       .concurrent = true,
                                       .context = &trainer};
    struct cluster_outcome outcome = {.k = 0};
    struct cluster_config config;
    cluster_config_default(&config);
    config.whole = true;
    config.max_iter = ITERATIONS;
    /* k-means++ makes one pass per word. */
    config.init = words > WORDS_PASSES ? INIT_KMEANS_PARALLEL : INIT_KMEANSPP;
    config.memory = training->memory;
    config.threads = training->threads;
    config.watch =
        (struct watch){.stop = training->watch.stop, .context = (void *)(uintptr_t)training};
    config.iteration = tell_iteration;
    status = STATUS_FAILED;
    trainer.matrix = calloc((size_t)projected * trainer.padded, sizeof *trainer.matrix);
    trainer.projected = malloc(training->rows * projected);
    if (!trainer.matrix || !trainer.projected) {
        error_memory(err, training->rows * projected, "the sample of a codebook");
        goto out;
    }
    if (workers_open(&trainer.workers, training->threads, err) != STATUS_OK)
        goto out;
    status = find_projection(&trainer, descriptor->whiten, err);
    if (status != STATUS_OK)
        goto out;
    workers_run(trainer.workers, project_block, &trainer, (training->rows + BLOCK - 1) / BLOCK);
    status = find_words(&outcome, &trainer, &rows, &config, err);
    if (status == STATUS_OK)
        status = find_statistics(&trainer, outcome.labels, err);
out:
    cluster_outcome_clear(&outcome);
    workers_close(&trainer.workers);
    free(trainer.projected);
    free(trainer.matrix);
    if (status != STATUS_OK)
        feature_codebook_clear(codebook);
    return status;
}
