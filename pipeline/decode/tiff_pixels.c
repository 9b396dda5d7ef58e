/* tiff_pixels.c: the conversions of docs/features.md for TIFF's sample types. Depth is reduced
 * first. */
#include "decode/tiff_pixels.h"

#include <string.h>

/* Sample i of a row with `bits` bits per sample. */
static uint32_t sample_at(const uint8_t *row, size_t i, uint32_t bits)
{
    if (bits == 8)
        return row[i];
    if (bits == 16) {
        uint16_t v;
        memcpy(&v, row + 2 * i, sizeof v);
        return v;
    }
    size_t bit = i * bits;
    uint32_t v = 0;
    for (uint32_t b = 0; b < bits; b++, bit++)
        v = v << 1 | (row[bit / 8] >> (7 - bit % 8) & 1u);
    return v;
}

/* Sample s of pixel x, of a row in each plane or in the only one. */
static uint32_t sample_of(const struct tiff_layout *layout, const uint8_t *const *planes, size_t x,
                          uint32_t s)
{
    return layout->separate ? sample_at(planes[s], x, layout->bits)
                            : sample_at(planes[0], x * layout->samples + s, layout->bits);
}

/* Writes the colour of pixel x before alpha. */
static void put_colour(uint8_t *dst, const struct tiff_layout *layout, bool inks,
                       const uint8_t *const *planes, size_t x)
{
    const uint32_t colours = layout->kind == TIFF_CMYK ? 4 : layout->kind == TIFF_RGB ? 3 : 1;
    uint32_t c[4] = {0};
    if (layout->kind == TIFF_PALETTE) {
        memcpy(dst, layout->palette[sample_of(layout, planes, x, 0) & 255], 3);
        return;
    }
    for (uint32_t i = 0; i < colours; i++)
        c[i] = pixel_scale(sample_of(layout, planes, x, i), (1u << layout->bits) - 1);
    for (int i = 0; i < (inks ? 4 : 3); i++) {
        if (inks)
            dst[i] = (uint8_t)(255 - c[i]);
        else if (layout->kind == TIFF_CMYK)
            dst[i] = (uint8_t)(((255 - c[i]) * (255 - c[3]) + 127) / 255);
        else if (layout->kind == TIFF_RGB)
            dst[i] = (uint8_t)c[i];
        else
            dst[i] = (uint8_t)(layout->kind == TIFF_WHITE_IS_0 ? 255 - c[0] : c[0]);
    }
}

void tiff_put_pixels(uint8_t *dst, uint8_t *alphas, const struct tiff_layout *layout, bool inks,
                     const uint8_t *const *planes, uint32_t count)
{
    if (layout->kind == TIFF_RGB && layout->bits == 8 && layout->samples == 3 &&
        !layout->separate) {
        memcpy(dst, planes[0], 3 * (size_t)count);
        return;
    }
    for (size_t x = 0; x < count; x++, dst += inks ? 4 : 3) {
        put_colour(dst, layout, inks, planes, x);
        if (layout->alpha_at >= 0)
            alphas[x] = pixel_scale(sample_of(layout, planes, x, (uint32_t)layout->alpha_at),
                                    (1u << layout->bits) - 1);
    }
}

void tiff_put_rgba(uint8_t *dst, uint8_t *alphas, const uint8_t *src, uint32_t count)
{
    for (size_t x = 0; x < count; x++, src += 4) {
        uint32_t pixel;
        memcpy(&pixel, src, sizeof pixel);
        alphas[x] = (uint8_t)(pixel >> 24);
        for (size_t c = 0; c < 3; c++)
            dst[3 * x + c] = (uint8_t)(pixel >> 8 * c);
    }
}

uint8_t tiff_channels(const struct tiff_layout *layout)
{
    if (layout->kind == TIFF_CMYK)
        return 4;
    bool grey = layout->kind == TIFF_BLACK_IS_0 || layout->kind == TIFF_WHITE_IS_0;
    return (uint8_t)((grey ? 1 : 3) + (layout->alpha_at >= 0 ? 1 : 0));
}
