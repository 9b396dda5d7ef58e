/* hog.c: gradient magnitudes by signed direction (Dalal, Triggs: Histograms of oriented gradients
 * for human detection, 2005), one histogram per grid cell. */
#include "features/around.h"
#include "features/kind.h"

#define DIRECTIONS 18u

static void add_magnitudes(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                           size_t stride)
{
    (void)feature;
    int gx, gy;
    around_difference(&gx, &gy, pixel, stride);
    words[around_direction(gx, gy, DIRECTIONS)] += whole_root((uint32_t)(gx * gx + gy * gy));
}

const struct feature_kind feature_hog = {
    .name = "hog",
    .bins = {DIRECTIONS},
    .fixed = true,
    .zeros = true, /* no edges */
    .scale = AROUND_SCALE,
    .border = AROUND_BORDER,
    .macro = "HOG",
    .header = "neighbours_gradients.h",
    .kernel = "neighbours",
    .count = add_magnitudes,
    .examples = {"hog:grid=4x4"},
};
