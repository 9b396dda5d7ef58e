/* descriptor_part.h: what the host and the kernels of descriptors both read. */
#ifndef CLPIPE_KERNELS_DESCRIPTOR_PART_H
#define CLPIPE_KERNELS_DESCRIPTOR_PART_H

#ifdef __OPENCL_VERSION__
#define DESCRIPTOR_U32 uint
#else
#include <stdint.h>
#define DESCRIPTOR_U32 uint32_t
#endif

/* A whole upright RGB picture, rows of 3 * width bytes. */
struct descriptor_part {
    DESCRIPTOR_U32 offset; /* of the first pixel, bytes */
    DESCRIPTOR_U32 width, height; /* 0: nothing to do (the picture was given up, or is no whole one) */
    DESCRIPTOR_U32 out;           /* of the first descriptor in the other buffer, bytes */
    DESCRIPTOR_U32 scratch;       /* pixels of the parts before */
    DESCRIPTOR_U32 first[2];      /* number of the part's first item in the slot, of each kernel */
};

/* Descriptors of a picture, and the row of words that they are added to. */
struct words_part {
    DESCRIPTOR_U32 offset; /* of the first descriptor, bytes */
    DESCRIPTOR_U32 number; /* of descriptors; 0: nothing to do */
    DESCRIPTOR_U32 words;  /* number of the first word */
    DESCRIPTOR_U32 first[2]; /* number of the part's first item in the slot, of each kernel */
};

#endif
