/* code_slot: the words of the perceptual codes of all images in a slot in one launch.
 *
 * A work-item adds up the samples of RUN adjacent cells of the stored image and writes their words.
 * No two work-items share a cell of a part, so there are no atomics. The positions of samples are
 * computed for each column and row; the orientation decides which cell they belong to. Every image
 * costs the same 8,192 samples, whatever its size: in the upright image, four per cell across and
 * two down, since samples of a row mostly share cache lines. Bound by memory. */
#include "code_part.h"

#define CELLS  32
#define ACROSS 4 /* samples across a cell of the upright image */
#define DOWN   2
#ifdef CPU
#define RUN CODE_RUN_CPU
#else
#define RUN CODE_RUN
#endif

/* Position of sample `k` of `samples` along an axis of `size` pixels; both as stored. */
static inline uint place(uint k, uint samples, uint size, uint backwards)
{
    const uint upright = backwards ? samples - 1 - k : k;
    const uint at = (uint)((ulong)(2 * upright + 1) * size / (2 * samples));
    return backwards ? size - 1 - at : at;
}

__kernel void code_slot(__global const uchar *pixels, __global const struct code_part *parts,
                        uint count, uint items, __global uint *words)
{
    const uint item = (uint)get_global_id(0);
    if (item >= items || item / CODE_ITEMS(RUN) >= count)
        return;
    const struct code_part part = parts[item / CODE_ITEMS(RUN)];
    const uint swapped = part.turned & 1, back_x = part.turned >> 1 & 1, back_y = part.turned >> 2;
    const uint across = swapped ? DOWN : ACROSS, down = swapped ? ACROSS : DOWN;
    const uint row = item % CODE_ITEMS(RUN) / (CELLS / RUN);
    const uint column = item % (CELLS / RUN) * RUN;
    uint at[ACROSS] = {0}; /* of the sampled rows in the part */
    uint rows = 0;
    for (uint i = 0; i < down; i++) {
        const uint y = place(row * down + i, CELLS * down, part.height, back_y);
        if (y >= part.y0 && y < part.y1)
            at[rows++] = (y - part.y0) * part.stride;
    }
    /* Upright, and whole rows. */
    const bool usual = part.turned == 0 && rows == DOWN && part.x0 == 0 && part.x1 == part.width;
    __global const uchar *first = pixels + part.offset + at[0];
    __global const uchar *second = pixels + part.offset + (usual ? at[1] : at[0]);
    if (usual && first == second && CELLS % part.width == 0) {
        /* 32 columns, or a divisor of 32: all samples of a cell hit one pixel. */
        __global uint *out = words + part.words + row * CELLS;
        __global const uchar *p = first + 3 * column;
        for (uint c = 0; part.width == CELLS && c < RUN; c++, p += 3)
            out[column + c] = ACROSS * DOWN * (77 * p[0] + 150 * p[1] + 29 * p[2]);
        for (uint c = column; part.width < CELLS && c < column + RUN; c++) {
            p = first + 3 * (c * part.width / CELLS);
            out[c] = ACROSS * DOWN * (77 * p[0] + 150 * p[1] + 29 * p[2]);
        }
        return;
    }
    for (uint c = column; c < column + RUN && rows > 0; c++) {
        uint red = 0, green = 0, blue = 0;
        for (uint j = 0; usual && j < ACROSS; j++) {
            const uint x = (uint)((ulong)(2 * (c * ACROSS + j) + 1) * part.width >> 8);
            __global const uchar *p = first + 3 * x, *q = second + 3 * x;
            red += p[0] + q[0];
            green += p[1] + q[1];
            blue += p[2] + q[2];
        }
        for (uint j = 0; !usual && j < across; j++) {
            const uint x = place(c * across + j, CELLS * across, part.width, back_x);
            if (x < part.x0 || x >= part.x1)
                continue;
            __global const uchar *p = pixels + part.offset + 3 * (x - part.x0);
            for (uint i = 0; i < rows; i++) {
                red += p[at[i]];
                green += p[at[i] + 1];
                blue += p[at[i] + 2];
            }
        }
        const uint x = back_x ? CELLS - 1 - c : c, y = back_y ? CELLS - 1 - row : row;
        words[part.words + (swapped ? x * CELLS + y : y * CELLS + x)] =
            77 * red + 150 * green + 29 * blue;
    }
}
