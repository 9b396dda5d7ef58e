/* thumbnail_part.h: data shared by the host and thumbnail_slot. */
#ifndef CLPIPE_KERNELS_THUMBNAIL_PART_H
#define CLPIPE_KERNELS_THUMBNAIL_PART_H

#include "part_types.h"

enum { THUMBNAIL_GREY, THUMBNAIL_YCC, THUMBNAIL_RGB };

/* A picture's coefficients in a slot or arena, laid out as in decode/dct.h. Sizes are as stored. */
struct thumbnail_part {
    PART_U32 first;  /* index of the part's first pixel in the slot */
    PART_U32 pixels; /* of the thumbnail; 0: nothing to do (picture abandoned) */
    PART_U32 offset; /* byte offset of the tables */
    PART_U32 bytes;  /* byte offset of the pixels in the output words */
    PART_U32 colour;
    PART_U32 side; /* pixels along a side of a reduced block: 1, 2, 4 or 8 */
    PART_U32 shift_x, shift_y;             /* of the second and third component */
    PART_U32 block[3], blocks_across[3];   /* its first block and blocks a row */
    PART_U32 columns, lines, step, middle; /* reduced; line i: i * step + middle */
    PART_U32 to_width, to_height;
    /* 1 / the weight of a box across and down: of boxes of the usual weight, and of larger ones. */
    float across[2], down[2];
};

#endif
