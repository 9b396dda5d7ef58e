/* tiff_pixels.c: the conversions of docs/features.md for TIFF's sample types. Depth is reduced
 * first. */
#include "decode/tiff_pixels.h"

#include "decode/codec.h"

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

static uint32_t colours_of(const struct tiff_layout *layout)
{
    return layout->kind == TIFF_CMYK ? 4 : layout->kind == TIFF_RGB ? 3 : 1;
}

/* Reduces colour samples to 8 bits. */
static void reduce(uint32_t c[4], const struct tiff_layout *layout, const uint32_t *v)
{
    for (uint32_t i = 0; i < colours_of(layout); i++)
        c[i] = layout->bits == 8 ? v[i] : pixel_scale(v[i], (1u << layout->bits) - 1);
}

/* The pixel's colour before alpha; v: its first samples. */
static void colour_of(uint8_t out[3], const struct tiff_layout *layout, const uint32_t *v)
{
    uint32_t c[4];
    if (layout->kind == TIFF_PALETTE) {
        memcpy(out, layout->palette[v[0] & 255], 3);
        return;
    }
    reduce(c, layout, v);
    for (int i = 0; i < 3; i++) {
        if (layout->kind == TIFF_CMYK)
            out[i] = (uint8_t)(((255 - c[i]) * (255 - c[3]) + 127) / 255);
        else if (layout->kind == TIFF_RGB)
            out[i] = (uint8_t)c[i];
        else
            out[i] = (uint8_t)(layout->kind == TIFF_WHITE_IS_0 ? 255 - c[0] : c[0]);
    }
}

/* Reads the first samples of pixel x: its colour, or a palette index. */
static void samples_of(uint32_t v[4], const struct tiff_layout *layout,
                       const uint8_t *const *planes, size_t x)
{
    for (uint32_t s = 0; s < colours_of(layout); s++)
        v[s] = layout->separate ? sample_at(planes[s], x, layout->bits)
                                : sample_at(planes[0], x * layout->samples + s, layout->bits);
}

static uint8_t alpha_of(const struct tiff_layout *layout, const uint8_t *const *planes, size_t x)
{
    uint32_t at = (uint32_t)layout->alpha_at;
    uint32_t a = layout->separate ? sample_at(planes[at], x, layout->bits)
                                  : sample_at(planes[0], x * layout->samples + at, layout->bits);
    return pixel_scale(a, (1u << layout->bits) - 1);
}

void tiff_put_pixels(uint8_t *dst, uint8_t *alphas, const struct tiff_layout *layout, bool inks,
                     const uint8_t *const *planes, uint32_t count)
{
    const size_t bytes = inks ? 4 : 3;
    if (layout->kind == TIFF_RGB && layout->bits == 8 && layout->samples == 3 &&
        !layout->separate) {
        memcpy(dst, planes[0], 3 * (size_t)count);
        return;
    }
    for (size_t x = 0; x < count; x++, dst += bytes) {
        uint32_t v[4] = {0}, c[4];
        samples_of(v, layout, planes, x);
        if (inks)
            reduce(c, layout, v);
        else
            colour_of(dst, layout, v);
        for (size_t i = 0; i < bytes && inks; i++)
            dst[i] = (uint8_t)(255 - c[i]);
        if (layout->alpha_at >= 0)
            alphas[x] = alpha_of(layout, planes, x);
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
