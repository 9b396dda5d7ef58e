/* jpeg_part.h: data shared by the host, jpeg_idct and jpeg_pixels. */
#ifndef CLPIPE_KERNELS_JPEG_PART_H
#define CLPIPE_KERNELS_JPEG_PART_H

#include "part_types.h"

#define JPEG_GROUP 64 /* work-items; a work-group works on one part */

/* Kinds of part. */
#define JPEG_NOTHING 0 /* picture abandoned */
#define JPEG_COPY    1 /* already pixels */
#define JPEG_GREY    2
#define JPEG_YCC     3
#define JPEG_RGB     4

#define JPEG_TABLES 384 /* bytes of quantization tables before the first block */

/* A picture in a slot. `offset` is where its coefficients, laid out as in decode/dct.h, or its pixels
 * begin. Its pixels go to a second buffer. The samples of its blocks go to offset / 2 of a third,
 * one plane per component. */
struct jpeg_part {
    PART_U32 offset;        /* bytes, a multiple of 128 */
    PART_U32 pixels;        /* likewise, in the pixel buffer */
    PART_U32 kind;
    PART_U32 width, height; /* pixels; for JPEG_COPY: number of 16-byte vectors, and 1 */
    PART_U32 across, down;  /* horizontal and vertical subsampling of the chroma components */
    PART_U32 blocks_across[3], blocks_down[3];
    PART_U32 first_blocks;  /* index of the part's first work-group in jpeg_idct */
    PART_U32 first_pixels;  /* and in jpeg_pixels */
};

#endif
