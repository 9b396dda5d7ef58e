/* rgb.c: histograms of red, green and blue: one per channel, or a joint one. */
#include "features/kind.h"

static void count_channels(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                           size_t stride)
{
    (void)stride;
    for (uint32_t c = 0; c < 3; c++)
        words[c * feature->bins[0] + (pixel[c] * feature->bins[0] >> 8)]++;
}

static void count_joint(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                        size_t stride)
{
    (void)stride;
    const uint32_t *bins = feature->bins;
    words[((pixel[0] * bins[0] >> 8) * bins[1] + (pixel[1] * bins[1] >> 8)) * bins[2] +
          (pixel[2] * bins[2] >> 8)]++;
}

const struct feature_kind feature_rgb = {
    .name = "rgb",
    .bins = {256},
    .channels = 3,
    .macro = "RGB",
    .header = "histogram_bins_rgb.h",
    .count = count_channels,
    .examples = {"rgb:bins=256", "a=rgb:bins=100,grid=3x3"},
};

const struct feature_kind feature_rgb_joint = {
    .name = "rgb",
    .bins = {8, 8, 8},
    .macro = "RGB_JOINT",
    .header = "histogram_bins_rgb.h",
    .count = count_joint,
    .examples = {"rgb:bins=7x9x5", "d=rgb:bins=31x33x15"},
};
