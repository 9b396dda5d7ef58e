/* feature_matrix.c: parses names of one or several features, and reads their rows. */
#include "result/feature_matrix.h"
#include "base/hash.h"
#include "base/parse.h"
#include "base/path.h"
#include "features/stored.h"
#include "matrix/joined.h"
#include "result/choose.h"
#include "result/identity.h"
#include "result/preset_join.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of a weight has at most nine digits, and neither exponent nor sign. */
#define LEAST_WEIGHT    1e-4
#define GREATEST_WEIGHT 1e6

/* --- one feature ----------------------------------------------------------------------------- */

struct feature_rows {
    struct result *result;
    const struct result_feature *feature;
    struct raw *raw;
    float of_code[256]; /* STORE_UINT8: the value of each stored byte */
};

static enum status read_feature(void *context, uint64_t first, uint64_t count, float *rows,
                                struct error *err)
{
    const struct feature_rows *from = context;
    const struct result_feature *feature = from->feature;
    const enum status status = raw_read_float(from->raw, first, count, rows, err);
    const bool codes = status == STATUS_OK && feature->is_float && feature->store == STORE_UINT8;
    for (uint64_t i = 0; codes && i < count * feature->dimension; i++)
        rows[i] = from->of_code[(uint8_t)rows[i]];
    return status;
}

static bool is_blank(const void *context, const float *row)
{
    const struct feature_rows *from = context;
    return matrix_row_is_zero(row, from->feature->dimension);
}

static void close_feature(void *context)
{
    struct feature_rows *from = context;
    raw_close(&from->raw);
    free(from);
}

static void find_codes(struct feature_rows *from)
{
    uint8_t codes[256];
    for (unsigned i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    stored_decode(from->of_code, STORE_UINT8, from->feature->is_signed, codes, 256);
}

static enum status identify_feature(void *context, char hex[65], struct error *err)
{
    const struct feature_rows *from = context;
    return result_feature_identity(from->result, from->feature, hex, err);
}

static enum status open_feature(struct matrix_source *out, struct result *result,
                                const struct result_feature *feature, struct error *err)
{
    struct feature_rows *from = malloc(sizeof *from);
    if (!from)
        return error_memory(err, sizeof *from, "a feature");
    *from = (struct feature_rows){.result = result, .feature = feature};
    find_codes(from);
    const enum status status = h5_open_raw(&from->raw, feature->dataset, err);
    if (status != STATUS_OK) {
        close_feature(from);
        return status;
    }
    *out = (struct matrix_source){.rows = feature->rows,
                                  .dimension = feature->dimension,
                                  .read = read_feature,
                                  .blank = feature->blank ? is_blank : NULL,
                                  .concurrent = from->raw->layout != RAW_HDF5,
                                  .identity = identify_feature,
                                  .close = close_feature,
                                  .context = from};
    return STATUS_OK;
}

/* --- several --------------------------------------------------------------------------------- */

static void take_part(struct feature_join *of, const struct result_feature *feature, double weight)
{
    const unsigned i = of->join.parts++;
    of->feature[i] = feature;
    of->join.columns[i] = feature->dimension;
    of->join.weight[i] = weight;
    of->join.roots[i] = strcmp(feature->normalize, "l1") == 0;
}

/* One NAME[:WEIGHT]. */
static enum status add_part(struct feature_join *of, const struct result *result, char *text,
                            struct error *err)
{
    char digits[32];
    char *weight = strchr(text, ':');
    if (weight)
        *weight++ = 0;
    if (of->join.parts == JOINED_MOST)
        return error_set(err, STATUS_USAGE, "more than %d features cannot be joined", JOINED_MOST);
    const struct result_feature *feature = result_feature_find(result, text);
    if (!feature)
        return error_set(err, STATUS_USAGE, "%s holds no feature '%s'", PATH_TEXT(result->path),
                         text);
    for (unsigned i = 0; i < of->join.parts; i++)
        if (of->feature[i] == feature)
            return error_set(err, STATUS_USAGE, "the feature %s is joined with itself", text);
    double value = 1;
    if (weight &&
        (!parse_double(&value, weight) || !(value >= LEAST_WEIGHT && value <= GREATEST_WEIGHT)))
        return error_set(err, STATUS_USAGE,
                         "'%s' is not a valid weight for feature %s: weights are numbers from %g "
                         "to %.0f",
                         weight, text, LEAST_WEIGHT, GREATEST_WEIGHT);
    /* Uses the value stated in the canonical name. */
    snprintf(digits, sizeof digits, "%.9g", value);
    parse_double(&value, digits);
    take_part(of, feature, value);
    return STATUS_OK;
}

/* Appends "TEXT:WEIGHT"; false: it does not fit. */
static bool append(char *to, size_t size, const char *text, double weight)
{
    const size_t used = strlen(to);
    char digits[32] = "";
    if (weight != 1)
        snprintf(digits, sizeof digits, ":%.9g", weight);
    const int more = snprintf(to + used, size - used, "%s%s%s", used > 0 ? "+" : "", text, digits);
    return (size_t)more < size - used;
}

/* Describes the rows of joined features, except name and spec. */
static void describe(struct result_feature *whole, const struct feature_join *of)
{
    *whole = (struct result_feature){.rows = of->feature[0]->rows,
                                     .is_float = true,
                                     .decode_scale = of->feature[0]->decode_scale};
    snprintf(whole->kind, sizeof whole->kind, "joined");
    for (unsigned i = 0; i < of->join.parts; i++)
        whole->dimension += of->join.columns[i];
}

static enum status name_parts(struct feature_join *of, struct result_feature *about,
                              const struct result *result, const char *name, struct error *err)
{
    enum status status = STATUS_OK;
    bool fits = true;
    char *copy = strdup(name);
    if (!copy)
        return error_memory(err, strlen(name) + 1, "joined features");
    /* "NAME[:WEIGHT]+NAME[:WEIGHT]...". */
    for (char *at = copy, *end; !status && at; at = end) {
        end = strchr(at, '+');
        if (end)
            *end++ = 0;
        status = add_part(of, result, at, err);
    }
    free(copy);
    if (status)
        return status;
    describe(about, of);
    snprintf(about->normalize, sizeof about->normalize, "%s", of->feature[0]->normalize);
    for (unsigned i = 0; i < of->join.parts; i++) {
        const struct result_feature *part = of->feature[i];
        fits = fits && append(about->name, sizeof about->name, part->name, of->join.weight[i]) &&
               append(about->spec, sizeof about->spec, part->spec, of->join.weight[i]);
        /* Values with different normalisations are treated as plain numbers. */
        if (strcmp(part->normalize, about->normalize) != 0)
            about->normalize[0] = 0;
    }
    if (!fits)
        return error_set(err, STATUS_USAGE,
                         "the names of the joined features are longer than %d characters together: "
                         "give them shorter ones when they are made (NAME=KIND...)",
                         FEATURE_NAME_MAX - 1);
    return STATUS_OK;
}

/* The text that identifies a join: a digest of specs and weights, which may be long. */
static enum status name_preset(struct feature_join *of, struct result_feature *about,
                               const struct result *result, const char *json, struct error *err)
{
    struct preset_join preset;
    struct sha256 state;
    char hex[65], weight[40];
    if (preset_join_read(&preset, json, err) != STATUS_OK)
        return STATUS_FAILED;
    sha256_init(&state);
    for (unsigned i = 0; i < preset.count; i++) {
        const struct result_feature *feature = result_feature_find(result, preset.name[i]);
        if (!feature)
            return error_set(err, STATUS_USAGE, "%s holds no feature '%s' of its preset",
                             PATH_TEXT(result->path), preset.name[i]);
        take_part(of, feature, preset.weight[i]);
        snprintf(weight, sizeof weight, "%.17g", preset.weight[i]);
        sha256_update(&state, feature->spec, strlen(feature->spec) + 1);
        sha256_update(&state, weight, strlen(weight) + 1);
    }
    sha256_hex(hex, &state);
    of->join.unit = true;
    describe(about, of);
    snprintf(about->name, sizeof about->name, "%s", RESULT_PRESET);
    snprintf(about->spec, sizeof about->spec, "%s-%.32s", RESULT_PRESET, hex);
    return STATUS_OK;
}

enum status feature_matrix_find(struct feature_join *of, struct result_feature *about,
                                const struct result *result, const char *name, struct error *err)
{
    const struct result_feature *feature;
    *of = (struct feature_join){.joined = true};
    if (result->preset && (!name || strcmp(name, RESULT_PRESET) == 0) &&
        !result_feature_find(result, RESULT_PRESET))
        return name_preset(of, about, result, result->preset, err);
    /* Only names of several features, or of one with a weight, have these characters. */
    if (name && strpbrk(name, "+:") && result->feature_count > 0)
        return name_parts(of, about, result, name, err);
    const enum status status = choose_feature(&feature, result, name, err);
    if (status != STATUS_OK)
        return status;
    *about = *feature;
    take_part(of, feature, 1);
    of->joined = false;
    return STATUS_OK;
}

static enum status open_parts(struct matrix_source *out, struct result *result,
                              const struct feature_join *of, const struct result_feature *about,
                              struct error *err)
{
    struct matrix_source part[JOINED_MOST];
    if (!of->joined)
        return open_feature(out, result, of->feature[0], err);
    for (unsigned i = 0; i < of->join.parts; i++) {
        const enum status status = open_feature(&part[i], result, of->feature[i], err);
        if (status != STATUS_OK) {
            while (i-- > 0)
                matrix_close(&part[i]);
            return status;
        }
    }
    return joined_open(out, of->join.unit ? about->spec : about->name, part, &of->join, err);
}

enum status feature_matrix_open_preset(struct matrix_source *out, struct result_feature *about,
                                       struct result *result, const char *json, struct error *err)
{
    struct feature_join of = {.joined = true};
    *out = (struct matrix_source){0};
    const enum status status = name_preset(&of, about, result, json, err);
    return status == STATUS_OK ? open_parts(out, result, &of, about, err) : status;
}

enum status feature_matrix_open(struct matrix_source *out, struct result_feature *about,
                                struct result *result, const char *name, struct error *err)
{
    struct feature_join of;
    *out = (struct matrix_source){0};
    const enum status status = feature_matrix_find(&of, about, result, name, err);
    return status == STATUS_OK ? open_parts(out, result, &of, about, err) : status;
}
