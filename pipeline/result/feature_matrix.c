/* feature_matrix.c: names of one or several features, and their rows. */
#include "result/feature_matrix.h"
#include "base/hash.h"
#include "base/parse.h"
#include "base/path.h"
#include "features/stored.h"
#include "matrix/joined.h"
#include "result/choose.h"
#include "result/identity.h"
#include "result/preset_join.h"
#include "result/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of a weight has nine digits, and neither an exponent nor a sign. */
#define LEAST_WEIGHT    1e-4
#define GREATEST_WEIGHT 1e6

/* --- one feature ----------------------------------------------------------------------------- */

struct feature_rows {
    struct result *result;
    const struct result_feature *feature;
    struct raw *raw;
    float of_code[256]; /* STORE_UINT8: what is stored for what it stands for */
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
    const enum status status =
        h5_open_raw(&from->raw, result_feature_dataset(feature), result->path, err);
    if (status != STATUS_OK) {
        close_feature(from);
        return status;
    }
    *out = (struct matrix_source){.rows = feature->rows,
                                  .dimension = feature->dimension,
                                  .read = read_feature,
                                  .blank = feature->blank ? is_blank : NULL,
                                  .concurrent = raw_is_parallel(from->raw),
                                  .identity = identify_feature,
                                  .close = close_feature,
                                  .context = from};
    return STATUS_OK;
}

/* --- several --------------------------------------------------------------------------------- */

struct parts {
    const struct result_feature *feature[JOINED_MOST];
    double weight[JOINED_MOST];
    unsigned count;
};

/* One NAME[:WEIGHT]. */
static enum status add_part(struct parts *parts, const struct result *result, char *text,
                            struct error *err)
{
    char shown[256], digits[32];
    char *weight = strchr(text, ':');
    if (weight)
        *weight++ = 0;
    if (parts->count == JOINED_MOST)
        return error_set(err, STATUS_USAGE, "more than %d features cannot be joined", JOINED_MOST);
    const struct result_feature *feature = result_feature_find(result, text);
    if (!feature)
        return error_set(err, STATUS_USAGE, "%s holds no feature '%s'",
                         path_for_message(shown, sizeof shown, result->path), text);
    for (unsigned i = 0; i < parts->count; i++)
        if (parts->feature[i] == feature)
            return error_set(err, STATUS_USAGE, "the feature %s is joined with itself", text);
    double value = 1;
    if (weight &&
        (!parse_double(&value, weight) || !(value >= LEAST_WEIGHT && value <= GREATEST_WEIGHT)))
        return error_set(err, STATUS_USAGE,
                         "'%s' is not a valid weight for feature %s: weights are numbers from %g "
                         "to %.0f",
                         weight, text, LEAST_WEIGHT, GREATEST_WEIGHT);
    /* The value used is the one that the canonical name states. */
    snprintf(digits, sizeof digits, "%.9g", value);
    parse_double(&value, digits);
    parts->feature[parts->count] = feature;
    parts->weight[parts->count++] = value;
    return STATUS_OK;
}

/* Adds "TEXT:WEIGHT" behind what is there; false: it does not fit. */
static bool append(char *to, size_t size, const char *text, double weight)
{
    const size_t used = strlen(to);
    char digits[32] = "";
    if (weight != 1)
        snprintf(digits, sizeof digits, ":%.9g", weight);
    const int more = snprintf(to + used, size - used, "%s%s%s", used > 0 ? "+" : "", text, digits);
    return (size_t)more < size - used;
}

static enum status describe(struct result_feature *whole, const struct parts *parts,
                            struct error *err)
{
    bool fits = true;
    *whole = (struct result_feature){.rows = parts->feature[0]->rows,
                                     .is_float = true,
                                     .decode_scale = parts->feature[0]->decode_scale};
    snprintf(whole->kind, sizeof whole->kind, "joined");
    snprintf(whole->normalize, sizeof whole->normalize, "%s", parts->feature[0]->normalize);
    for (unsigned i = 0; i < parts->count; i++) {
        const struct result_feature *part = parts->feature[i];
        fits = fits && append(whole->name, sizeof whole->name, part->name, parts->weight[i]) &&
               append(whole->spec, sizeof whole->spec, part->spec, parts->weight[i]);
        /* Values that are not normalised alike are as any numbers are. */
        if (strcmp(part->normalize, whole->normalize) != 0)
            whole->normalize[0] = 0;
    }
    if (!fits)
        return error_set(err, STATUS_USAGE,
                         "the names of the joined features are longer than %d characters together: "
                         "give them shorter ones when they are made (NAME=KIND...)",
                         FEATURE_NAME_MAX - 1);
    return STATUS_OK;
}

/* Sets the matrix of each; none is open after a failure. */
static enum status open_parts(struct joined_part *opened, struct result *result,
                              const struct result_feature *const *feature, unsigned count,
                              struct error *err)
{
    for (unsigned i = 0; i < count; i++) {
        enum status status = open_feature(&opened[i].matrix, result, feature[i], err);
        if (status) {
            while (i-- > 0)
                matrix_close(&opened[i].matrix);
            return status;
        }
    }
    return STATUS_OK;
}

static enum status open_joined(struct matrix_source *out, struct result_feature *about,
                               struct result *result, const char *name, struct error *err)
{
    struct parts parts = {.count = 0};
    struct joined_part opened[JOINED_MOST];
    enum status status = STATUS_OK;
    char *copy = strdup(name);
    if (!copy)
        return error_memory(err, strlen(name) + 1, "joined features");
    /* "NAME[:WEIGHT]+NAME[:WEIGHT]...". */
    for (char *at = copy, *end; !status && at; at = end) {
        end = strchr(at, '+');
        if (end)
            *end++ = 0;
        status = add_part(&parts, result, at, err);
    }
    free(copy);
    if (status)
        return status;
    status = describe(about, &parts, err);
    if (status)
        return status;
    for (unsigned i = 0; i < parts.count; i++)
        opened[i].weight = parts.weight[i];
    status = open_parts(opened, result, parts.feature, parts.count, err);
    if (status)
        return status;
    status = joined_open(out, about->name, opened, parts.count, err);
    about->dimension = out->dimension;
    return status;
}

/* The text that tells joins apart: a digest of specs and weights, which together may be long. */
static void describe_preset(struct result_feature *about,
                            const struct result_feature *const *features,
                            const struct preset_join *join)
{
    struct sha256 state;
    uint8_t digest[32];
    char hex[65], weight[40];
    sha256_init(&state);
    for (unsigned i = 0; i < join->count; i++) {
        snprintf(weight, sizeof weight, "%.17g", join->weight[i]);
        sha256_update(&state, features[i]->spec, strlen(features[i]->spec) + 1);
        sha256_update(&state, weight, strlen(weight) + 1);
    }
    sha256_final(&state, digest);
    sha256_hex(hex, digest);
    *about = (struct result_feature){
        .rows = features[0]->rows, .is_float = true, .decode_scale = features[0]->decode_scale};
    snprintf(about->name, sizeof about->name, "%s", RESULT_PRESET);
    snprintf(about->kind, sizeof about->kind, "joined");
    snprintf(about->spec, sizeof about->spec, "%s-%.32s", RESULT_PRESET, hex);
}

enum status feature_matrix_open_preset(struct matrix_source *out, struct result_feature *about,
                                       struct result *result, const char *json, struct error *err)
{
    struct preset_join join;
    struct joined_unit unit = {0};
    struct joined_part parts[JOINED_MOST];
    const struct result_feature *features[JOINED_MOST];
    char shown[256];
    *out = (struct matrix_source){0};
    enum status status = preset_join_read(&join, json, err);
    for (unsigned i = 0; i < join.count && !status; i++)
        if (!(features[i] = result_feature_find(result, join.name[i])))
            status = error_set(err, STATUS_USAGE, "%s holds no feature '%s' of its preset",
                               path_for_message(shown, sizeof shown, result->path), join.name[i]);
    if (!status)
        status = open_parts(parts, result, features, join.count, err);
    if (status)
        return status;
    for (unsigned i = 0; i < join.count; i++) {
        parts[i].weight = 1;
        unit.columns[i] = parts[i].matrix.dimension;
        unit.weight[i] = join.weight[i];
        unit.roots[i] = strcmp(features[i]->normalize, "l1") == 0;
    }
    unit.parts = join.count;
    describe_preset(about, features, &join);
    status = joined_open_unit(out, about->spec, parts, &unit, err);
    about->dimension = out->dimension;
    return status;
}

enum status feature_matrix_open(struct matrix_source *out, struct result_feature *about,
                                struct result *result, const char *name, struct error *err)
{
    const struct result_feature *feature;
    *out = (struct matrix_source){0};
    if (result->preset && (!name || strcmp(name, RESULT_PRESET) == 0) &&
        !result_feature_find(result, RESULT_PRESET))
        return feature_matrix_open_preset(out, about, result, result->preset, err);
    /* Only a text that names several features, or one with a weight, has these. */
    if (name && strpbrk(name, "+:") && result->feature_count > 0)
        return open_joined(out, about, result, name, err);
    enum status status = choose_feature(&feature, result, name, err);
    if (status)
        return status;
    *about = *feature;
    return open_feature(out, result, feature, err);
}
