/* patch_slot: stores 6x6 squares of pixels of all pictures in a slot as rows of 108 bytes in one
 * launch.
 *
 * A work-item copies one square: six rows of 18 bytes. */
#include "descriptor_place.h"

#define SIDE 6
#define STEP 3

__kernel void patch_slot(__global const uchar *pixels, __global const struct descriptor_part *parts,
                         uint count, uint all, __global uchar *out)
{
    FIND_SQUARE(SIDE, STEP)
    __global uchar *to = out + part.out + 3 * SIDE * SIDE * (size_t)index;
    for (int j = 0; j < SIDE; j++, in += stride, to += 3 * SIDE)
        for (int i = 0; i < 3 * SIDE; i++)
            to[i] = in[i];
}
