/* tiff_pixels.h: converts TIFF samples to RGB. Internal to decode; does not depend on libtiff. */
#ifndef CLPIPE_DECODE_TIFF_PIXELS_H
#define CLPIPE_DECODE_TIFF_PIXELS_H

#include "decode/decode.h"
#include <stdbool.h>
#include <stdint.h>

enum tiff_kind { TIFF_BLACK_IS_0, TIFF_WHITE_IS_0, TIFF_PALETTE, TIFF_RGB, TIFF_CMYK };

struct tiff_layout {
    enum tiff_kind kind;
    uint32_t bits;    /* per sample, 1 to 16; 16 in host byte order */
    uint32_t samples; /* per pixel, alpha included */
    int alpha_at;     /* index of the alpha sample, or -1 */
    bool separate;    /* one plane per sample */
    bool has_palette;
    uint8_t palette[256][3];
};

/* Converts `count` pixels of a row to RGB or, with `inks`, to CMYK, 4 bytes per pixel with 255 for no
 * ink. Alpha is written to `alphas`, if the layout has it, and not applied. planes: the row in each
 * plane, or in the only one. */
void tiff_put_pixels(uint8_t *dst, uint8_t *alphas, const struct tiff_layout *layout, bool inks,
                     const uint8_t *const *planes, uint32_t count);

/* The same for RGBA in memory order of a uint32 with R lowest. */
void tiff_put_rgba(uint8_t *dst, uint8_t *alphas, const uint8_t *src, uint32_t count);

/* The number of channels for image_info. */
uint8_t tiff_channels(const struct tiff_layout *layout);

#endif
