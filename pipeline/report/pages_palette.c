/* pages_palette.c: reduces histograms and thumbnails to a few colours. */
#include "report/pages_palette.h"
#include "decode/thumbnail.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITERATIONS  12
#define LEAST_SHARE 0.02

void palette_add(struct palette_cells *cells, double r, double g, double b, double weight)
{
    const double value[3] = {r, g, b};
    unsigned cell = 0;
    for (int i = 0; i < 3; i++) {
        double v = value[i] < 0 ? 0 : value[i] > 255 ? 255 : value[i];
        cell = cell * PALETTE_AXIS + (unsigned)(v * PALETTE_AXIS / 256);
    }
    cells->weight[cell] += weight;
    for (int i = 0; i < 3; i++)
        cells->sum[cell][i] += value[i] * weight;
}

/* --- the few colours --------------------------------------------------------------------------- */

struct centre {
    double rgb[3], sum[3], weight;
};

static void mean_of(double rgb[3], const struct palette_cells *cells, unsigned cell)
{
    for (int i = 0; i < 3; i++)
        rgb[i] = cells->sum[cell][i] / cells->weight[cell];
}

/* Eyes distinguish greens better than reds, and blues least. */
static double difference(const double a[3], const double b[3])
{
    const double r = a[0] - b[0], g = a[1] - b[1], blue = a[2] - b[2];
    return 2 * r * r + 4 * g * g + blue * blue;
}

static unsigned nearest_centre(const struct centre *centres, unsigned count, const double rgb[3],
                               double *distance)
{
    unsigned best = 0;
    *distance = INFINITY;
    for (unsigned i = 0; i < count; i++) {
        const double d = difference(centres[i].rgb, rgb);
        if (d < *distance) {
            *distance = d;
            best = i;
        }
    }
    return best;
}

static unsigned choose_centres(struct centre *centres, const struct palette_cells *cells)
{
    unsigned count = 0;
    while (count < PALETTE_COLOURS) {
        double most = 0, rgb[3], distance;
        unsigned best = 0;
        for (unsigned cell = 0; cell < PALETTE_CELLS; cell++) {
            if (!(cells->weight[cell] > 0))
                continue;
            mean_of(rgb, cells, cell);
            nearest_centre(centres, count, rgb, &distance);
            const double gain = cells->weight[cell] * (count ? distance : 1);
            if (gain > most) {
                most = gain;
                best = cell;
            }
        }
        if (!(most > 0))
            break;
        memset(&centres[count], 0, sizeof centres[count]);
        mean_of(centres[count].rgb, cells, best);
        count++;
    }
    return count;
}

static int compare_centres(const void *a, const void *b)
{
    const struct centre *x = a, *y = b;
    return (x->weight < y->weight) - (x->weight > y->weight);
}

void palette_find(struct palette *out, const struct palette_cells *cells)
{
    struct centre centres[PALETTE_COLOURS] = {{{0}, {0}, 0}};
    const unsigned count = choose_centres(centres, cells);
    double all = 0, kept = 0;
    memset(out, 0, sizeof *out);
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        for (unsigned i = 0; i < count; i++) {
            centres[i].weight = 0;
            memset(centres[i].sum, 0, sizeof centres[i].sum);
        }
        for (unsigned cell = 0; cell < PALETTE_CELLS; cell++) {
            double rgb[3], distance;
            if (!(cells->weight[cell] > 0))
                continue;
            mean_of(rgb, cells, cell);
            struct centre *centre = &centres[nearest_centre(centres, count, rgb, &distance)];
            centre->weight += cells->weight[cell];
            for (int i = 0; i < 3; i++)
                centre->sum[i] += cells->sum[cell][i];
        }
        for (unsigned i = 0; i < count; i++)
            for (int j = 0; j < 3 && centres[i].weight > 0; j++)
                centres[i].rgb[j] = centres[i].sum[j] / centres[i].weight;
    }
    qsort(centres, count, sizeof *centres, compare_centres);
    for (unsigned i = 0; i < count; i++)
        all += centres[i].weight;
    while (out->count < count && centres[out->count].weight >= LEAST_SHARE * all)
        kept += centres[out->count++].weight;
    for (unsigned i = 0; i < out->count; i++) {
        out->colour[i].share = (float)(centres[i].weight / kept);
        for (int j = 0; j < 3; j++)
            out->colour[i].rgb[j] = (uint8_t)lround(centres[i].rgb[j]);
    }
}

/* --- centroids --------------------------------------------------------------------------------- */

static double channel_of_hue(double h, double s, double v, double n)
{
    const double k = fmod(n + h / 60, 6);
    return 255 * (v - v * s * fmax(0, fmin(fmin(k, 4 - k), 1)));
}

bool palette_add_centroid(struct palette_cells *cells, const struct result_feature *feature,
                          const char *metric, const float *centroid, uint32_t dimension)
{
    unsigned bins[3], rows = 1, columns = 1;
    const bool hsv = strcmp(feature->kind, "hsv") == 0;
    if (!hsv && strcmp(feature->kind, "rgb") != 0)
        return false;
    if (sscanf(feature->bins, "%ux%ux%u", &bins[0], &bins[1], &bins[2]) != 3)
        return false;
    if (feature->grid[0] && sscanf(feature->grid, "%ux%u", &rows, &columns) != 2)
        rows = columns = 1;
    const uint64_t cell = (uint64_t)bins[0] * bins[1] * bins[2];
    if (cell == 0 || cell * rows * columns != dimension)
        return false;
    const bool roots =
        (strcmp(metric, "hellinger") == 0) != (strcmp(feature->normalize, "hellinger") == 0);
    for (uint32_t i = 0; i < dimension; i++) {
        const uint32_t bin = (uint32_t)(i % cell);
        const double a = (bin / (bins[1] * bins[2]) + 0.5) / bins[0];
        const double b = (bin / bins[2] % bins[1] + 0.5) / bins[1];
        const double c = (bin % bins[2] + 0.5) / bins[2];
        const double value = centroid[i] > 0 ? (double)centroid[i] : 0;
        const double weight = roots ? value * value : value;
        if (!(weight > 0) || !isfinite(weight))
            continue;
        if (hsv)
            palette_add(cells, channel_of_hue(360 * a, b, c, 5), channel_of_hue(360 * a, b, c, 3),
                        channel_of_hue(360 * a, b, c, 1), weight);
        else
            palette_add(cells, 255 * a, 255 * b, 255 * c, weight);
    }
    return true;
}

/* --- thumbnails -------------------------------------------------------------------------------- */

void palette_add_jpeg(struct palette_cells *cells, struct decode *decode, const uint8_t *jpeg,
                      size_t bytes)
{
    const struct blob blob = {.fd = -1, .bytes = bytes, .memory = jpeg};
    struct image_info info;
    struct failure failure;
    uint8_t row[3 * THUMBNAIL_MOST];
    if (decode_begin(decode, &blob, "", &info, &failure) != REASON_NONE)
        return;
    const double each = 1.0 / ((double)info.out_width * info.out_height);
    for (uint32_t y = 0; y < info.out_height && info.out_width <= THUMBNAIL_MOST; y++) {
        if (decode_rows(decode, row, sizeof row, 1, &failure) != REASON_NONE)
            break;
        for (uint32_t x = 0; x < info.out_width; x++)
            palette_add(cells, row[3 * x], row[3 * x + 1], row[3 * x + 2], each);
    }
    decode_abort(decode);
}
