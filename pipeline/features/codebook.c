/* codebook.c: codebooks as arrays, their digest, and the C reference of projection and
 * assignment. */
#include "features/codebook.h"

#include "base/hash.h"
#include "features/kind.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "digests of codebooks are those of little-endian values"
#endif

void feature_codebook_clear(struct feature_codebook *codebook)
{
    held_free(&codebook->held);
    *codebook = (struct feature_codebook){.columns = 0};
}

enum status feature_codebook_allocate(struct feature_codebook *codebook, const char *descriptor,
                                      uint32_t columns, uint32_t projected, uint32_t words,
                                      struct error *err)
{
    const size_t values = (size_t)words * projected;
    *codebook =
        (struct feature_codebook){.columns = columns, .projected = projected, .words = words};
    snprintf(codebook->descriptor, sizeof codebook->descriptor, "%s", descriptor);
    struct held *held = &codebook->held;
    codebook->matrix = held_array(held, (uint64_t)projected * columns, sizeof *codebook->matrix);
    codebook->offset = held_array(held, projected, sizeof *codebook->offset);
    codebook->word = held_array(held, values, sizeof *codebook->word);
    codebook->mean = held_array(held, values, sizeof *codebook->mean);
    codebook->deviation = held_array(held, values, sizeof *codebook->deviation);
    codebook->share = held_array(held, words, sizeof *codebook->share);
    const enum status status = held_check(held, "a codebook", err);
    if (status != STATUS_OK)
        feature_codebook_clear(codebook);
    return status;
}

/* --- as named arrays ------------------------------------------------------------------------- */

static size_t type_bytes(enum codebook_type type)
{
    static const size_t bytes[] = {1, 1, 2, 4, 8};
    return bytes[type];
}

size_t codebook_array_bytes(const struct codebook_array *array)
{
    return (size_t)array->rows * array->columns * type_bytes(array->type);
}

void feature_codebook_arrays(struct codebook_array arrays[CODEBOOK_ARRAYS],
                             const struct feature_codebook *codebook)
{
    const uint32_t words = codebook->words, projected = codebook->projected;
    const struct codebook_array all[CODEBOOK_ARRAYS] = {
        {"descriptor", CODEBOOK_UINT8, 1, (uint32_t)strlen(codebook->descriptor),
         codebook->descriptor},
        {"shift", CODEBOOK_INT32, 1, 1, &codebook->shift},
        {"matrix", CODEBOOK_INT16, projected, codebook->columns, codebook->matrix},
        {"offset", CODEBOOK_INT32, 1, projected, codebook->offset},
        {"word", CODEBOOK_INT8, words, projected, codebook->word},
        {"mean", CODEBOOK_FLOAT64, words, projected, codebook->mean},
        {"deviation", CODEBOOK_FLOAT64, words, projected, codebook->deviation},
        {"share", CODEBOOK_FLOAT64, 1, words, codebook->share},
    };
    memcpy(arrays, all, sizeof all);
}

void feature_codebook_digest(char digest[FEATURE_DIGEST], const struct feature_codebook *codebook)
{
    struct codebook_array arrays[CODEBOOK_ARRAYS];
    struct sha256 sha;
    char hex[65];
    feature_codebook_arrays(arrays, codebook);
    sha256_init(&sha);
    for (unsigned i = 0; i < CODEBOOK_ARRAYS; i++) {
        const uint32_t shape[3] = {(uint32_t)arrays[i].type, arrays[i].rows, arrays[i].columns};
        sha256_update(&sha, arrays[i].name, strlen(arrays[i].name) + 1);
        sha256_update(&sha, shape, sizeof shape);
        sha256_update(&sha, arrays[i].values, codebook_array_bytes(&arrays[i]));
    }
    sha256_hex(hex, &sha);
    snprintf(digest, FEATURE_DIGEST, "%.*s", FEATURE_DIGEST - 1, hex);
}

/* Describes what is wrong with the values; NULL: nothing. */
static const char *find_fault(const struct feature_codebook *codebook)
{
    for (uint32_t j = 0; j < codebook->projected; j++) {
        int64_t sum = llabs((int64_t)codebook->offset[j]);
        for (uint32_t i = 0; i < codebook->columns; i++)
            sum += 255 * llabs(codebook->matrix[(size_t)j * codebook->columns + i]);
        if (sum >= CODEBOOK_SUM_MAX)
            return "its projection is too large";
    }
    for (size_t i = 0; i < (size_t)codebook->words * codebook->projected; i++) {
        if (codebook->word[i] < -CODEBOOK_VALUE_MAX)
            return "it has a word outside the range";
        if (!isfinite(codebook->mean[i]) || !isfinite(codebook->deviation[i]) ||
            codebook->deviation[i] <= 0)
            return "it has an impossible mean or deviation";
    }
    for (uint32_t i = 0; i < codebook->words; i++) {
        if (!isfinite(codebook->share[i]) || codebook->share[i] <= 0)
            return "it has an impossible share";
    }
    return NULL;
}

static const struct codebook_array *find_array(const struct codebook_array *arrays, unsigned count,
                                               const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(arrays[i].name, name) == 0)
            return &arrays[i];
    return NULL;
}

static bool is_between(uint32_t value, uint32_t least, uint32_t most)
{
    return value >= least && value <= most;
}

enum status feature_codebook_from_arrays(struct feature_codebook *codebook,
                                         const struct codebook_array *arrays, unsigned count,
                                         const char *subject, struct error *err)
{
    char descriptor[sizeof codebook->descriptor] = "";
    struct codebook_array wanted[CODEBOOK_ARRAYS];
    *codebook = (struct feature_codebook){.columns = 0};
    const struct codebook_array *text = find_array(arrays, count, "descriptor");
    const struct codebook_array *matrix = find_array(arrays, count, "matrix");
    const struct codebook_array *word = find_array(arrays, count, "word");
    if (!text || !matrix || !word)
        return error_set(err, STATUS_FAILED, "%s: not a codebook: it has no %s", subject,
                         !text     ? "descriptor"
                         : !matrix ? "matrix"
                                   : "word");
    if (text->type != CODEBOOK_UINT8 || text->rows != 1 ||
        !is_between(text->columns, 1, sizeof descriptor - 1) ||
        !is_between(matrix->columns, 1, CODEBOOK_COLUMNS_MAX) ||
        !is_between(matrix->rows, 1, CODEBOOK_PROJECTED_MAX) ||
        !is_between(word->rows, 1, CODEBOOK_WORDS_MAX))
        return error_set(err, STATUS_FAILED, "%s: not a codebook that this version can use",
                         subject);
    memcpy(descriptor, text->values, text->columns);
    const enum status allocated = feature_codebook_allocate(codebook, descriptor, matrix->columns,
                                                            matrix->rows, word->rows, err);
    if (allocated != STATUS_OK)
        return allocated;

    enum status status = STATUS_FAILED;
    const char *fault = NULL;
    feature_codebook_arrays(wanted, codebook);
    for (unsigned i = 0; i < CODEBOOK_ARRAYS; i++) {
        const struct codebook_array *to = &wanted[i];
        const struct codebook_array *from = find_array(arrays, count, to->name);
        if (!from || from->type != to->type || from->rows != to->rows ||
            from->columns != to->columns) {
            error_set(err, STATUS_FAILED, "%s: not a codebook: its %s does not match the rest",
                      subject, to->name);
            goto out;
        }
        memcpy((void *)(uintptr_t)to->values, from->values, codebook_array_bytes(to));
    }
    fault = codebook->shift > 23 ? "its shift is too large" : find_fault(codebook);
    if (fault) {
        error_set(err, STATUS_FAILED, "%s: not a codebook that this version can use: %s", subject,
                  fault);
        goto out;
    }
    status = STATUS_OK;
out:
    if (status != STATUS_OK)
        feature_codebook_clear(codebook);
    return status;
}

/* --- binding --------------------------------------------------------------------------------- */

enum status feature_bind_codebook(struct feature *feature, const struct feature_codebook *codebook,
                                  struct error *err)
{
    const struct descriptor *descriptor = feature->kind->descriptor;
    char digest[FEATURE_DIGEST];
    if (strcmp(codebook->descriptor, descriptor->name) != 0 ||
        codebook->columns != descriptor->columns || codebook->projected != descriptor->projected)
        return error_set(err, STATUS_FAILED,
                         "feature %s needs a codebook for %s, and this is one for %s",
                         feature->name, descriptor->name, codebook->descriptor);
    if (codebook->words != feature->codebook_words)
        return error_set(err, STATUS_FAILED,
                         "feature %s needs a codebook of %u words, and this one has %u",
                         feature->name, feature->codebook_words, codebook->words);
    feature_codebook_digest(digest, codebook);
    if (feature->codebook_digest[0] && strcmp(feature->codebook_digest, digest) != 0)
        return error_set(err, STATUS_FAILED, "feature %s needs the codebook %s, and this is %s",
                         feature->name, feature->codebook_digest, digest);
    strcpy(feature->codebook_digest, digest);
    feature->codebook = codebook;
    feature_write_spec(feature);
    return STATUS_OK;
}

/* --- the C reference ------------------------------------------------------------------------- */

void codebook_project(int8_t *projected, const struct feature_codebook *codebook,
                      const uint8_t *descriptor)
{
    const int32_t one = 1 << codebook->shift;
    for (uint32_t j = 0; j < codebook->projected; j++) {
        int32_t sum = codebook->offset[j];
        for (uint32_t i = 0; i < codebook->columns; i++)
            sum += codebook->matrix[(size_t)j * codebook->columns + i] * descriptor[i];
        int32_t value = sum / one - (sum % one < 0); /* rounded down */
        value = value > CODEBOOK_VALUE_MAX ? CODEBOOK_VALUE_MAX : value;
        projected[j] = (int8_t)(value < -CODEBOOK_VALUE_MAX ? -CODEBOOK_VALUE_MAX : value);
    }
}

uint32_t codebook_nearest(const struct feature_codebook *codebook, const int8_t *projected)
{
    uint32_t nearest = 0, least = UINT32_MAX;
    for (uint32_t w = 0; w < codebook->words; w++) {
        const int8_t *word = codebook->word + (size_t)w * codebook->projected;
        uint32_t distance = 0;
        for (uint32_t j = 0; j < codebook->projected; j++)
            distance += (uint32_t)((projected[j] - word[j]) * (projected[j] - word[j]));
        if (distance < least) {
            least = distance;
            nearest = w;
        }
    }
    return nearest;
}
