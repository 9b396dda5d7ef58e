/* code_part.h: data shared by the host and code_slot. */
#ifndef CLPIPE_KERNELS_CODE_PART_H
#define CLPIPE_KERNELS_CODE_PART_H

#include "part_types.h"

/* Adjacent cells of the stored image that a work-item takes; on a CPU, a whole row of cells. */
#define CODE_RUN        8
#define CODE_RUN_CPU    32
#define CODE_ITEMS(run) (32 * 32 / (run)) /* work-items per part */

/* An image, or part of one, in a slot. Coordinates are those of the stored image. */
struct code_part {
    PART_U32 offset;         /* byte offset of the part's first pixel */
    PART_U32 stride;         /* bytes between rows */
    PART_U32 width, height;  /* of the whole image */
    PART_U32 x0, y0, x1, y1; /* the part; empty: nothing to do (picture abandoned) */
    PART_U32 words;          /* index of the part's first word */
    PART_U32
    turned; /* bit 0: transposed against the upright image; bit 1: x, bit 2: y is reversed */
};

#endif
