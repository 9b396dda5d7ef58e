/* corner: a toy feature kind whose values are placed: the first pixel of each cell, as one word. One
 * work-group a tile. */
#include "histogram_bins.h"

#define PLACE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    counters[tile.counters + (o) + tile.cell * (n)] = (uint)p[0] << 16 | (uint)p[1] << 8 | p[2];

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
corner(__global const uchar *pixels, __global const struct histogram_tile *tiles, uint first,
       uint count, __global uint *counters)
{
    const struct histogram_tile tile = tiles[first + get_group_id(0)];
    __global const uchar *p = pixels + tile.offset;
    if (tile.starts_cell && get_local_id(0) == 0) {
        FEATURES(PLACE)
    }
}
