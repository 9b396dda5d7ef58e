/* total: a toy feature kind: the sum of all samples of each cell, as one word. One work-group per
 * tile. */
#include "histogram_bins.h"

#define ADD(i, KIND, n0, n1, n2, n, o, t)                                                          \
    atomic_add(counters + tile.counters + (o) + tile.cell * (n), (uint)p[0] + p[1] + p[2]);

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
total(__global const uchar *pixels, __global const struct histogram_tile *tiles, uint first,
      uint count, __global uint *counters)
{
    const struct histogram_tile tile = tiles[first + get_group_id(0)];
    for (uint i = (uint)get_local_id(0); i < tile.width * tile.rows; i += GROUP) {
        const uint y = i / tile.width, x = i - y * tile.width;
        __global const uchar *p = pixels + tile.offset + y * tile.stride + 3 * x;
        FEATURES(ADD)
    }
}
