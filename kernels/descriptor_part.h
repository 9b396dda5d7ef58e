/* descriptor_part.h: data shared by the host and the descriptor kernels. */
#ifndef CLPIPE_KERNELS_DESCRIPTOR_PART_H
#define CLPIPE_KERNELS_DESCRIPTOR_PART_H

#include "part_types.h"

/* A whole, upright RGB picture: rows of 3 * width bytes. */
struct descriptor_part {
    PART_U32 offset; /* byte offset of the first pixel */
    PART_U32 width, height; /* 0: nothing to do (abandoned, or not a whole picture) */
    PART_U32 out;           /* byte offset of the first descriptor in the output buffer */
    PART_U32 scratch;       /* pixels in all earlier parts */
    PART_U32 first[2];      /* index of the part's first work-item in the slot, per kernel */
};

/* The descriptors of one picture, and the output row they are counted in. */
struct words_part {
    PART_U32 offset; /* byte offset of the first descriptor */
    PART_U32 number; /* descriptors; 0: nothing to do */
    PART_U32 words;  /* index of the row's first word */
    PART_U32 first[2]; /* index of the part's first work-item in the slot, per kernel */
};

#endif
