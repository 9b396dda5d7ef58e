/* reduced.h: a small picture straight from DCT coefficients.
 *
 * An inverse transform of n points (1, 2, 4 or 8) of a block's n x n lowest frequencies gives an n
 * x n picture of the 8 x 8 block; for n = 1 that is its mean. */
#ifndef CLPIPE_DECODE_REDUCED_H
#define CLPIPE_DECODE_REDUCED_H

#include "decode/dct.h"
#include <stddef.h>
#include <stdint.h>

/* Buffers reused from picture to picture; zeroed by the owner. */
struct reduced {
    uint8_t *bytes;
    size_t room;
};

/* Returns n, such that the picture at n / 8 of its size has at least least_width x least_height
 * pixels, and sets its size *width x *height (rounded up). */
unsigned reduced_side(uint32_t *width, uint32_t *height, const struct dct_layout *layout,
                      uint32_t least_width, uint32_t least_height);

/* Returns the RGB pixels of that picture in a buffer of `reduced`. NULL: no memory. */
const uint8_t *reduced_pixels(struct reduced *reduced, uint32_t *width, uint32_t *height,
                              const void *coefficients, const struct dct_layout *layout,
                              uint32_t least_width, uint32_t least_height);

/* Frees the buffers; accepts a zeroed struct. */
void reduced_clear(struct reduced *reduced);

#endif
