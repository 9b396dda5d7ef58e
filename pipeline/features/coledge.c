/* coledge.c: pixels counted by colour zone and edge class together, as in CEDD (Chatzichristofis,
 * Boutalis: Color and edge directivity descriptor, 2008), but with crisp boundaries. */
#include "features/around.h"
#include "features/kind.h"

#define ZONES 36u
#define EDGES 9u

/* Black, three greys, and combinations of 8 hues, 2 saturations and 2 values. */
static uint32_t colour_zone(const uint8_t *p)
{
    int h, s, v;
    feature_hsv_of(&h, &s, &v, p);
    if (v < 32)
        return 0;
    if (s < 51)
        return v < 107 ? 1 : v < 182 ? 2 : 3;
    return 4 + (uint32_t)h * 8 / 360 * 4 + 2 * (s >= 128) + (v >= 153);
}

/* Flat, 4 directions of weak edges, and 4 of strong edges. */
static uint32_t edge_class(int gx, int gy)
{
    const int n = gx * gx + gy * gy;
    return n < 32 * 32 ? 0 : 1 + 4 * (n >= 96 * 96) + around_direction(gx, gy, 8) % 4;
}

static void count_coledge(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                          size_t stride)
{
    (void)feature;
    int gx, gy;
    around_sobel(&gx, &gy, pixel, stride);
    words[colour_zone(pixel + stride + 3) * EDGES + edge_class(gx, gy)]++;
}

const struct feature_kind feature_coledge = {
    .name = "coledge",
    .bins = {ZONES * EDGES}, /* as one axis */
    .fixed = true,
    .scale = AROUND_SCALE,
    .border = AROUND_BORDER,
    .macro = "COLEDGE",
    .header = "neighbours_gradients.h",
    .kernel = "neighbours",
    .count = count_coledge,
    .examples = {"coledge"},
};
