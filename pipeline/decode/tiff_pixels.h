/* tiff_pixels.h: samples as TIFF stores them to RGB. Inside decode; knows nothing of libtiff. */
#ifndef CLPIPE_DECODE_TIFF_PIXELS_H
#define CLPIPE_DECODE_TIFF_PIXELS_H

#include "decode/decode.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tiff_kind { TIFF_BLACK_IS_0, TIFF_WHITE_IS_0, TIFF_PALETTE, TIFF_RGB, TIFF_CMYK };

struct tiff_layout {
    enum tiff_kind kind;
    uint32_t bits;      /* of a sample, 1 to 16; 16 in the host's byte order */
    uint32_t samples;   /* of a pixel, all of them */
    int alpha_at;       /* the sample that is alpha, or -1 */
    bool premultiplied; /* colours already are c * a */
    bool separate;      /* a plane for each sample */
    bool has_palette;
    uint8_t palette[256][3];
    enum alpha_mode alpha;
};

/* `count` pixels of a row. planes: the row in each plane, or in the only one. */
void tiff_put_pixels(uint8_t *dst, const struct tiff_layout *layout, const uint8_t *const *planes,
                     uint32_t count);

/* The same from R, G, B, A in memory order of a uint32 with R lowest, premultiplied. */
void tiff_put_rgba(uint8_t *dst, const uint8_t *src, uint32_t count, enum alpha_mode alpha);

/* The same two for a colour profile: CMYK stays, 4 bytes a pixel with 255 for no ink; alphas get
 * one byte a pixel, and colours are not multiplied by them. */
void tiff_put_colours(uint8_t *dst, uint8_t *alphas, const struct tiff_layout *layout,
                      const uint8_t *const *planes, uint32_t count);
void tiff_put_rgba_colours(uint8_t *dst, uint8_t *alphas, const uint8_t *src, uint32_t count);

/* For image_info. */
uint8_t tiff_channels(const struct tiff_layout *layout);

#endif
