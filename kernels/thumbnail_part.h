/* thumbnail_part.h: what the host and thumbnail_slot both read. */
#ifndef CLPIPE_KERNELS_THUMBNAIL_PART_H
#define CLPIPE_KERNELS_THUMBNAIL_PART_H

#ifdef __OPENCL_VERSION__
#define THUMBNAIL_U32 uint
#else
#include <stdint.h>
#define THUMBNAIL_U32 uint32_t
#endif

enum { THUMBNAIL_GREY, THUMBNAIL_YCC, THUMBNAIL_RGB };

/* A picture's coefficients in a slot or arena, as part/dct.h has them. Sizes are as stored. */
struct thumbnail_part {
    THUMBNAIL_U32 first;  /* number of the part's first pixel in the slot */
    THUMBNAIL_U32 pixels; /* of the thumbnail; 0: nothing to do (the picture was given up) */
    THUMBNAIL_U32 offset; /* of the tables, bytes */
    THUMBNAIL_U32 bytes;  /* where the pixels begin in the words, bytes */
    THUMBNAIL_U32 colour;
    THUMBNAIL_U32 side; /* of a reduced block: 1, 2, 4 or 8 pixels */
    THUMBNAIL_U32 shift_x, shift_y;             /* of the second and third component's samples */
    THUMBNAIL_U32 block[3], blocks_across[3];   /* a component's first block, and those of a row */
    THUMBNAIL_U32 columns, lines, step, middle; /* of the reduced picture; which rows are lines */
    THUMBNAIL_U32 to_width, to_height;
    /* 1 / the weight of a box across and down, of those of the usual weight and of larger ones. */
    float across[2], down[2];
};

#endif
