/* code_slot: the words of the perceptual codes of all images in a slot, one launch.
 *
 * A work-item adds up the samples of CODE_RUN cells that lie side by side as stored, 4 x 4 each, and
 * writes their words: no two work-items have the same cell of a part, so there are no atomics. Places
 * of samples are computed for each column and row; orientation decides which cell they belong to.
 * Every image costs the same 16,384 samples, whatever its size. Bound by the latency of the scattered
 * loads.
 */
#include "code_part.h"

#define SAMPLES 128 /* down, and across */
#define EACH    4   /* samples of a cell, down, and across */
#define CELLS   (SAMPLES / EACH)

/* Where sample `k` of an axis of `size` pixels lies; both as stored. */
static inline uint place(uint k, uint size, uint backwards)
{
    const uint upright = backwards ? SAMPLES - 1 - k : k;
    const uint at = (uint)((ulong)(2 * upright + 1) * size / (2 * SAMPLES));
    return backwards ? size - 1 - at : at;
}

__kernel void code_slot(__global const uchar *pixels, __global const struct code_part *parts,
                        uint count, uint items, __global uint *words)
{
    const uint item = (uint)get_global_id(0);
    if (item >= items || item / CODE_ITEMS >= count)
        return;
    const struct code_part part = parts[item / CODE_ITEMS];
    const uint swapped = part.turned & 1, back_x = part.turned >> 1 & 1, back_y = part.turned >> 2;
    const uint down = item % CODE_ITEMS / (CELLS / CODE_RUN);
    const uint across = item % (CELLS / CODE_RUN) * CODE_RUN;
    uint rows[EACH];
    uint inside = 0;
    for (uint i = 0; i < EACH; i++) {
        rows[i] = place(down * EACH + i, part.height, back_y);
        inside += rows[i] >= part.y0 && rows[i] < part.y1;
    }
    if (inside == 0)
        return;
    for (uint c = 0; c < CODE_RUN; c++) {
        uint red = 0, green = 0, blue = 0;
        for (uint j = 0; j < EACH; j++) {
            const uint x = place((across + c) * EACH + j, part.width, back_x);
            if (x < part.x0 || x >= part.x1)
                continue;
            __global const uchar *column = pixels + part.offset + 3 * (x - part.x0);
            for (uint i = 0; i < EACH; i++) {
                if (rows[i] < part.y0 || rows[i] >= part.y1)
                    continue;
                __global const uchar *p = column + (rows[i] - part.y0) * part.stride;
                red += p[0];
                green += p[1];
                blue += p[2];
            }
        }
        const uint stored_x = back_x ? CELLS - 1 - across - c : across + c;
        const uint stored_y = back_y ? CELLS - 1 - down : down;
        const uint cell = swapped ? stored_x * CELLS + stored_y : stored_y * CELLS + stored_x;
        words[part.words + cell] = 77 * red + 150 * green + 29 * blue;
    }
}
