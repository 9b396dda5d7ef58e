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
    const uint item = (uint)get_global_id(0);
    if (item >= all)
        return;
    FIND_PART(found, parts, count, item, first[0])
    const struct descriptor_part part = parts[found];
    const uint index = item - part.first[0];
    const uint across = squares(part.width, SIDE, STEP), down = squares(part.height, SIDE, STEP);
    if (index >= across * down)
        return;
    const uint row = index / across;
    const uint x = margin(part.width, SIDE, STEP) + (index - row * across) * STEP;
    const uint y = margin(part.height, SIDE, STEP) + row * STEP;
    const uint stride = 3 * part.width;
    __global const uchar *in = pixels + part.offset + y * stride + 3 * x;
    __global uchar *to = out + part.out + 3 * SIDE * SIDE * (size_t)index;
    for (int j = 0; j < SIDE; j++, in += stride, to += 3 * SIDE)
        for (int i = 0; i < 3 * SIDE; i++)
            to[i] = in[i];
}
