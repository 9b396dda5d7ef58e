/* aggregate.c: the kinds that aggregate descriptors with a codebook: words=K counts the descriptors
 * of each word, fisher=K sums around the words. */
#include "base/avx2.h"
#include "features/codebook.h"
#include "features/kind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCALE     256u
#define SCALE_DCT 384u

/* Descriptors are not assigned to the picture's cells. */
static enum status refuse_cells(struct feature *feature, const char *spec, struct error *err)
{
    if (feature->levels > 0 || feature->grid_rows != 1 || feature->grid_columns != 1)
        return error_set(err, STATUS_USAGE, "feature '%s': %s takes no grid= and no levels=", spec,
                         feature->kind->name);
    return STATUS_OK;
}

/* Per word: the number of descriptors, the sums of their values, and the sums of squares; these
 * become two values per word and projected value. */
static enum status settle_fisher(struct feature *feature, const char *spec, struct error *err)
{
    const uint64_t pairs = (uint64_t)feature->codebook_words * feature->kind->descriptor->projected;
    if (2 * pairs + feature->codebook_words > FEATURE_DIMENSION_MAX)
        return error_set(err, STATUS_USAGE, "feature '%s': more than %u values per image", spec,
                         FEATURE_DIMENSION_MAX);
    feature->cell_bins = (uint32_t)(2 * pairs + feature->codebook_words);
    feature->cell_values = (uint32_t)(2 * pairs);
    feature->normalize = NORMALIZE_UNIT;
    return STATUS_OK;
}

static enum status settle(struct feature *feature, const char *spec, struct error *err)
{
    const enum status status = feature->fisher ? settle_fisher(feature, spec, err) : STATUS_OK;
    return status == STATUS_OK ? refuse_cells(feature, spec, err) : status;
}

/* A word's sums and the statistics of the sample. */
struct fisher_word {
    const uint32_t *sums, *squares;
    const double *mean, *deviation;
    double number; /* of all descriptors */
    double own;    /* descriptors of the word */
    double share;  /* its square root */
};

/* The formulas of docs/features.md in the same order. Divisions and square roots dominate the time;
 * vectors compute several at once. */
ALWAYS_INLINE void first_order(double *out, const struct fisher_word *word, uint32_t projected)
{
    for (uint32_t i = 0; i < projected; i++) {
        const double sum = (int32_t)word->sums[i], mean = word->mean[i];
        out[i] = (sum - word->own * mean) / (word->number * word->deviation[i] * word->share);
    }
}

ALWAYS_INLINE void second_order(double *out, const struct fisher_word *word, uint32_t projected)
{
    const double scale = word->number * word->share * sqrt(2.0);
    for (uint32_t i = 0; i < projected; i++) {
        const double sum = (int32_t)word->sums[i], square = word->squares[i];
        const double mean = word->mean[i], deviation = word->deviation[i];
        out[i] = ((square - 2 * mean * sum + word->own * mean * mean) / (deviation * deviation) -
                  word->own) /
                 scale;
    }
}

/* Signed square roots, divided by `length` and rounded. */
ALWAYS_INLINE void write_roots(float *out, const double *in, double length, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        out[i] = (float)(copysign(sqrt(fabs(in[i])), in[i]) / length);
}

/* Rounds once, at the end. Without descriptors, all values are 0. `exact` has space for all
 * values. */
AVX2_TOO static void fill_fisher(float *values, double *exact, const struct feature *feature,
                                 const uint32_t *words)
{
    const struct feature_codebook *codebook = feature->codebook;
    const uint32_t projected = codebook->projected, pairs = codebook->words * projected;
    double number = 0, length = 0;
    for (uint32_t at = 0; at < codebook->words; at++)
        number += words[at];
    for (uint32_t at = 0; number > 0 && at < codebook->words; at++) {
        const uint32_t pair = at * projected;
        const struct fisher_word word = {.sums = words + codebook->words + pair,
                                         .squares = words + codebook->words + pairs + pair,
                                         .mean = codebook->mean + pair,
                                         .deviation = codebook->deviation + pair,
                                         .number = number,
                                         .own = words[at],
                                         .share = sqrt(codebook->share[at])};
        first_order(exact + pair, &word, projected);
        second_order(exact + pairs + pair, &word, projected);
    }
    for (uint32_t i = 0; number > 0 && i < 2 * pairs; i++)
        length += fabs(exact[i]); /* of the square root, squared */
    if (length > 0)
        write_roots(values, exact, sqrt(length), 2 * pairs);
    else
        memset(values, 0, 2 * (size_t)pairs * sizeof *values);
}

static bool finish_fisher(void *values, const struct feature *feature, const uint32_t *words)
{
    double *exact = malloc(feature->dimension * sizeof *exact);
    if (!exact)
        return false;
    fill_fisher(values, exact, feature, words);
    free(exact);
    return true;
}

#define KIND(kind, side)                                                                           \
    const struct feature_kind feature_##kind = {                                                   \
        .name = #kind,                                                                             \
        .scale = side,                                                                             \
        .settle = settle,                                                                          \
        .finish = finish_fisher,                                                                   \
        .descriptor = &descriptor_##kind,                                                          \
    }

KIND(dct, SCALE_DCT);
KIND(sift, SCALE);
KIND(opsift, SCALE);
KIND(patch, SCALE);
