/* codebook.h: codebooks, learned from descriptors: a projection and words.
 *
 * A descriptor is a row of `columns` bytes. The projection has integer coefficients, chosen so that
 * every sum, in any order, is below 2^24 and therefore exact in float32 as well as in integers:
 *
 *     projected[j] = clamp((offset[j] + sum over i of matrix[j][i] * descriptor[i]) >> shift)
 *
 * where >> rounds down and clamp is to -127..127. The nearest word is the one with the smallest
 * squared distance, the first of several. `mean`, `deviation` and `share` are statistics of the
 * sample's projected descriptors of each word, in float64. Devices compute only with the stored
 * integers, so a codebook gives the same values everywhere. */
#ifndef CLPIPE_FEATURES_CODEBOOK_H
#define CLPIPE_FEATURES_CODEBOOK_H

#include "base/held.h"
#include "features/feature.h"

#define CODEBOOK_COLUMNS_MAX   1024u
#define CODEBOOK_PROJECTED_MAX 256u
#define CODEBOOK_SUM_MAX       (1 << 24) /* sum of the absolute terms */
#define CODEBOOK_VALUE_MAX     127

/* It owns its arrays. */
struct feature_codebook {
    char descriptor[24]; /* name of the descriptor with the version of its formula: "sift-1" */
    uint32_t columns, projected, words;
    uint32_t shift;    /* at most 23 */
    int16_t *matrix;   /* projected x columns */
    int32_t *offset;   /* projected */
    int8_t *word;      /* words x projected, -127 to 127 */
    double *mean;      /* words x projected */
    double *deviation; /* words x projected, above 0 */
    double *share;     /* per word: fraction of the sample's descriptors, above 0 */
    struct held held;  /* these arrays */
};

/* Accepts and leaves a zeroed struct. */
void feature_codebook_clear(struct feature_codebook *codebook);

/* Allocates zeroed arrays for columns, projected and words; frees everything on failure. */
enum status feature_codebook_allocate(struct feature_codebook *codebook, const char *descriptor,
                                      uint32_t columns, uint32_t projected, uint32_t words,
                                      struct error *err);

/* --- as named arrays, for logs and files ----------------------------------------------------- */

enum codebook_type {
    CODEBOOK_UINT8,
    CODEBOOK_INT8,
    CODEBOOK_INT16,
    CODEBOOK_INT32,
    CODEBOOK_FLOAT64,
};

/* rows x columns values in host byte order; a list has 1 row. */
struct codebook_array {
    const char *name; /* [a-z]+ */
    enum codebook_type type;
    uint32_t rows, columns;
    const void *values;
};

#define CODEBOOK_ARRAYS 8u

size_t codebook_array_bytes(const struct codebook_array *array); /* size of its values */

/* Sets views of all arrays, in a fixed order of names. */
void feature_codebook_arrays(struct codebook_array arrays[CODEBOOK_ARRAYS],
                             const struct feature_codebook *codebook);

/* The inverse: copies the values. The order does not matter. STATUS_FAILED with a sentence that
 * begins "SUBJECT: ": an array is missing, or this version cannot use the codebook. */
enum status feature_codebook_from_arrays(struct feature_codebook *codebook,
                                         const struct codebook_array *arrays, unsigned count,
                                         const char *subject, struct error *err);

/* Digest of names, types, shapes and values (little-endian). */
void feature_codebook_digest(char digest[FEATURE_DIGEST], const struct feature_codebook *codebook);

/* --- binding --------------------------------------------------------------------------------- */

/* Binds the codebook, which must outlive the feature: sets feature->codebook and appends
 * ",codebook=DIGEST" to feature->spec, so features with different codebooks have different specs.
 * STATUS_FAILED: it is for other descriptors, has a different number of words, or the spec has
 * another digest; the feature is then unchanged. */
enum status feature_bind_codebook(struct feature *feature, const struct feature_codebook *codebook,
                                  struct error *err);

/* --- the C reference ------------------------------------------------------------------------- */

/* The projection of a descriptor. */
void codebook_project(int8_t *projected, const struct feature_codebook *codebook,
                      const uint8_t *descriptor);
/* The number of the word nearest to a projected descriptor. */
uint32_t codebook_nearest(const struct feature_codebook *codebook, const int8_t *projected);

#endif
