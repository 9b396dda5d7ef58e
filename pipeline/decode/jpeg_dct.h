/* jpeg_dct.h: which JPEG pictures can be read as DCT coefficients. Internal to decode. */
#ifndef CLPIPE_DECODE_JPEG_DCT_H
#define CLPIPE_DECODE_JPEG_DCT_H

#include "decode/dct.h"

#include <stdio.h> /* needed by jpeglib.h */

#include <jpeglib.h>

/* After the header is read: fills a zeroed layout if decode/dct.c can compute the library's pixels
 * from the coefficients. */
void jpeg_dct_layout(struct dct_layout *layout, struct jpeg_decompress_struct *info);

#endif
