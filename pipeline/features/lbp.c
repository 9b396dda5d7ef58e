/* lbp.c: uniform local binary patterns (Ojala, Pietikainen, Maenpaa: Multiresolution gray-scale and
 * rotation invariant texture classification with local binary patterns, 2002), of luma, or of luma
 * and two opponent colours. */
#include "features/around.h"
#include "features/kind.h"

#define CLASSES 59u

/* The channels: luma, R - G, R + G - 2 B. */
static int channel_value(const uint8_t *pixel, size_t stride, uint32_t x, uint32_t y,
                         uint32_t channel)
{
    const uint8_t *p = pixel + y * stride + 3 * (size_t)x;
    return channel == 0   ? around_luma(pixel, stride, x, y)
           : channel == 1 ? p[0] - p[1]
                          : p[0] + p[1] - 2 * p[2];
}

/* The class of a circular run of k ones in 8 bits whose lowest bit is i: 8 (k - 1) + i. */
static uint32_t uniform_class(uint32_t code)
{
    uint32_t ones = 0, runs = 0, lowest = 0;
    for (uint32_t i = 0; i < 8; i++) {
        ones += code >> i & 1;
        if ((code >> i & 1) && !(code >> (i + 7) % 8 & 1)) {
            runs++;
            lowest = i;
        }
    }
    return ones == 0 ? 56 : ones == 8 ? 57 : runs > 1 ? 58 : 8 * (ones - 1) + lowest;
}

static void count_patterns(uint32_t *words, const struct feature *feature, const uint8_t *pixel,
                           size_t stride)
{
    static const uint8_t around[8][2] = {{0, 0}, {1, 0}, {2, 0}, {2, 1},
                                         {2, 2}, {1, 2}, {0, 2}, {0, 1}};
    for (uint32_t c = 0; c < feature->kind->channels; c++) {
        const int here = channel_value(pixel, stride, 1, 1, c);
        uint32_t code = 0;
        for (uint32_t n = 0; n < 8; n++)
            code =
                code << 1 | (channel_value(pixel, stride, around[n][0], around[n][1], c) >= here);
        words[c * CLASSES + uniform_class(code)]++;
    }
}

#define LBP                                                                                        \
    .bins = {CLASSES}, .fixed = true, .border = AROUND_BORDER, .scale = AROUND_SCALE,              \
    .header = "neighbours_lbp.h", .kernel = "neighbours", .count = count_patterns

const struct feature_kind feature_lbp = {
    .name = "lbp", .channels = 1, .macro = "LBP", .examples = {"lbp:levels=1+2+3"}, LBP};

const struct feature_kind feature_oplbp = {
    .name = "oplbp", .channels = 3, .macro = "OPLBP", .examples = {"oplbp"}, LBP};
