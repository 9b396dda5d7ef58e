/* histogram_global: every work-item adds directly to the picture's counters in global memory.
 *
 * The baseline, and the fallback for tables that do not fit in local memory (a joint histogram of
 * 16384 bins takes 64 KiB). Bound by global atomics: good for wide, well-spread histograms, bad for
 * pictures of one colour, where every addition hits the same word. One work-group per tile. */
#include "histogram_bins.h"

#ifndef GROUP
#error "the host defines GROUP, the work-group size"
#endif

#define ADD(n0, unused, c, v) atomic_inc(out + ((c) * (n0) + ((v) * (n0) >> 8)));
#define COUNT_CHANNELS(KIND, r, g, b, n0, n1, n2) VALUES_##KIND(ADD, n0, 0, r, g, b)
#define COUNT_SINGLE(KIND, r, g, b, n0, n1, n2)   atomic_inc(out + BIN_##KIND(r, g, b, n0, n1, n2));
#define COUNT(i, KIND, n0, n1, n2, n, o, t)                                                        \
    {                                                                                              \
        __global uint *out = counters + tile.counters + (o) + tile.cell * (n);                     \
        CAT(COUNT_, FORM_##KIND)(KIND, r, g, b, n0, n1, n2)                                        \
    }

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_global(__global const uchar *pixels, __global const struct histogram_tile *tiles,
                 uint first, uint count, __global uint *counters)
{
    if (get_group_id(0) >= count)
        return;
    const struct histogram_tile tile = tiles[first + get_group_id(0)];
    const uint total = tile.width * tile.rows;
    for (uint i = (uint)get_local_id(0); i < total; i += GROUP) {
        const uint y = i / tile.width, x = i - y * tile.width;
        __global const uchar *p = pixels + tile.offset + y * tile.stride + 3 * x;
        const uint r = p[0], g = p[1], b = p[2];
        FEATURES(COUNT)
    }
}
