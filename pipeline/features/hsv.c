/* hsv.c: a joint histogram of hue in whole degrees, saturation and value. */
#include "features/kind.h"

static int floor_div(int a, int b)
{
    int q = a / b;
    return a % b != 0 && a < 0 ? q - 1 : q;
}

void feature_hsv_of(int *hue, int *saturation, int *value, const uint8_t *p)
{
    const int r = p[0], g = p[1], b = p[2];
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
    *hue = h;
    *saturation = s;
    *value = max;
}

static void count_hsv(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                      size_t stride)
{
    (void)stride;
    const uint32_t *bins = feature->bins;
    int h, s, v;
    feature_hsv_of(&h, &s, &v, pixel);
    const uint32_t hi = (uint32_t)h * bins[0] / 360;
    const uint32_t si = (uint32_t)s * bins[1] >> 8;
    const uint32_t vi = (uint32_t)v * bins[2] >> 8;
    words[(hi * bins[1] + si) * bins[2] + vi]++;
}

const struct feature_kind feature_hsv = {
    .name = "hsv",
    .bins = {8, 4, 4},
    .macro = "HSV",
    .header = "histogram_bins_hsv.h",
    .count = count_hsv,
    .examples = {"hsv:bins=8x4x4", "c=hsv:bins=12x3x5,grid=3x3"},
};
