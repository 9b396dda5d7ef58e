/* descriptor_place.h: helpers shared by the descriptor kernels. */
#ifndef CLPIPE_KERNELS_DESCRIPTOR_PLACE_H
#define CLPIPE_KERNELS_DESCRIPTOR_PLACE_H

#include "descriptor_part.h"
#include "find_part.h"

/* Number of squares of `side` pixels every `step` pixels along an axis; offset of the first one. */
static inline uint squares(uint size, uint side, uint step)
{
    return size < side ? 0 : (size - side) / step + 1;
}

static inline uint margin(uint size, uint side, uint step)
{
    return (size - side - (size - side) / step * step) / 2;
}

/* Finds the work-item's square of pixels, number `index` of its part, whose first pixel is at `in`
 * and whose rows are `stride` bytes apart, or returns. */
#define FIND_SQUARE(side, step)                                                                    \
    const uint item = (uint)get_global_id(0);                                                      \
    if (item >= all)                                                                               \
        return;                                                                                    \
    FIND_PART(found, parts, count, item, first[0])                                                 \
    const struct descriptor_part part = parts[found];                                              \
    const uint index = item - part.first[0];                                                       \
    const uint across = squares(part.width, side, step), down = squares(part.height, side, step);  \
    if (index >= across * down)                                                                    \
        return;                                                                                    \
    const uint row = index / across;                                                               \
    const uint x = margin(part.width, side, step) + (index - row * across) * step;                 \
    const uint y = margin(part.height, side, step) + row * step;                                   \
    const uint stride = 3 * part.width;                                                            \
    __global const uchar *in = pixels + part.offset + y * stride + 3 * x;

/* floor(sqrt(q)) of an integer below 2^16. sqrt may be off by 3 ulp; adding one half keeps that
 * from reaching the next integer. */
#define ROOT(q) sqrt((q) + 0.5f)

/* Unaligned vectors. In OpenCL C 2.0 vstore takes a generic pointer, which Oclgrind 21.10 does not
 * support; nor does it support the instruction compilers emit for / and % by the same divisor. */
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
