/* code.h: the perceptual code of an image: 256 bits that hardly change with re-encoding, scaling
 * and small edits. docs/features.md defines it; numpy reproduces every bit.
 *
 * A device (the step `code`) adds up 64 rows of 128 samples at fixed positions of the upright
 * image in 32 x 32 cells (the words); words of parts add up to those of the image. A bit is the
 * sign of a coefficient of the cells' cosine transform, for the 256 lowest frequencies without the
 * constant. Mirroring the image horizontally negates the coefficients with odd horizontal
 * frequency, so the mirrored image's code follows from the code. */
#ifndef CLPIPE_FEATURES_CODE_H
#define CLPIPE_FEATURES_CODE_H

#include "decode/part.h"

#define CODE_BITS   256u
#define CODE_BYTES  32u
#define CODE_CELLS  32u /* rows, and columns, of cells */
#define CODE_WORDS  (CODE_CELLS * CODE_CELLS)
#define CODE_DOWN   2u /* samples per cell, vertically and horizontally */
#define CODE_ACROSS 4u
#define CODE_SHIFT  4u /* low bits of words dropped before the transform */

/* The C reference: adds the samples in `rect` (stored coordinates) to the words of the image.
 * pixels: the first pixel of rect, in RGB rows of `stride` bytes; width and height of the whole
 * image as stored. */
void code_count_reference(uint32_t *words, const uint8_t *pixels, size_t stride,
                          struct cell_rect rect, uint32_t width, uint32_t height,
                          uint8_t orientation);

/* Computes the code from the words of an image; bit i is bit 7 - i % 8 of byte i / 8. */
void code_finish(uint8_t code[CODE_BYTES], const uint32_t words[CODE_WORDS]);

/* The code of the horizontally mirrored image is `code` with the bits of this mask inverted. */
void code_mirror_mask(uint8_t mask[CODE_BYTES]);

#endif
