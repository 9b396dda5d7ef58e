/* feature.c: specifications, geometry and values of features, and their plain C reference. */
#include "features/feature.h"

#include "base/parse.h"
#include "features/kind.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BINS_AXIS_MAX  256u
#define BINS_JOINT_MAX 16384u
#define GRID_MAX       256u

const char *feature_normalize_name(enum feature_normalize normalize)
{
    static const char *const name[] = {"l1", "none", "hellinger"};
    return name[normalize];
}

bool feature_normalize_parse(enum feature_normalize *out, const char *text)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, feature_normalize_name((enum feature_normalize)i)) == 0) {
            *out = (enum feature_normalize)i;
            return true;
        }
    }
    return false;
}

char *feature_bins_text(char *buffer, size_t size, const struct feature *feature)
{
    if (feature->bins[1])
        snprintf(buffer, size, "%ux%ux%u", feature->bins[0], feature->bins[1], feature->bins[2]);
    else
        snprintf(buffer, size, "%u",
                 feature->codebook_words ? feature->codebook_words : feature->bins[0]);
    return buffer;
}

/* "8x8x8" into at most `max` numbers of 1 to `limit`; returns how many, 0 if it is anything else.
 */
static unsigned parse_product(uint32_t *out, unsigned max, const char *text, uint32_t limit)
{
    char copy[64];
    if (strlen(text) >= sizeof copy)
        return 0;
    strcpy(copy, text);
    unsigned count = 0;
    for (char *part = copy; part; count++) {
        char *next = strchr(part, 'x');
        if (next)
            *next++ = '\0';
        uint64_t number;
        if (count == max || !parse_u64(&number, part, 1, limit))
            return 0;
        out[count] = (uint32_t)number;
        part = next;
    }
    return count;
}

static enum status refuse_option(const char *option, const char *spec, struct error *err)
{
    /* rgb:8x8x8 */
    const bool bins = *option && option[strspn(option, "0123456789x")] == '\0';
    return error_set(
        err, STATUS_USAGE,
        "feature '%s': '%s' is no option; %s%s%s", spec, option, bins ? "did you mean bins=" : "there are ",
        bins ? option : "bins=, grid=, normalize= and blur=", bins ? "?" : "");
}

/* One "bins=..." of a spec. */
static enum status parse_option(struct feature *feature, char *option, const char *spec,
                                struct error *err)
{
    char *value = strchr(option, '=');
    if (!value)
        return refuse_option(option, spec, err);
    *value++ = '\0';
    if (strcmp(option, "bins") == 0) {
        feature->bins[0] = feature->bins[1] = feature->bins[2] = 0;
        unsigned axes = parse_product(feature->bins, 3, value, BINS_AXIS_MAX);
        if (axes != 1 && axes != 3)
            return error_set(err, STATUS_USAGE,
                             "feature '%s': bins=%s must be one number or AxBxC, each 1 to %u",
                             spec, value, BINS_AXIS_MAX);
        return STATUS_OK;
    }
    if (strcmp(option, "grid") == 0) {
        uint32_t cells[2];
        if (parse_product(cells, 2, value, GRID_MAX) != 2)
            return error_set(err, STATUS_USAGE,
                             "feature '%s': grid=%s must be ROWSxCOLUMNS, each 1 to %u", spec,
                             value, GRID_MAX);
        feature->grid_rows = cells[0];
        feature->grid_columns = cells[1];
        return STATUS_OK;
    }
    if (strcmp(option, "normalize") == 0) {
        if (!feature_normalize_parse(&feature->normalize, value))
            return error_set(err, STATUS_USAGE,
                             "feature '%s': normalize=%s must be none, l1 or hellinger", spec,
                             value);
        return STATUS_OK;
    }
    if (strcmp(option, "blur") == 0) {
        if (strcmp(value, "3") != 0)
            return error_set(err, STATUS_USAGE, "feature '%s': blur=%s must be 3", spec, value);
        feature->image.blur = 3;
        return STATUS_OK;
    }
    if (strcmp(option, "words") == 0) {
        uint64_t words;
        if (!parse_u64(&words, value, 2, CODEBOOK_WORDS_MAX))
            return error_set(err, STATUS_USAGE, "feature '%s': words=%s must be 2 to %u", spec,
                             value, CODEBOOK_WORDS_MAX);
        feature->codebook_words = (uint32_t)words;
        return STATUS_OK;
    }
    /* Written by feature_bind_codebook; settle_kind refuses it where nothing is learned. */
    if (strcmp(option, "codebook") == 0 && strlen(value) == FEATURE_DIGEST - 1 &&
        value[strspn(value, "0123456789abcdef")] == '\0') {
        strcpy(feature->codebook_digest, value);
        return STATUS_OK;
    }
    return refuse_option(option, spec, err);
}

/* Is it the first kind of its name? */
static bool is_first_of_name(unsigned k)
{
    for (unsigned i = 0; i < k; i++)
        if (strcmp(feature_kinds[i]->name, feature_kinds[k]->name) == 0)
            return false;
    return true;
}

/* "rgb, gray and hsv", from the table. */
static void list_kinds(char *text, size_t size)
{
    unsigned last = 0;
    for (unsigned k = 0; feature_kinds[k]; k++)
        last = is_first_of_name(k) ? k : last;
    *text = '\0';
    for (unsigned k = 0; k <= last; k++) {
        const size_t used = strlen(text);
        const char *before = k == 0 ? "" : k == last ? " and " : ", ";
        if (is_first_of_name(k))
            snprintf(text + used, size - used, "%s%s", before, feature_kinds[k]->name);
    }
}

/* The spec of which `name` may be the NAME that clpipe gave, "rgb_8x8x8_3x3", or "". */
static void spec_of_name(char *spec, size_t size, const char *name)
{
    const size_t kind = strcspn(name, "_");
    const char *bins = name + kind + (name[kind] == '_');
    const size_t length = strspn(bins, "0123456789x");
    const char *grid = bins[length] == '_' ? bins + length + 1 : "";
    *spec = '\0';
    if (length == 0 || (bins[length] && !*grid) || grid[strspn(grid, "0123456789x")])
        return;
    for (unsigned i = 0; feature_kinds[i]; i++)
        if (strlen(feature_kinds[i]->name) == kind && strncmp(feature_kinds[i]->name, name, kind) == 0)
            snprintf(spec, size, "%.*s:bins=%.*s%s%s", (int)kind, name, (int)length, bins,
                     *grid ? ",grid=" : "", grid);
}

/* Finds the kind of that name that fits bins=, and sets its default if there is no bins=. */
static enum status settle_kind(struct feature *feature, const char *name, const char *spec,
                               struct error *err)
{
    const struct feature_kind *named = NULL;
    for (unsigned i = 0; feature_kinds[i] && !feature->kind; i++) {
        const struct feature_kind *kind = feature_kinds[i];
        if (strcmp(name, kind->name) != 0 && (!kind->alias || strcmp(name, kind->alias) != 0))
            continue;
        named = kind;
        if (feature->bins[0] == 0 || (feature->bins[1] != 0) == (kind->bins[1] != 0))
            feature->kind = kind;
    }
    if (!named) {
        char kinds[128], meant[128];
        spec_of_name(meant, sizeof meant, name);
        if (*meant)
            return error_set(err, STATUS_USAGE,
                             "feature '%s': that is the name of a feature; its SPEC is %s", spec,
                             meant);
        list_kinds(kinds, sizeof kinds);
        return error_set(err, STATUS_USAGE, "feature '%s': there is no kind '%s'; there are %s",
                         spec, name, kinds);
    }
    if (!feature->kind)
        return error_set(err, STATUS_USAGE, "feature '%s': %s takes %s", spec, named->name,
                         named->bins[1] ? "bins=AxBxC" : "one number of bins");
    if (feature->codebook_digest[0] && !feature->kind->descriptor)
        return refuse_option("codebook", spec, err);
    if (feature->codebook_words && !feature->kind->descriptor)
        return refuse_option("words", spec, err);
    if (feature->kind->descriptor && (feature->bins[0] || !feature->codebook_words))
        return error_set(err, STATUS_USAGE, "feature '%s': %s takes words=K%s", spec, named->name,
                         feature->bins[0] ? ", no bins" : "");
    if (feature->bins[0] == 0)
        memcpy(feature->bins, feature->kind->bins, sizeof feature->bins);
    feature->image.border = feature->kind->border;
    return STATUS_OK;
}

/* Settles kind, bins and sizes once all options are read. */
static enum status settle(struct feature *feature, const char *kind, const char *spec,
                          struct error *err)
{
    enum status status = settle_kind(feature, kind, spec, err);
    if (status != STATUS_OK)
        return status;
    uint32_t bins = feature->bins[0];
    if (feature->bins[1])
        bins *= feature->bins[1] * feature->bins[2];
    if (feature->kind->descriptor)
        bins = feature->codebook_words;
    else if (bins > BINS_JOINT_MAX)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': %u bins; a joint histogram has at most %u", spec, bins,
                         BINS_JOINT_MAX);
    feature->cell_bins = feature->kind->channels ? feature->kind->channels * bins : bins;
    if (feature->kind->settle)
        status = feature->kind->settle(feature, spec, err);
    if (status != STATUS_OK)
        return status;
    uint64_t dimension = (uint64_t)feature->cell_bins * feature->grid_rows * feature->grid_columns;
    if (dimension > FEATURE_DIMENSION_MAX)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': %llu values an image; at most %u are possible", spec,
                         (unsigned long long)dimension, FEATURE_DIMENSION_MAX);
    feature->dimension = (uint32_t)dimension;
    return STATUS_OK;
}

/* The canonical spec, from everything else. */
void feature_write_spec(struct feature *feature)
{
    char bins[32];
    snprintf(feature->spec, sizeof feature->spec, "%s:%s=%s,grid=%ux%u,normalize=%s%s%s%s",
             feature->kind->name, feature->codebook_words ? "words" : "bins",
             feature_bins_text(bins, sizeof bins, feature), feature->grid_rows,
             feature->grid_columns, feature_normalize_name(feature->normalize),
             feature->image.blur ? ",blur=3" : "", feature->codebook_digest[0] ? ",codebook=" : "",
             feature->codebook_digest);
}

/* --- sets ------------------------------------------------------------------------------------ */

uint32_t feature_image_border(const struct feature_image *image)
{
    return (image->blur ? image->blur - 1 : 0) + image->border;
}

bool feature_image_equal(const struct feature_image *a, const struct feature_image *b)
{
    return a->blur == b->blur && a->border == b->border;
}

enum status feature_set_add(struct feature_set *set, const char *spec,
                            enum feature_normalize default_normalize, struct error *err)
{
    char copy[192];
    if (set->count == FEATURE_MAX)
        return error_set(err, STATUS_USAGE, "feature '%s': more than %d features", spec,
                         FEATURE_MAX);
    if (strlen(spec) >= sizeof copy)
        return error_set(err, STATUS_USAGE, "feature '%.40s...': the specification is too long",
                         spec);
    strcpy(copy, spec);

    struct feature feature = {
        .normalize = default_normalize, .grid_rows = 1, .grid_columns = 1, .image = {set->blur, 0}};
    /* NAME= may only stand before the first ':' or ',', where the options begin. */
    char *options = strpbrk(copy, ":,");
    if (options)
        *options++ = '\0';
    char *kind = strchr(copy, '=');
    const char *name = NULL;
    if (kind) {
        *kind++ = '\0';
        name = copy;
        const size_t valid =
            strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
        if (valid == 0 || valid >= FEATURE_NAME_MAX || name[valid] != '\0' || name[0] == '.')
            return error_set(err, STATUS_USAGE,
                             "feature '%s': '%s' is no name; names have 1 to %d of A-Z a-z 0-9 _ . "
                             "- and do not begin with a dot",
                             spec, name, FEATURE_NAME_MAX - 1);
    } else {
        kind = copy;
    }
    while (options) {
        char *next = strchr(options, ',');
        if (next)
            *next++ = '\0';
        enum status status = parse_option(&feature, options, spec, err);
        if (status != STATUS_OK)
            return status;
        options = next;
    }
    enum status status = settle(&feature, kind, spec, err);
    if (status != STATUS_OK)
        return status;

    char bins[32], grid[24] = "";
    feature_bins_text(bins, sizeof bins, &feature);
    if (feature.grid_rows != 1 || feature.grid_columns != 1)
        snprintf(grid, sizeof grid, "_%ux%u", feature.grid_rows, feature.grid_columns);
    if (name)
        snprintf(feature.name, sizeof feature.name, "%s", name);
    else
        snprintf(feature.name, sizeof feature.name, "%s_%s%s", feature.kind->name, bins, grid);
    feature_write_spec(&feature);
    for (unsigned i = 0; i < set->count; i++) {
        if (strcmp(set->feature[i].name, feature.name) == 0)
            return error_set(err, STATUS_USAGE,
                             "feature '%s': the name %s is taken; give it another as NAME=%s", spec,
                             feature.name, spec);
    }
    if (set->counters + feature.dimension > FEATURE_DIMENSION_MAX)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': all features together have more than %u values an image",
                         spec, FEATURE_DIMENSION_MAX);
    feature.offset = set->counters;
    set->counters += feature.dimension;
    set->feature[set->count++] = feature;
    return STATUS_OK;
}

/* --- geometry -------------------------------------------------------------------------------- */

/* The first coordinate of cell i of n over `size` pixels: the least y with y * n / size == i. */
static uint32_t cell_start(uint32_t i, uint32_t n, uint32_t size)
{
    return (uint32_t)(((uint64_t)i * size + n - 1) / n);
}

struct cell_rect feature_cell_rect(const struct feature *feature, uint32_t row, uint32_t column,
                                   uint32_t width, uint32_t height, uint8_t orientation)
{
    bool swapped = orientation >= 5;
    uint32_t upright_width = swapped ? height : width, upright_height = swapped ? width : height;
    uint32_t left = cell_start(column, feature->grid_columns, upright_width);
    uint32_t right = cell_start(column + 1, feature->grid_columns, upright_width);
    uint32_t top = cell_start(row, feature->grid_rows, upright_height);
    uint32_t bottom = cell_start(row + 1, feature->grid_rows, upright_height);
    switch (orientation) {
    case 2:
        return (struct cell_rect){width - right, top, width - left, bottom};
    case 3:
        return (struct cell_rect){width - right, height - bottom, width - left, height - top};
    case 4:
        return (struct cell_rect){left, height - bottom, right, height - top};
    case 5:
        return (struct cell_rect){top, left, bottom, right};
    case 6:
        return (struct cell_rect){top, height - right, bottom, height - left};
    case 7:
        return (struct cell_rect){width - bottom, height - right, width - top, height - left};
    case 8:
        return (struct cell_rect){width - bottom, left, width - top, right};
    default:
        return (struct cell_rect){left, top, right, bottom};
    }
}

/* --- values ---------------------------------------------------------------------------------- */

uint32_t feature_histograms(const struct feature *feature)
{
    const struct feature_kind *kind = feature->kind;
    return kind->finish || kind->placed ? 0 : kind->channels ? kind->channels : 1;
}

/* Each counter's share of the pixels of its cell, or the root of that. */
static void store_shares(float *values, const struct feature *feature, const uint32_t *counters)
{
    const uint32_t histograms = feature->kind->channels ? feature->kind->channels : 1;
    for (uint32_t start = 0; start < feature->dimension; start += feature->cell_bins) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < feature->cell_bins; i++)
            sum += counters[start + i];
        double pixels = (double)(sum / histograms);
        for (uint32_t i = 0; i < feature->cell_bins; i++) {
            uint32_t count = counters[start + i];
            double share = count ? (double)count / pixels : 0.0;
            values[start + i] =
                (float)(feature->normalize == NORMALIZE_HELLINGER ? sqrt(share) : share);
        }
    }
}

void feature_store_values(void *dst, const struct feature *feature, const uint32_t *counters)
{
    if (feature->normalize == NORMALIZE_NONE)
        memcpy(dst, counters, (size_t)feature->dimension * sizeof *counters);
    else if (feature->kind->finish)
        feature->kind->finish(dst, feature, counters);
    else
        store_shares(dst, feature, counters);
}

void feature_count_reference(uint32_t *counters, const struct feature *feature,
                             const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
                             uint8_t orientation)
{
    for (uint32_t cell = 0; cell < feature->grid_rows * feature->grid_columns; cell++) {
        struct cell_rect rect =
            feature_cell_rect(feature, cell / feature->grid_columns, cell % feature->grid_columns,
                              width, height, orientation);
        if (rect.x0 < rect.x1 && rect.y0 < rect.y1)
            feature->kind->count(counters + (size_t)cell * feature->cell_bins, feature,
                                 pixels + rect.y0 * stride + (size_t)rect.x0 * 3, stride,
                                 rect.x1 - rect.x0, rect.y1 - rect.y0);
    }
}
