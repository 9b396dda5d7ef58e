/* dct_made.h: made pictures as DCT coefficients, for what is proven to compute as dct.c does. */
#ifndef CLPIPE_PART_DCT_MADE_H
#define CLPIPE_PART_DCT_MADE_H

#include "part/dct.h"

/* Sets the numbers of blocks, as files have them, of a layout whose colour, size and sampling are
 * set: those of whole MCUs. */
void dct_made_blocks(struct dct_layout *layout);

/* Fills dct_bytes(layout): blocks of a mean, of a row of values and of all, which decoders treat
 * differently, with coefficients from -largest to largest and quantization from 1 to `coarsest`.
 * state: of base/random.h. */
void dct_made_coefficients(void *out, const struct dct_layout *layout, uint32_t largest,
                           uint32_t coarsest, uint32_t *state);

#endif
