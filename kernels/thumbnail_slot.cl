/* thumbnail_slot: computes the pixels of thumbnails from coefficients for all pictures in a slot in
 * one launch.
 *
 * A work-item computes one pixel of a thumbnail: the mean of a box of pixels of the reduced
 * picture, which has `side` x `side` pixels for each block of coefficients, computed from its
 * lowest frequencies. Pixels shared by several boxes are computed again, which costs little next to
 * the picture's entropy code. The result equals that of decode/shrink.h bit for bit: sums in 64 bits,
 * since hostile coefficients are large, and floating point without contraction, times reciprocals
 * computed by the host. */
#pragma OPENCL FP_CONTRACT OFF

#include "find_part.h"
#include "thumbnail_part.h"

#define UNIT       16u /* total weight of a row or column */
#define BLOCK      64u
#define TABLES     3u
#define WHOLE_MOST 15u /* columns of a box whose sum fits 16 bits */

/* 2^11 cos(k pi / 16). */
__constant int cosine[32] = {
    2048,  2009,  1892,  1703,  1448,  1138,  784,  400,  0, -400, -784, -1138, -1448, -1703, -1892, -2009,
    -2048, -2009, -1892, -1703, -1448, -1138, -784, -400, 0, 400,  784,  1138,  1448,  1703,  1892,  2009};

/* The value at x of the u-th of `side` cosines. */
static inline int factor(uint x, uint u, uint side)
{
    return u == 0 ? 1448 : cosine[(2 * x + 1) * u * (8 / side) & 31];
}

static inline int clamp_sample(long value)
{
    return (int)clamp(value, 0L, 255L);
}

/* Pixel (x, y) of a reduced component. */
static inline int sample(__global const ushort *tables, const __private struct thumbnail_part *part,
                         uint component, uint x, uint y)
{
    const uint side = part->side;
    const uint block =
        part->block[component] + y / side * part->blocks_across[component] + x / side;
    __global const short *coefficient =
        (__global const short *)(tables + TABLES * BLOCK) + (size_t)block * BLOCK;
    __global const ushort *quantization = tables + component * BLOCK;
    if (side == 1)
        return clamp_sample((long)((coefficient[0] * (int)quantization[0] + 4) >> 3) + 128);
    x &= side - 1;
    y &= side - 1;
    long sum = 0;
    for (uint v = 0; v < side; v++) {
        long row = 0;
        for (uint u = 0; u < side; u++)
            row += (long)(coefficient[8 * v + u] * (int)quantization[8 * v + u]) *
                   factor(x, u, side);
        sum += row * factor(y, v, side);
    }
    return clamp_sample(((sum + (1L << 23)) >> 24) + 128);
}

/* Adds a pixel times `weight`. */
static inline void add_pixel(__private int *sum, __global const ushort *tables,
                             const __private struct thumbnail_part *part, uint x, uint y, int weight)
{
    const int first = sample(tables, part, 0, x, y);
    if (part->colour == THUMBNAIL_GREY) {
        for (uint c = 0; c < 3; c++)
            sum[c] += weight * first;
        return;
    }
    const int second = sample(tables, part, 1, x >> part->shift_x, y >> part->shift_y);
    const int third = sample(tables, part, 2, x >> part->shift_x, y >> part->shift_y);
    const int cb = second - 128, cr = third - 128;
    const bool ycc = part->colour == THUMBNAIL_YCC;
    const int green = first - ((22554 * cb + 46802 * cr + 32768) >> 16);
    sum[0] += weight * (ycc ? clamp(first + ((91881 * cr + 32768) >> 16), 0, 255) : first);
    sum[1] += weight * (ycc ? clamp(green, 0, 255) : second);
    sum[2] += weight * (ycc ? clamp(first + ((116130 * cb + 32768) >> 16), 0, 255) : third);
}

/* Where box `box` of `to` over `from` rows or columns begins, in units; at whole rows or columns if
 * there are 2 or more per box. */
static inline uint box_begin(uint from, uint to, uint box)
{
    const uint at = (uint)((ulong)box * from * UNIT / to);
    return from / to >= 2 ? (at + UNIT / 2) / UNIT * UNIT : at;
}

/* Overlap of [from, to) with row or column i, in units. */
static inline uint shared(uint from, uint to, uint i)
{
    return min(to, (i + 1) * UNIT) - max(from, i * UNIT);
}

__kernel void thumbnail_slot(__global const uchar *in, __global const struct thumbnail_part *parts,
                             uint count, uint all, __global uint *words)
{
    const uint item = (uint)get_global_id(0);
    if (item >= all)
        return;
    FIND_PART(found, parts, count, item, first)
    const struct thumbnail_part part = parts[found];
    const uint index = item - part.first;
    if (index >= part.pixels)
        return;
    __global const ushort *tables = (__global const ushort *)(in + part.offset);
    const uint y = index / part.to_width, x = index - y * part.to_width;
    const uint left = box_begin(part.columns, part.to_width, x);
    const uint right = box_begin(part.columns, part.to_width, x + 1);
    const uint top = box_begin(part.lines, part.to_height, y);
    const uint bottom = box_begin(part.lines, part.to_height, y + 1);
    /* Whole rows have weight 1, which keeps sums small. */
    const uint unit = part.lines / part.to_height >= 2 ? UNIT : 1;
    int sum[3] = {0, 0, 0};
    for (uint j = top / UNIT; j * UNIT < bottom; j++) {
        const int weight = (int)(shared(top, bottom, j) / unit);
        for (uint i = left / UNIT; i * UNIT < right; i++)
            add_pixel(sum, tables, &part, i, j * part.step + part.middle,
                      weight * (int)shared(left, right, i));
    }
    const uint ratio = part.columns / part.to_width;
    const uint rows = (bottom - top) / unit;
    const bool whole = ratio >= 2 && ratio < WHOLE_MOST && rows < UNIT;
    const int pixels = (int)((right - left) / UNIT * rows);
    const float weight = part.across[right - left > part.columns * UNIT / part.to_width] *
                         part.down[bottom - top > part.lines * UNIT / part.to_height];
    __global uchar *out = (__global uchar *)words + part.bytes + 3 * index;
    for (uint c = 0; c < 3; c++)
        out[c] = (uchar)(whole ? (sum[c] / (int)UNIT + pixels / 2) *
                                         ((65536 + pixels / 2) / pixels) >>
                                     16
                               : (int)((float)sum[c] * weight + 0.5f));
}
