/* gray.c: a histogram of luma. */
#include "features/around.h"
#include "features/kind.h"

static void count_luma(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                       size_t stride)
{
    (void)stride;
    words[(uint32_t)pixel_luma(pixel) * feature->bins[0] >> 8]++;
}

const struct feature_kind feature_gray = {
    .name = "gray",
    .alias = "grey",
    .bins = {256},
    .channels = 1,
    .macro = "GRAY",
    .header = "histogram_bins_gray.h",
    .count = count_luma,
    .examples = {"gray:bins=10,grid=2x5", "b=gray:bins=256"},
};
