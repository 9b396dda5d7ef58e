/* dct_synthetic.h: synthetic images as DCT coefficients, for comparisons with dct.c. */
#ifndef CLPIPE_PART_DCT_SYNTHETIC_H
#define CLPIPE_PART_DCT_SYNTHETIC_H

#include "part/dct.h"

/* Sets the numbers of blocks of a layout whose colour, size and sampling are set: those of whole
 * MCUs, as in files. */
void dct_synthetic_blocks(struct dct_layout *layout);

/* Fills dct_bytes(layout): blocks with only a mean, with one row of values and with all values,
 * which decoders treat differently, with coefficients from -largest to largest and quantization
 * from 1 to `coarsest`. state: see base/random.h. */
void dct_synthetic_coefficients(void *out, const struct dct_layout *layout, uint32_t largest,
                                uint32_t coarsest, uint32_t *state);

#endif
