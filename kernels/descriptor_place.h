/* descriptor_place.h: what the kernels of descriptors share: parts, squares, roots. */
#ifndef CLPIPE_KERNELS_DESCRIPTOR_PLACE_H
#define CLPIPE_KERNELS_DESCRIPTOR_PLACE_H

#include "descriptor_part.h"
#include "find_part.h"

/* Squares of `side` pixels every `step`: how many across, or down, and where they begin. */
static inline uint squares(uint size, uint side, uint step)
{
    return size < side ? 0 : (size - side) / step + 1;
}

static inline uint margin(uint size, uint side, uint step)
{
    return (size - side - (size - side) / step * step) / 2;
}

/* floor(sqrt(q)) of integers below 2^16. sqrt may miss by 3 ulp; half a unit keeps it from the next
 * integer. */
#define ROOT(q) sqrt((q) + 0.5f)

/* Bytes at any address. As OpenCL C 2.0, vstore takes a generic pointer, and Oclgrind 21.10 has none;
 * nor has it what compilers make of / and % by the same number. */
struct __attribute__((packed)) sixteen_bytes {
    uchar16 bytes;
};

struct __attribute__((packed)) eight_bytes {
    uchar8 bytes;
};

static inline int luma(uint r, uint g, uint b)
{
    return (int)((77 * r + 150 * g + 29 * b + 128) >> 8);
}

#endif
