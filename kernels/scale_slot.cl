/* scale_slot: a box filter that makes all pictures of a slot smaller, one launch.
 *
 * A scaled pixel is the mean over the rectangle of the picture that it covers, each pixel weighted by
 * the area that they share. In units of 1 / scaled_width pixels across and 1 / scaled_height down
 * everything has whole numbers: column i covers [i * scaled_width, (i + 1) * scaled_width), scaled
 * column x covers [x * width, (x + 1) * width). The weights of a scaled pixel add up to
 * width * height, and the quotient is rounded to the nearest, halves up. Sums need 64 bits. A
 * work-item takes a scaled pixel and finds its picture by bisection. Bound by its loads, of which
 * there are as many as pixels, and a few more at the edges of rectangles.
 */
#include "scale_part.h"

/* What [from, to) shares with cell i of the size `cell`. */
static inline ulong shared(ulong from, ulong to, uint i, uint cell)
{
    return min(to, (ulong)(i + 1) * cell) - max(from, (ulong)i * cell);
}

__kernel void scale_slot(__global const uchar *pixels, __global const struct scale_part *parts,
                         uint count, uint all, __global uchar *scaled)
{
    const uint item = (uint)get_global_id(0);
    if (item >= all)
        return;
    uint low = 0, high = count;
    while (high - low > 1) {
        const uint middle = (low + high) / 2;
        if (parts[middle].first <= item)
            low = middle;
        else
            high = middle;
    }
    const struct scale_part part = parts[low];
    const uint index = item - part.first;
    const uint y = index / part.scaled_width, x = index - y * part.scaled_width;
    if (y >= part.scaled_height)
        return;

    const ulong left = (ulong)x * part.width, right = left + part.width;
    const ulong top = (ulong)y * part.height, bottom = top + part.height;
    const uint first = (uint)(left / part.scaled_width);
    const uint end = (uint)((right + part.scaled_width - 1) / part.scaled_width);
    const uint last = (uint)((bottom + part.scaled_height - 1) / part.scaled_height);
    ulong red = 0, green = 0, blue = 0;
    for (uint j = (uint)(top / part.scaled_height); j < last; j++) {
        __global const uchar *in = pixels + part.offset + 3 * ((size_t)j * part.width + first);
        ulong r = 0, g = 0, b = 0;
        for (uint i = first; i < end; i++, in += 3) {
            const ulong weight = shared(left, right, i, part.scaled_width);
            r += weight * in[0];
            g += weight * in[1];
            b += weight * in[2];
        }
        const ulong weight = shared(top, bottom, j, part.scaled_height);
        red += weight * r;
        green += weight * g;
        blue += weight * b;
    }
    const ulong area = (ulong)part.width * part.height;
    __global uchar *out = scaled + part.scaled + 3 * (size_t)index;
    out[0] = (uchar)((red + area / 2) / area);
    out[1] = (uchar)((green + area / 2) / area);
    out[2] = (uchar)((blue + area / 2) / area);
}
