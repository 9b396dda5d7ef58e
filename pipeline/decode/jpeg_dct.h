/* jpeg_dct.h: which JPEG pictures can be had as DCT coefficients. Inside decode. */
#ifndef CLPIPE_DECODE_JPEG_DCT_H
#define CLPIPE_DECODE_JPEG_DCT_H

#include "part/dct.h"

#include <stddef.h>
#include <stdio.h> /* jpeglib.h needs FILE */

#include <jpeglib.h>

/* After the header has been read: fills a zeroed layout where the coefficients suffice to make the
 * pixels as the library would, by what part/dct.c knows. */
void jpeg_dct_layout(struct dct_layout *layout, struct jpeg_decompress_struct *info);

#endif
