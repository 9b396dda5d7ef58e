/* minimum: a toy feature kind with neighbours: counts the smallest luma in the 3x3 pixels around
 * each pixel. One work-group per tile. */
#include "histogram_bins.h"

#define COUNT(i, KIND, n0, n1, n2, n, o, t)                                                        \
    atomic_inc(counters + tile.counters + (o) + tile.cell * (n) + (least * (n0) >> 8));

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
minimum(__global const uchar *pixels, __global const struct histogram_tile *tiles, uint first,
        uint count, __global uint *counters)
{
    const struct histogram_tile tile = tiles[first + get_group_id(0)];
    for (uint i = (uint)get_local_id(0); i < tile.width * tile.rows; i += GROUP) {
        const uint y = i / tile.width, x = i - y * tile.width;
        uint least = 255;
        for (uint n = 0; n < 9; n++) {
            __global const uchar *p =
                pixels + tile.offset + (y + n / 3) * tile.stride + 3 * (x + n % 3);
            least = min(least, luma(p[0], p[1], p[2]));
        }
        FEATURES(COUNT)
    }
}
