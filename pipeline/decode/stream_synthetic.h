/* stream_synthetic.h: payloads encoded from coefficients, for comparisons with stream.c. */
#ifndef CLPIPE_DECODE_STREAM_SYNTHETIC_H
#define CLPIPE_DECODE_STREAM_SYNTHETIC_H

#include "decode/stream.h"

enum stream_codes {
    STREAM_CODES_USUAL, /* frequent symbols have short codes */
    STREAM_CODES_LONG,  /* most codes have 15 and 16 bits */
    STREAM_CODES_EVEN,  /* codes of 8 and 9 bits: decoding synchronises late, if at all */
};

/* Encodes the coefficients at `in` (tables and blocks of dct.h; values of at most 15 bits, DC of at
 * most 14) as a payload of at most `most` bytes. Returns its size; 0: larger. */
size_t stream_synthetic(void *out, size_t most, const void *in, const struct dct_layout *layout,
                        uint32_t restart_interval, enum stream_codes codes);

#endif
