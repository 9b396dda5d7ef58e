/* dct_synthetic.h: synthetic images as DCT coefficients, for comparisons with dct.c. */
#ifndef CLPIPE_DECODE_DCT_SYNTHETIC_H
#define CLPIPE_DECODE_DCT_SYNTHETIC_H

#include "decode/dct.h"

/* Sets the block counts of a layout with colour, size and sampling: whole MCUs, as in files. */
void dct_synthetic_blocks(struct dct_layout *layout);

/* Fills dct_bytes(layout): blocks with only a DC coefficient, with one row of coefficients, and
 * with all of them, since decoders treat these differently. Coefficients are from -largest to
 * largest, quantization steps from 1 to `coarsest`. state: see base/random.h. */
void dct_synthetic_coefficients(void *out, const struct dct_layout *layout, uint32_t largest,
                                uint32_t coarsest, uint32_t *state);

#endif
