/* gray.c: a histogram of luma. */
#include "features/around.h"
#include "features/kind.h"

static void count_luma(uint32_t *words, const struct feature *feature, const uint8_t *pixels,
                       size_t stride, uint32_t width, uint32_t rows)
{
    for (uint32_t y = 0; y < rows; y++, pixels += stride) {
        for (uint32_t x = 0; x < width; x++)
            words[(uint32_t)pixel_luma(pixels + 3 * (size_t)x) * feature->bins[0] >> 8]++;
    }
}

static const char *const examples[] = {"gray:bins=10,grid=2x5", "b=gray:bins=256", NULL};

const struct feature_kind feature_gray = {
    .name = "gray",
    .alias = "grey",
    .bins = {256},
    .channels = 1,
    .macro = "GRAY",
    .header = "histogram_bins_gray.h",
    .count = count_luma,
    .examples = examples,
};
