/* scale_part.h: data shared by the host and scale_slot. */
#ifndef CLPIPE_KERNELS_SCALE_PART_H
#define CLPIPE_KERNELS_SCALE_PART_H

#ifdef __OPENCL_VERSION__
#define SCALE_U32 uint
#define SCALE_I32 int
#else
#include <stdint.h>
#define SCALE_U32 uint32_t
#define SCALE_I32 int32_t
#endif

/* A picture in a slot: rows of width * 3 bytes without padding. A window of the scaled picture goes
 * to another buffer, also without padding, and upright. All sizes are as stored. */
struct scale_part {
    SCALE_U32 offset;        /* byte offset of the first pixel */
    SCALE_U32 scaled;        /* byte offset of the window's pixel (0, 0) in the other buffer */
    SCALE_I32 column, row;   /* bytes from one column, and one row, to the next */
    SCALE_U32 width, height; /* pixels */
    SCALE_U32 full_width, full_height; /* of the whole scaled picture */
    SCALE_U32 left, top;     /* of the window in it */
    SCALE_U32 scaled_width;  /* of the window */
    SCALE_U32 scaled_height; /* 0: nothing to do (picture abandoned) */
    SCALE_U32 first;         /* index of the part's first scaled pixel or pair of rows */
};

#endif
