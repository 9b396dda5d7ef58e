/* feature.c: specifications, geometry and values of features, and their plain C reference. */
#include "features/feature.h"

#include "base/parse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BINS_AXIS_MAX  256u
#define BINS_JOINT_MAX 16384u
#define GRID_MAX       256u

const char *feature_kind_name(enum feature_kind kind)
{
    static const char *const name[] = {"rgb", "rgb", "gray", "hsv"};
    return name[kind];
}

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
        snprintf(buffer, size, "%u", feature->bins[0]);
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

static bool name_is_valid(const char *name)
{
    if (!*name || strlen(name) >= FEATURE_NAME_MAX || name[0] == '.')
        return false;
    return name[strspn(
               name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")] == '\0';
}

/* One "bins=..." of a spec. */
static enum status parse_option(struct feature *feature, char *option, const char *spec,
                                struct error *err)
{
    char *value = strchr(option, '=');
    if (!value)
        return error_set(
            err, STATUS_USAGE,
            "feature '%s': '%s' is no option; there are bins=, grid=, normalize= and blur=", spec,
            option);
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
        feature->blur = 3;
        return STATUS_OK;
    }
    return error_set(
        err, STATUS_USAGE,
        "feature '%s': '%s' is no option; there are bins=, grid=, normalize= and blur=", spec,
        option);
}

/* Settles kind, bins and sizes once all options are read. */
static enum status settle(struct feature *feature, const char *kind, const char *spec,
                          struct error *err)
{
    bool joint = feature->bins[1] != 0;
    if (strcmp(kind, "rgb") == 0) {
        feature->kind = joint ? FEATURE_RGB_JOINT : FEATURE_RGB;
        if (!feature->bins[0])
            feature->bins[0] = 256;
    } else if (strcmp(kind, "gray") == 0 || strcmp(kind, "grey") == 0) {
        feature->kind = FEATURE_GRAY;
        if (joint)
            return error_set(err, STATUS_USAGE, "feature '%s': gray takes one number of bins",
                             spec);
        if (!feature->bins[0])
            feature->bins[0] = 256;
    } else if (strcmp(kind, "hsv") == 0) {
        feature->kind = FEATURE_HSV;
        if (!feature->bins[0]) {
            feature->bins[0] = 8;
            feature->bins[1] = feature->bins[2] = 4;
        } else if (!joint) {
            return error_set(err, STATUS_USAGE, "feature '%s': hsv takes bins=AxBxC", spec);
        }
    } else {
        return error_set(err, STATUS_USAGE,
                         "feature '%s': there is no kind '%s'; there are rgb, gray and hsv", spec,
                         kind);
    }
    uint32_t bins = feature->bins[0];
    if (feature->bins[1])
        bins *= feature->bins[1] * feature->bins[2];
    if (bins > BINS_JOINT_MAX)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': %u bins; a joint histogram has at most %u", spec, bins,
                         BINS_JOINT_MAX);
    feature->cell_bins = feature->kind == FEATURE_RGB ? 3 * bins : bins;
    uint64_t dimension = (uint64_t)feature->cell_bins * feature->grid_rows * feature->grid_columns;
    if (dimension > FEATURE_DIMENSION_MAX)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': %llu values an image; at most %u are possible", spec,
                         (unsigned long long)dimension, FEATURE_DIMENSION_MAX);
    feature->dimension = (uint32_t)dimension;
    return STATUS_OK;
}

bool feature_set_blurred(const struct feature_set *set)
{
    return set->count > 0 && set->feature[0].blur != 0;
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
        .normalize = default_normalize, .grid_rows = 1, .grid_columns = 1, .blur = set->blur};
    /* NAME= may only stand before the first ':' or ',', where the options begin. */
    char *options = strpbrk(copy, ":,");
    if (options)
        *options++ = '\0';
    char *kind = strchr(copy, '=');
    const char *name = NULL;
    if (kind) {
        *kind++ = '\0';
        name = copy;
        if (!name_is_valid(name))
            return error_set(err, STATUS_USAGE,
                             "feature '%s': '%s' is no name; names have 1 to %d of A-Z a-z 0-9 _ . "
                             "- and do not begin with a dot",
                             spec, name, FEATURE_NAME_MAX - 1);
    } else {
        kind = copy;
    }
    enum status status = STATUS_OK;
    while (options && status == STATUS_OK) {
        char *next = strchr(options, ',');
        if (next)
            *next++ = '\0';
        status = parse_option(&feature, options, spec, err);
        options = next;
    }
    if (status == STATUS_OK)
        status = settle(&feature, kind, spec, err);
    if (status != STATUS_OK)
        return status;

    char bins[32], grid[24] = "";
    feature_bins_text(bins, sizeof bins, &feature);
    if (feature.grid_rows != 1 || feature.grid_columns != 1)
        snprintf(grid, sizeof grid, "_%ux%u", feature.grid_rows, feature.grid_columns);
    if (name)
        snprintf(feature.name, sizeof feature.name, "%s", name);
    else
        snprintf(feature.name, sizeof feature.name, "%s_%s%s", feature_kind_name(feature.kind),
                 bins, grid);
    snprintf(feature.spec, sizeof feature.spec, "%s:bins=%s,grid=%ux%u,normalize=%s%s",
             feature_kind_name(feature.kind), bins, feature.grid_rows, feature.grid_columns,
             feature_normalize_name(feature.normalize), feature.blur ? ",blur=3" : "");
    if (set->count > 0 && set->feature[0].blur != feature.blur)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': the features of one file are all of blurred pictures or "
                         "none is; %s is%s",
                         spec, set->feature[0].name, feature.blur ? " not" : "");
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

void feature_store_values(void *dst, const struct feature *feature, const uint32_t *counters)
{
    if (feature->normalize == NORMALIZE_NONE) {
        memcpy(dst, counters, (size_t)feature->dimension * sizeof *counters);
        return;
    }
    float *values = dst;
    for (uint32_t start = 0; start < feature->dimension; start += feature->cell_bins) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < feature->cell_bins; i++)
            sum += counters[start + i];
        double pixels = (double)(feature->kind == FEATURE_RGB ? sum / 3 : sum);
        for (uint32_t i = 0; i < feature->cell_bins; i++) {
            uint32_t count = counters[start + i];
            double share = count ? (double)count / pixels : 0.0;
            values[start + i] =
                (float)(feature->normalize == NORMALIZE_HELLINGER ? sqrt(share) : share);
        }
    }
}

/* --- the reference --------------------------------------------------------------------------- */

static int floor_div(int a, int b)
{
    int q = a / b;
    return a % b != 0 && a < 0 ? q - 1 : q;
}

static uint32_t hsv_bin(const struct feature *feature, int r, int g, int b)
{
    int max = r > g ? (r > b ? r : b) : (g > b ? g : b);
    int min = r < g ? (r < b ? r : b) : (g < b ? g : b);
    int d = max - min;
    int s = max == 0 ? 0 : (255 * d + max / 2) / max;
    int h = 0;
    if (d != 0) {
        if (r == max)
            h = floor_div(60 * (g - b), d);
        else if (g == max)
            h = 120 + floor_div(60 * (b - r), d);
        else
            h = 240 + floor_div(60 * (r - g), d);
        h = ((h % 360) + 360) % 360;
    }
    uint32_t hi = (uint32_t)h * feature->bins[0] / 360;
    uint32_t si = (uint32_t)s * feature->bins[1] >> 8;
    uint32_t vi = (uint32_t)max * feature->bins[2] >> 8;
    return (hi * feature->bins[1] + si) * feature->bins[2] + vi;
}

void feature_count_reference(uint32_t *counters, const struct feature *feature,
                             const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
                             uint8_t orientation)
{
    const uint32_t *bins = feature->bins;
    for (uint32_t cell = 0; cell < feature->grid_rows * feature->grid_columns; cell++) {
        struct cell_rect rect =
            feature_cell_rect(feature, cell / feature->grid_columns, cell % feature->grid_columns,
                              width, height, orientation);
        uint32_t *table = counters + (size_t)cell * feature->cell_bins;
        for (uint32_t y = rect.y0; y < rect.y1; y++) {
            const uint8_t *p = pixels + y * stride + (size_t)rect.x0 * 3;
            for (uint32_t x = rect.x0; x < rect.x1; x++, p += 3) {
                uint32_t r = p[0], g = p[1], b = p[2];
                switch (feature->kind) {
                case FEATURE_RGB:
                    table[r * bins[0] >> 8]++;
                    table[bins[0] + (g * bins[0] >> 8)]++;
                    table[2 * bins[0] + (b * bins[0] >> 8)]++;
                    break;
                case FEATURE_RGB_JOINT:
                    table[((r * bins[0] >> 8) * bins[1] + (g * bins[1] >> 8)) * bins[2] +
                          (b * bins[2] >> 8)]++;
                    break;
                case FEATURE_GRAY:
                    table[((77 * r + 150 * g + 29 * b + 128) >> 8) * bins[0] >> 8]++;
                    break;
                case FEATURE_HSV:
                    table[hsv_bin(feature, (int)r, (int)g, (int)b)]++;
                    break;
                }
            }
        }
    }
}
