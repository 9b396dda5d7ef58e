/* blur_part.h: what the host and blur_slot both read. */
#ifndef CLPIPE_KERNELS_BLUR_PART_H
#define CLPIPE_KERNELS_BLUR_PART_H

#ifdef __OPENCL_VERSION__
#define BLUR_U32 uint
#else
#include <stdint.h>
#define BLUR_U32 uint32_t
#endif

/* A block is what a work-item does: so many bytes of so many rows. */
#define BLUR_BLOCK_BYTES 16
#define BLUR_BLOCK_ROWS  16

/* A picture, or some rows of one, in a slot: rows of (width + 2) * 3 bytes without gaps, two more
 * than are blurred. The blurred rows go to another buffer, without gaps, too. */
struct blur_part {
    BLUR_U32 offset;  /* of the first pixel, bytes */
    BLUR_U32 blurred; /* of the first blurred one in the other buffer */
    BLUR_U32 width;   /* pixels of a blurred row */
    BLUR_U32 rows;    /* blurred ones; 0: nothing to do (the picture was given up) */
    BLUR_U32 first;   /* number of the part's first block in the slot */
};

#endif
