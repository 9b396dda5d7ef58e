/* blur_part.h: data shared by the host and blur_slot. */
#ifndef CLPIPE_KERNELS_BLUR_PART_H
#define CLPIPE_KERNELS_BLUR_PART_H

#include "part_types.h"

/* A work-item blurs one block: this many bytes of each of this many rows. */
#define BLUR_BLOCK_BYTES 16
#define BLUR_BLOCK_ROWS  16

/* A picture, or some rows of one, in a slot: rows of (width + 2) * 3 bytes without padding, two
 * more rows than are blurred. The blurred rows go to another buffer, also without padding. */
struct blur_part {
    PART_U32 offset;  /* byte offset of the first pixel */
    PART_U32 blurred; /* byte offset of the first blurred pixel, in the other buffer */
    PART_U32 width;   /* pixels in a blurred row */
    PART_U32 rows;    /* blurred rows; 0: nothing to do (picture abandoned) */
    PART_U32 first;   /* index of the part's first block in the slot */
};

#endif
