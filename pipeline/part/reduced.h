/* reduced.h: a small picture straight from DCT coefficients.
 *
 * The n x n lowest frequencies of a block of 8 x 8 give an n x n picture of it by an inverse
 * transform of n points, n being 1, 2, 4 or 8; for n = 1 that is the block's mean. */
#ifndef CLPIPE_PART_REDUCED_H
#define CLPIPE_PART_REDUCED_H

#include "part/dct.h"
#include <stddef.h>
#include <stdint.h>

/* Memory that is used again for the next picture; zeroed by its owner. */
struct reduced {
    uint8_t *bytes;
    size_t room;
};

/* n, so that the picture at n / 8 of its size has at least least_width x least_height pixels; it has
 * *width x *height (rounded up). */
unsigned reduced_side(uint32_t *width, uint32_t *height, const struct dct_layout *layout,
                      uint32_t least_width, uint32_t least_height);

/* RGB pixels of that picture, in memory of `reduced`. NULL: no memory. */
const uint8_t *reduced_pixels(struct reduced *reduced, uint32_t *width, uint32_t *height,
                              const void *coefficients, const struct dct_layout *layout,
                              uint32_t least_width, uint32_t least_height);

void reduced_clear(struct reduced *reduced);

#endif
