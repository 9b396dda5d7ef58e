/* rgb.c: histograms of red, green and blue: one per channel, or a joint one. */
#include "features/kind.h"

static void count_channels(uint32_t *words, const struct feature *feature, const uint8_t *pixels,
                           size_t stride, uint32_t width, uint32_t rows)
{
    const uint32_t bins = feature->bins[0];
    for (uint32_t y = 0; y < rows; y++, pixels += stride)
        for (uint32_t i = 0; i < 3 * width; i++)
            words[i % 3 * bins + (pixels[i] * bins >> 8)]++;
}

static void count_joint(uint32_t *words, const struct feature *feature, const uint8_t *pixels,
                        size_t stride, uint32_t width, uint32_t rows)
{
    const uint32_t *bins = feature->bins;
    for (uint32_t y = 0; y < rows; y++, pixels += stride) {
        for (uint32_t x = 0; x < width; x++) {
            const uint8_t *p = pixels + 3 * (size_t)x;
            words[((p[0] * bins[0] >> 8) * bins[1] + (p[1] * bins[1] >> 8)) * bins[2] +
                  (p[2] * bins[2] >> 8)]++;
        }
    }
}

static const char *const channel_examples[] = {"rgb:bins=256", "a=rgb:bins=100,grid=3x3", NULL};
static const char *const joint_examples[] = {"rgb:bins=7x9x5", "d=rgb:bins=31x33x15", NULL};

const struct feature_kind feature_rgb = {
    .name = "rgb",
    .bins = {256},
    .channels = 3,
    .macro = "RGB",
    .header = "histogram_bins_rgb.h",
    .count = count_channels,
    .examples = channel_examples,
};

const struct feature_kind feature_rgb_joint = {
    .name = "rgb",
    .bins = {8, 8, 8},
    .macro = "RGB_JOINT",
    .header = "histogram_bins_rgb.h",
    .count = count_joint,
    .examples = joint_examples,
};
