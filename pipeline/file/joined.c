/* joined.c: names of several features, and their rows. */
#include "file/joined.h"
#include "base/hash.h"
#include "base/parse.h"
#include "base/path.h"
#include "file/result_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PARTS 16
/* Their texts, with nine digits, have neither an exponent nor a sign. */
#define LEAST_WEIGHT    1e-4
#define GREATEST_WEIGHT 1e6

struct joined {
    struct joined *next; /* of the same result */
    struct result_feature feature;
    const struct result_feature *part[MOST_PARTS];
    double weight[MOST_PARTS];
    unsigned parts;
    float *buffer; /* rows of one part */
    size_t buffer_values;
};

bool joined_is_meant(const char *text)
{
    return strpbrk(text, "+:") != NULL;
}

static struct joined *find(const struct result *result, const char *name)
{
    for (struct joined *at = result->joined; at; at = at->next)
        if (strcmp(at->feature.name, name) == 0)
            return at;
    return NULL;
}

const struct result_feature *joined_find(const struct result *result, const char *name)
{
    const struct joined *found = find(result, name);
    return found ? &found->feature : NULL;
}

struct joined *joined_of(const struct result *result, const struct result_feature *feature)
{
    for (struct joined *at = result->joined; at; at = at->next)
        if (&at->feature == feature)
            return at;
    return NULL;
}

/* --- opening -----------------------------------------------------------------------------------
 */

/* One NAME[:WEIGHT]. */
static enum status add_part(struct joined *joined, const struct result *result, char *text,
                            struct error *err)
{
    char shown[256], digits[32] = "1";
    char *weight = strchr(text, ':');
    if (weight)
        *weight++ = 0;
    if (joined->parts == MOST_PARTS)
        return error_set(err, STATUS_USAGE, "more than %d features cannot be joined", MOST_PARTS);
    const unsigned i = joined->parts++;
    for (unsigned j = 0; j < result->feature_count; j++)
        if (strcmp(result->features[j].name, text) == 0)
            joined->part[i] = &result->features[j];
    if (!joined->part[i])
        return error_set(err, STATUS_USAGE, "%s holds no feature '%s'",
                         path_for_message(shown, sizeof shown, result->path), text);
    for (unsigned j = 0; j < i; j++)
        if (joined->part[j] == joined->part[i])
            return error_set(err, STATUS_USAGE, "the feature %s is joined with itself", text);
    joined->weight[i] = 1;
    if (weight && (!parse_double(&joined->weight[i], weight) ||
                   !(joined->weight[i] >= LEAST_WEIGHT && joined->weight[i] <= GREATEST_WEIGHT)))
        return error_set(err, STATUS_USAGE,
                         "'%s' is no weight of feature %s: weights are numbers from %g to %.0f",
                         weight, text, LEAST_WEIGHT, GREATEST_WEIGHT);
    /* What the name says is what is meant. */
    snprintf(digits, sizeof digits, "%.9g", joined->weight[i]);
    parse_double(&joined->weight[i], digits);
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

/* What the whole is, of what the parts are. */
static enum status describe(struct joined *joined, const struct result *result, struct error *err)
{
    struct result_feature *whole = &joined->feature;
    bool fits = true;
    uint64_t dimension = 0;
    *whole = (struct result_feature){.rows = joined->part[0]->rows,
                                     .is_float = true,
                                     .decode_scale = joined->part[0]->decode_scale};
    snprintf(whole->kind, sizeof whole->kind, "joined");
    snprintf(whole->normalize, sizeof whole->normalize, "%s", joined->part[0]->normalize);
    for (unsigned i = 0; i < joined->parts; i++) {
        const struct result_feature *part = joined->part[i];
        fits = fits && append(whole->name, sizeof whole->name, part->name, joined->weight[i]) &&
               append(whole->spec, sizeof whole->spec, part->spec, joined->weight[i]);
        dimension += part->dimension;
        /* Features that are not of one kind are as any numbers are. */
        if (strcmp(part->normalize, whole->normalize) != 0)
            whole->normalize[0] = 0;
        if (part->rows != whole->rows)
            return result_damaged(result, err, "its features have different numbers of rows");
    }
    if (!fits)
        return error_set(err, STATUS_USAGE,
                         "the names of the joined features are longer than %d characters together: "
                         "give them shorter ones when they are made (NAME=KIND...)",
                         FEATURE_NAME_MAX - 1);
    if (dimension > UINT32_MAX)
        return error_set(err, STATUS_USAGE, "the joined features have too many values");
    whole->dimension = (uint32_t)dimension;
    return STATUS_OK;
}

enum status joined_open(const struct result_feature **out, struct result *result, const char *text,
                        struct error *err)
{
    *out = NULL;
    struct joined *joined = calloc(1, sizeof *joined);
    char *copy = strdup(text);
    enum status status =
        joined && copy ? STATUS_OK : error_memory(err, sizeof *joined, "joined features");
    for (char *at = copy, *end; status == STATUS_OK && at; at = end) {
        end = strchr(at, '+');
        if (end)
            *end++ = 0;
        status = add_part(joined, result, at, err);
    }
    if (status == STATUS_OK)
        status = describe(joined, result, err);
    free(copy);
    struct joined *same = status == STATUS_OK ? find(result, joined->feature.name) : NULL;
    if (status != STATUS_OK || same) {
        free(joined);
        *out = same ? &same->feature : NULL;
        return status;
    }
    joined->next = result->joined;
    result->joined = joined;
    *out = &joined->feature;
    return STATUS_OK;
}

void joined_free(struct joined *all)
{
    while (all) {
        struct joined *next = all->next;
        free(all->buffer);
        free(all);
        all = next;
    }
}

/* --- rows --------------------------------------------------------------------------------------
 */

enum status joined_read(struct joined *joined, struct result *result, uint64_t first,
                        uint64_t count, float *rows, struct error *err)
{
    const size_t stride = joined->feature.dimension;
    size_t offset = 0;
    for (unsigned i = 0; i < joined->parts; i++) {
        const struct result_feature *part = joined->part[i];
        const size_t columns = part->dimension, values = (size_t)count * columns;
        if (values > joined->buffer_values) {
            float *larger = realloc(joined->buffer, values * sizeof *larger);
            if (!larger)
                return error_memory(err, values * sizeof *larger, "joined features");
            joined->buffer = larger;
            joined->buffer_values = values;
        }
        enum status status = result_feature_read(result, part, first, count, joined->buffer, err);
        if (status != STATUS_OK)
            return status;
        for (uint64_t row = 0; row < count; row++)
            for (size_t j = 0; j < columns; j++)
                rows[row * stride + offset + j] =
                    (float)((double)joined->buffer[row * columns + j] * joined->weight[i]);
        offset += columns;
    }
    return STATUS_OK;
}

enum status joined_identity(struct joined *joined, struct result *result, char hex[65],
                            struct error *err)
{
    struct sha256 state;
    uint8_t digest[32];
    sha256_init(&state);
    sha256_update(&state, joined->feature.name, strlen(joined->feature.name) + 1);
    for (unsigned i = 0; i < joined->parts; i++) {
        enum status status = result_feature_identity(result, joined->part[i], hex, err);
        if (status != STATUS_OK)
            return status;
        sha256_update(&state, hex, 64);
    }
    sha256_final(&state, digest);
    sha256_hex(hex, digest);
    return STATUS_OK;
}
