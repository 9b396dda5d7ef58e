/* dct.h: JPEG images as DCT coefficients, and their conversion to pixels.
 *
 * Entropy decoding is the main cost of a JPEG; the rest (inverse transform, upsampling, colours) is
 * arithmetic that costs a device almost nothing. A decoder may therefore return coefficients, and
 * kernels compute the pixels. This file defines the layout of coefficients in memory and the plain
 * C reference of those kernels.
 *
 * Pixels are those of libjpeg-turbo's default decoder (ISLOW transform, fancy upsampling) as its
 * SIMD code computes them, with the same 16-bit steps, so hostile coefficients wrap and saturate in
 * the same way. If the library computes differently (no SIMD), decoders return no coefficients: see
 * decode_coefficients_agree. */
#ifndef CLPIPE_DECODE_DCT_H
#define CLPIPE_DECODE_DCT_H

#include <stddef.h>
#include <stdint.h>

#define DCT_BLOCK      64u /* coefficients */
#define DCT_COMPONENTS 3u

enum dct_colour {
    DCT_NONE, /* no coefficients available */
    DCT_GREY,
    DCT_YCC,
    DCT_RGB,
};

/* In memory: DCT_COMPONENTS quantization tables of DCT_BLOCK uint16, then the blocks of each
 * component, row by row, left to right, each DCT_BLOCK int16 in natural order. All are aligned to
 * 128 bytes if the first byte is. */
struct dct_layout {
    enum dct_colour colour;
    uint32_t width, height; /* pixels */
    uint8_t across, down;   /* first component's samples per sample of the others: 1x1, 2x1, 2x2 */
    uint32_t blocks_across[DCT_COMPONENTS], blocks_down[DCT_COMPONENTS]; /* 0: no such component */
};

#define DCT_TABLE_BYTES (DCT_COMPONENTS * DCT_BLOCK * sizeof(uint16_t))

/* The number of blocks of one component, and of all. */
uint64_t dct_component_blocks(const struct dct_layout *layout, unsigned component);
uint64_t dct_blocks(const struct dct_layout *layout);

/* Bytes of the tables and blocks. */
uint64_t dct_bytes(const struct dct_layout *layout);

/* Computes all pixels: height rows of width * 3 bytes. samples: scratch of 64 * dct_blocks
 * bytes. */
void dct_pixels(uint8_t *pixels, uint8_t *samples, const void *coefficients,
                const struct dct_layout *layout);

#endif
