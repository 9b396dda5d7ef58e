/* gradient.c: gradients counted by logarithm of the magnitude and by direction. */
#include "features/around.h"
#include "features/kind.h"

#define MAGNITUDES 5u
#define DIRECTIONS 8u
#define LEAST      8 /* of Sobel's operator, whose sums are eight times a difference */

static void count_gradients(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                            size_t stride)
{
    (void)feature;
    int gx, gy;
    uint32_t magnitude = 0;
    around_sobel(&gx, &gy, pixel, stride);
    for (int least = LEAST; magnitude < MAGNITUDES && gx * gx + gy * gy >= least * least;
         least *= 2)
        magnitude++;
    words[magnitude == 0 ? MAGNITUDES * DIRECTIONS
                         : (magnitude - 1) * DIRECTIONS + around_direction(gx, gy, DIRECTIONS)]++;
}

const struct feature_kind feature_gradient = {
    .name = "gradient",
    .bins = {MAGNITUDES * DIRECTIONS + 1},
    .fixed = true,
    .scale = AROUND_SCALE,
    .border = AROUND_BORDER,
    .macro = "GRADIENT",
    .header = "neighbours_gradients.h",
    .kernel = "neighbours",
    .count = count_gradients,
    .examples = {"gradient:levels=1+2+3"},
};
