/* dct.h: JPEG pictures as DCT coefficients, and what makes pixels of them.
 *
 * Entropy decoding is what a JPEG costs; what follows (inverse transform, upsampling, colours) is
 * arithmetic that a device does for nothing. So a decoder may hand out coefficients, and kernels
 * make the pixels. Here is how coefficients lie in memory, and the plain C reference of those
 * kernels.
 *
 * Pixels are those of libjpeg-turbo's default decoder (ISLOW transform, fancy upsampling) as its
 * SIMD code computes them, in 16 bits where that does, so hostile coefficients wrap and saturate
 * alike. Where the library computes otherwise (no SIMD) coefficients are not handed out: see
 * decode_coefficients_agree.
 */
#ifndef CLPIPE_PART_DCT_H
#define CLPIPE_PART_DCT_H

#include <stddef.h>
#include <stdint.h>

#define DCT_BLOCK      64u /* coefficients */
#define DCT_COMPONENTS 3u

enum dct_colour {
    DCT_NONE, /* coefficients are not to be had */
    DCT_GREY,
    DCT_YCC,
    DCT_RGB,
};

/* In memory: DCT_COMPONENTS quantization tables of DCT_BLOCK uint16, then the blocks of each
 * component, row by row, left to right, each DCT_BLOCK int16 in natural order. All aligned to 128
 * bytes where the first byte is. */
struct dct_layout {
    enum dct_colour colour;
    uint32_t width, height; /* pixels */
    uint8_t across, down; /* samples of the first component for one of the others: 1x1, 2x1, 2x2 */
    uint32_t blocks_across[DCT_COMPONENTS], blocks_down[DCT_COMPONENTS]; /* 0: no such component */
};

#define DCT_TABLE_BYTES (DCT_COMPONENTS * DCT_BLOCK * sizeof(uint16_t))

/* Blocks of one component; of all. */
uint64_t dct_component_blocks(const struct dct_layout *layout, unsigned component);
uint64_t dct_blocks(const struct dct_layout *layout);

/* Bytes of all of it. */
uint64_t dct_bytes(const struct dct_layout *layout);

/* One block: coefficients and their quantization table to 8 rows of samples, `stride` bytes apart.
 */
void dct_block_samples(uint8_t *samples, size_t stride, const int16_t *coefficients,
                       const uint16_t *quantization);

/* Makes all pixels: height rows of width * 3 bytes. samples: room for 64 * dct_blocks bytes. */
void dct_pixels(uint8_t *pixels, uint8_t *samples, const void *coefficients,
                const struct dct_layout *layout);

#endif
