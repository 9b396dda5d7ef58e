/* code_part.h: what the host and code_slot both read. */
#ifndef CLPIPE_KERNELS_CODE_PART_H
#define CLPIPE_KERNELS_CODE_PART_H

#ifdef __OPENCL_VERSION__
#define CODE_U32 uint
#else
#include <stdint.h>
#define CODE_U32 uint32_t
#endif

/* Cells side by side in the stored image that a work-item takes; on a CPU all of a row. */
#define CODE_RUN        8
#define CODE_RUN_CPU    32
#define CODE_ITEMS(run) (32 * 32 / (run)) /* work-items of a part */

/* An image, or a part of one, in a slot. Coordinates are stored ones. */
struct code_part {
    CODE_U32 offset;         /* of the part's first pixel, bytes */
    CODE_U32 stride;         /* bytes from row to row */
    CODE_U32 width, height;  /* of the whole image */
    CODE_U32 x0, y0, x1, y1; /* the part; empty: nothing to do (the picture was given up) */
    CODE_U32 words;          /* index of the part's first word */
    CODE_U32
    turned; /* bit 0: rows are columns of the upright image; bit 1: x, bit 2: y run backwards */
};

#endif
