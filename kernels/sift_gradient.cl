/* sift_gradient: the gradients of all pictures in a slot, each split between the two nearest of 8
 * directions: one byte per direction, 8 per pixel and channel. One launch.
 *
 * A work-item takes GRADIENT_RUN pixels of a row and a channel. CHANNELS is 1, grey, or 3, grey and
 * two opponent colours; the planes of the channels follow each other. */
#include "descriptor_place.h"
#include "sift_shape.h"

#ifndef CHANNELS
#error CHANNELS is not defined
#endif

static inline int channel(__global const uchar *p, uint c)
{
    const int r = p[0], g = p[1], b = p[2];
    if (CHANNELS == 1 || c == 0)
        return luma((uint)r, (uint)g, (uint)b);
    return c == 1 ? (r - g + 256) >> 1 : (r + g - 2 * b + 512) >> 2;
}

__kernel void sift_gradient(__global const uchar *pixels,
                            __global const struct descriptor_part *parts, uint count, uint all,
                            __global uchar *out, __global ulong *scratch)
{
    const uint item = (uint)get_global_id(0);
    if (item >= all)
        return;
    FIND_PART(found, parts, count, item, first[0])
    const struct descriptor_part part = parts[found];
    const uint index = item - part.first[0];
    const uint runs = (part.width + GRADIENT_RUN - 1) / GRADIENT_RUN;
    if (part.height == 0 || index >= runs * part.height * CHANNELS)
        return;
    const uint row = index / runs, first = (index - row * runs) * GRADIENT_RUN;
    const uint c = row / part.height, y = row - c * part.height;
    const uint end = min(part.width, first + GRADIENT_RUN);
    const int stride = (int)(3 * part.width);
    const int above = y > 0 ? -stride : 0, below = y + 1 < part.height ? stride : 0;
    __global ulong *to =
        scratch + (size_t)part.scratch * CHANNELS + ((size_t)c * part.height + y) * part.width;

    __global const uchar *p = pixels + part.offset + y * (uint)stride + 3 * first;
    int left = channel(first > 0 ? p - 3 : p, c), here = channel(p, c);
    for (uint x = first; x < end; x++, p += 3) {
        const int right = x + 1 < part.width ? channel(p + 3, c) : here;
        const int dx = right - left, dy = channel(p + below, c) - channel(p + above, c);
        const int across = abs(dx), down = abs(dy);
        const int more = max(across, down), less = min(across, down);
        const int straight = across >= down ? (dx >= 0 ? 0 : 4) : (dy >= 0 ? 2 : 6);
        const int slant = dx >= 0 ? (dy >= 0 ? 1 : 7) : (dy >= 0 ? 3 : 5);
        to[x] = (ulong)(more - less) << (8 * straight) |
                (ulong)min(181 * less >> 7, 255) << (8 * slant);
        left = here;
        here = right;
    }
}
