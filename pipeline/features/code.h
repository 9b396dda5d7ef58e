/* code.h: the perceptual code of an image: 256 bits that re-encoding, scaling and small changes leave
 * almost as they are. docs/features.md defines it; numpy reproduces every bit.
 *
 * 64 rows of 128 samples at fixed places of the upright image are added up in 32 x 32 cells (the words),
 * which a device does (steps/code_step.h): words of parts add up to those of the image. A bit is the
 * sign of a coefficient of the cells' cosine transform, the 256 lowest frequencies without the
 * constant. Mirroring the image from left to right turns the sign of those whose horizontal frequency
 * is odd, so the code of the mirrored image follows from the code. */
#ifndef CLPIPE_FEATURES_CODE_H
#define CLPIPE_FEATURES_CODE_H

#include "part/part.h"

#define CODE_BITS   256u
#define CODE_BYTES  32u
#define CODE_CELLS  32u /* rows, and columns, of cells */
#define CODE_WORDS  (CODE_CELLS * CODE_CELLS)
#define CODE_DOWN   2u /* samples of a cell, down, and across */
#define CODE_ACROSS 4u
#define CODE_SHIFT  4u /* bits that words lose before they are transformed */

/* The C reference: adds the samples that lie in `rect`, in stored coordinates, to the words of the
 * image. pixels: the first one of rect, RGB rows of `stride` bytes; width and height of the whole
 * image as stored. */
void code_count_reference(uint32_t *words, const uint8_t *pixels, size_t stride,
                          struct cell_rect rect, uint32_t width, uint32_t height,
                          uint8_t orientation);

/* The code from the words of an image: bit i is byte i / 8, bit 7 - i % 8. */
void code_finish(uint8_t code[CODE_BYTES], const uint32_t words[CODE_WORDS]);

/* The code of the image mirrored from left to right is `code` with the bits of this mask inverted. */
void code_mirror_mask(uint8_t mask[CODE_BYTES]);

#endif
