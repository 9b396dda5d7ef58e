/* quality.c: the kind quality: its C reference, and the numbers computed from its words. */
#include "features/quality.h"

#include "base/minmax.h"
#include "features/around.h"
#include "features/kind.h"

#include <stdlib.h>

#define SCALE 256u
#define TONE  4u /* levels on either side counted as the same tone */
/* An edge class counts if it has at least 1 in EDGE_SHARE places, and a minimum number; the highest
 * such class is used. */
#define EDGE_SHARE 400u
#define EDGE_LEAST 12u

const char *const quality_names[QUALITY_VALUES] = {
    "p1",         "p5",       "p50",    "p95",   "p99",   "contrast",  "entropy",          "detail",
    "saturation", "coloured", "black",  "white", "edges", "sharpness", "sharpness_coarse", "left",
    "top",        "right",    "bottom",
};

/* --- the reference ------------------------------------------------------------------------------ */

/* Classifies five pixels, `step` bytes apart. */
static void add_edge(uint32_t *words, const uint8_t *pixels, size_t step)
{
    const int span = abs(pixel_luma(pixels) - pixel_luma(pixels + 4 * step));
    uint32_t largest = 0;
    for (unsigned i = 0; i < 4; i++)
        largest = max_u32(largest, (uint32_t)abs(pixel_luma(pixels + i * step) -
                                                 pixel_luma(pixels + (i + 1) * step)));
    words[0]++;
    for (unsigned k = 0; k < QUALITY_CLASSES && span >= (int)QUALITY_SPAN << k; k++) {
        words[1 + 3 * k]++;
        words[2 + 3 * k] += (uint32_t)span;
        words[3 + 3 * k] += largest;
    }
}

/* The number of pixels of a line that differ from the corner. */
static uint32_t count_differing(const uint8_t *pixels, ptrdiff_t step, uint32_t length,
                                const uint8_t *corner)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < length; i++, pixels += step) {
        bool differs = abs(pixel_luma(pixels) - pixel_luma(corner)) > (int)QUALITY_FLAT;
        for (unsigned c = 0; c < 3; c++)
            differs |= abs(pixels[c] - corner[c]) > (int)QUALITY_FLAT_CHANNEL;
        count += differs;
    }
    return count;
}

static uint32_t border(const uint8_t *corner, ptrdiff_t line, ptrdiff_t step, uint32_t lines,
                       uint32_t length)
{
    uint32_t n = 0;
    while (n < lines && count_differing(corner + (ptrdiff_t)n * line, step, length, corner) == 0)
        n++;
    if (n + 3 >= lines)
        return 0;
    return 2 * count_differing(corner + (ptrdiff_t)(n + 3) * line, step, length, corner) >= length
               ? n
               : 0;
}

void quality_reference(uint32_t *words, const uint8_t *pixels, size_t stride, uint32_t width,
                       uint32_t height)
{
    for (uint32_t y = 0; y < height; y += QUALITY_TONES)
        for (uint32_t x = 0; x < width; x++) {
            const uint8_t *p = pixels + y * stride + 3 * (size_t)x;
            const uint32_t chroma =
                max_u32(max_u32(p[0], p[1]), p[2]) - min_u32(min_u32(p[0], p[1]), p[2]);
            words[pixel_luma(p)]++;
            words[QUALITY_AT_COLOUR] += chroma;
            words[QUALITY_AT_COLOUR + 1] += chroma >= QUALITY_COLOUR;
        }
    for (uint32_t s = 1; s <= QUALITY_SCALES; s++)
        for (uint32_t y = 4; y + 5 <= height; y += QUALITY_GROUP) {
            uint32_t *to = words + QUALITY_AT_EDGES + (s - 1) * QUALITY_EDGE_WORDS;
            const uint8_t *row = pixels + y * stride;
            for (uint32_t x = 0; x + 4 * s < width; x++)
                add_edge(to, row + 3 * (size_t)x, 3 * (size_t)s);
            for (uint32_t x = 0; x < width; x++)
                add_edge(to, row - 2 * s * stride + 3 * (size_t)x, s * stride);
        }
    const uint8_t *right = pixels + 3 * (size_t)(width - 1),
                  *bottom = pixels + (height - 1) * stride;
    const ptrdiff_t down = (ptrdiff_t)stride;
    words[QUALITY_AT_BORDERS] += border(pixels, 3, down, width, height);
    words[QUALITY_AT_BORDERS + 1] += border(pixels, down, 3, height, width);
    words[QUALITY_AT_BORDERS + 2] += border(right, -3, down, width, height);
    words[QUALITY_AT_BORDERS + 3] += border(bottom, -down, 3, height, width);
    words[QUALITY_AT_SIZE] += width;
    words[QUALITY_AT_SIZE + 1] += height;
}

/* --- numbers ------------------------------------------------------------------------------------ */

/* floor(part * whole / of); 0 if `of` is 0. */
static uint32_t share(uint64_t part, uint64_t of, uint32_t whole)
{
    return of ? (uint32_t)(part * whole / of) : 0;
}

/* The smallest luma with at least that percentage of the pixels up to it. */
static uint32_t percentile(const uint32_t *count, uint64_t pixels, uint32_t hundredths)
{
    uint64_t sum = 0;
    for (uint32_t v = 0; v < 255; v++)
        if (100 * (sum += count[v]) >= hundredths * pixels)
            return v;
    return 255;
}

/* floor(2^16 log2(n)) for n >= 1, bit by bit by squaring. */
static uint64_t logarithm(uint32_t n)
{
    const unsigned whole = 31u - (unsigned)__builtin_clz(n);
    uint64_t part = (uint64_t)n << (31 - whole), bits = whole;
    for (unsigned i = 0; i < 16; i++) {
        part = part * part >> 31;
        bits = bits << 1 | part >> 32;
        part >>= part >> 32;
    }
    return bits;
}

/* log2(pixels) minus the mean of log2(count), in integers, without the tones [from, to). */
static uint32_t entropy(const uint32_t *count, uint64_t all, unsigned from, unsigned to)
{
    uint64_t sum = 0, pixels = 0;
    for (unsigned v = 0; v < 256; v++) {
        const uint64_t n = v >= from && v < to ? 0 : count[v];
        sum += n ? n * logarithm((uint32_t)n) : 0;
        pixels += n;
    }
    return pixels && 50 * pixels >= all
               ? (uint32_t)((pixels * logarithm((uint32_t)pixels) - sum) * 1000 / (pixels << 16))
               : 0;
}

static uint32_t sharpness(const uint32_t *edge)
{
    for (uint32_t k = QUALITY_CLASSES; k-- > 0;) {
        const uint32_t *class = edge + 1 + 3 * k;
        if (class[0] >= EDGE_LEAST && (uint64_t) class[0] * EDGE_SHARE >= edge[0])
            return share(class[2], class[1], 1000);
    }
    return 0;
}

static bool finish_quality(void *values, const struct feature *feature, const uint32_t *words)
{
    static const uint32_t hundredths[] = {1, 5, 50, 95, 99};
    const uint32_t *edge = words + QUALITY_AT_EDGES, *size = words + QUALITY_AT_SIZE;
    uint32_t *out = values;
    uint64_t pixels = 0, sum = 0, squares = 0;
    unsigned tone = 0;
    (void)feature;
    for (uint32_t v = 0; v < 256; v++) {
        pixels += words[v];
        sum += (uint64_t)v * words[v];
        squares += (uint64_t)v * v * words[v];
        tone = words[v] > words[tone] ? v : tone;
    }
    for (unsigned i = 0; i < 5; i++)
        out[QUALITY_P1 + i] = percentile(words, pixels, hundredths[i]);
    out[QUALITY_CONTRAST] =
        pixels ? whole_root(10000 * (pixels * squares - sum * sum) / (pixels * pixels)) : 0;
    out[QUALITY_ENTROPY] = entropy(words, pixels, 0, 0);
    out[QUALITY_DETAIL] = entropy(words, pixels, tone < TONE ? 0 : tone - TONE, tone + TONE + 1);
    out[QUALITY_SATURATION] = share(words[QUALITY_AT_COLOUR], pixels, 100);
    out[QUALITY_COLOURED] = share(words[QUALITY_AT_COLOUR + 1], pixels, 10000);
    out[QUALITY_BLACK] = share((uint64_t)words[0] + words[1], pixels, 10000);
    out[QUALITY_WHITE] = share((uint64_t)words[254] + words[255], pixels, 10000);
    out[QUALITY_EDGES] = share(edge[1], edge[0], 10000);
    out[QUALITY_SHARPNESS] = sharpness(edge);
    out[QUALITY_SHARPNESS_COARSE] = sharpness(edge + QUALITY_EDGE_WORDS);
    for (unsigned i = 0; i < 4; i++)
        out[QUALITY_LEFT + i] = share(words[QUALITY_AT_BORDERS + i], size[i & 1], 1000);
    return true;
}

static enum status settle_quality(struct feature *feature, const char *spec, struct error *err)
{
    if (feature->grid_rows != 1 || feature->grid_columns != 1 || feature->levels > 0)
        return error_set(err, STATUS_USAGE,
                         "feature '%s': quality takes no grid= and no levels=", spec);
    feature->normalize = NORMALIZE_NONE;
    feature->bins[0] = QUALITY_VALUES;
    feature->cell_bins = QUALITY_WORDS;
    feature->cell_values = QUALITY_VALUES;
    return STATUS_OK;
}

const struct feature_kind feature_quality = {
    .name = "quality",
    .fixed = true,
    .zeros = true,
    .scale = SCALE,
    .whole_numbers = true,
    .settle = settle_quality,
    .finish = finish_quality,
};
