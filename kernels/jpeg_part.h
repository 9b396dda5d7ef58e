/* jpeg_part.h: what the host, jpeg_idct and jpeg_pixels all read. */
#ifndef CLPIPE_KERNELS_JPEG_PART_H
#define CLPIPE_KERNELS_JPEG_PART_H

#ifdef __OPENCL_VERSION__
#define JPEG_U32 uint
#else
#include <stdint.h>
#define JPEG_U32 uint32_t
#endif

#define JPEG_GROUP 64 /* work-items; a group works on one part */

/* Part kinds. */
#define JPEG_NOTHING 0 /* given up */
#define JPEG_COPY    1 /* pixels already */
#define JPEG_GREY    2
#define JPEG_YCC     3
#define JPEG_RGB     4

#define JPEG_TABLES 384 /* bytes of the quantization tables before the first block */

/* A picture in a slot. At `offset` lie its coefficients as part/dct.h describes, or its pixels; its
 * pixels go to another buffer. The samples of its blocks go to offset / 2 of a third, a plane for
 * each component. */
struct jpeg_part {
    JPEG_U32 offset;        /* bytes, a multiple of 128 */
    JPEG_U32 pixels;        /* likewise, in the buffer of pixels */
    JPEG_U32 kind;
    JPEG_U32 width, height; /* pixels; JPEG_COPY: sixteens of bytes, 1 */
    JPEG_U32 across, down;  /* samples of the first component for one of the others */
    JPEG_U32 blocks_across[3], blocks_down[3];
    JPEG_U32 first_blocks;  /* the part's first group in the range of jpeg_idct */
    JPEG_U32 first_pixels;  /* in that of jpeg_pixels */
};

#endif
