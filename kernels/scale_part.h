/* scale_part.h: data shared by the host and scale_slot. */
#ifndef CLPIPE_KERNELS_SCALE_PART_H
#define CLPIPE_KERNELS_SCALE_PART_H

#include "part_types.h"

/* A picture in a slot: rows of width * 3 bytes without padding. A window of the scaled picture goes
 * to another buffer, also without padding, and upright. All sizes are as stored. */
struct scale_part {
    PART_U32 offset;        /* byte offset of the first pixel */
    PART_U32 scaled;        /* byte offset of the window's pixel (0, 0) in the other buffer */
    PART_I32 column, row;   /* bytes from one column, and one row, to the next */
    PART_U32 width, height; /* pixels */
    PART_U32 full_width, full_height; /* of the whole scaled picture */
    PART_U32 left, top;     /* of the window in it */
    PART_U32 scaled_width;  /* of the window */
    PART_U32 scaled_height; /* 0: nothing to do (picture abandoned) */
    PART_U32 first;         /* index of the part's first scaled pixel or pair of rows */
};

#endif
