/* scale_part.h: what the host and scale_slot both read. */
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

/* A picture in a slot: rows of width * 3 bytes without gaps. A window of the scaled one goes to another
 * buffer, without gaps, too, and upright. All sizes are as stored. */
struct scale_part {
    SCALE_U32 offset;        /* of the first pixel, bytes */
    SCALE_U32 scaled;        /* of pixel (0, 0) of the window in the other buffer */
    SCALE_I32 column, row;   /* from there to the next column, and row, bytes */
    SCALE_U32 width, height; /* pixels */
    SCALE_U32 full_width, full_height; /* of the scaled picture */
    SCALE_U32 left, top;     /* of the window in it */
    SCALE_U32 scaled_width;  /* of the window */
    SCALE_U32 scaled_height; /* 0: nothing to do (the picture was given up) */
    SCALE_U32 first;         /* number of the part's first scaled pixel, or pair of rows, in the slot */
};

#endif
