/* histogram_local: one work-group counts one tile in local memory, for GPUs.
 *
 * The table of the pass is kept COPIES times, interleaved: counter `bin` of copy c is word
 * bin * COPIES + c, and a work-item uses copy local_id mod COPIES. Neighbouring work-items, which see
 * neighbouring and therefore similar pixels, so increment different words in different banks, and a
 * constant picture does not serialise on one counter; with 32 copies no two lanes of a 32-wide warp
 * ever meet. The host takes as many copies as local memory holds. Three phases: clear, count with
 * local atomics, then sum the copies and add them to the picture's counters with one global atomic
 * for each counter that is not zero.
 *
 * What limits it: local atomic throughput (bank conflicts) with few copies, read bandwidth with many.
 * The NDRange is exactly `count` groups, so nobody returns early: PoCL 3.1 miscompiles a return before
 * a barrier even where a whole group takes it (measured: pixels counted into other features' tables).
 * Replication: J. Gomez-Luna et al., "An optimized approach to histogram computation on GPU" (2013).
 */
#include "histogram_bins.h"

#ifndef GROUP
#error "the host defines GROUP, the work-group size"
#endif
#ifndef COPIES
#error "the host defines COPIES, a power of two"
#endif

#define ADD(bin) atomic_inc(&table[(bin) * COPIES + copy]);
#define COUNT_RGB(t, r, g, b, n0, n1, n2)                                                          \
    ADD((t) + ((r) * (n0) >> 8))                                                                   \
    ADD((t) + (n0) + ((g) * (n0) >> 8))                                                            \
    ADD((t) + 2 * (n0) + ((b) * (n0) >> 8))
#define COUNT_GRAY(t, r, g, b, n0, n1, n2) ADD((t) + (luma(r, g, b) * (n0) >> 8))
#define COUNT_RGB_JOINT(t, r, g, b, n0, n1, n2) ADD((t) + rgb_joint_bin(r, g, b, n0, n1, n2))
#define COUNT_HSV(t, r, g, b, n0, n1, n2) ADD((t) + hsv_bin(r, g, b, n0, n1, n2))

#define COUNT(i, KIND, n0, n1, n2, n, o, t) COUNT_##KIND(t, r, g, b, n0, n1, n2)
#define PIXEL(R, G, B)                                                                             \
    {                                                                                              \
        const uint r = (R)&0xffu, g = (G)&0xffu, b = (B)&0xffu;                                    \
        FEATURES(COUNT)                                                                            \
    }
#define MERGE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    for (uint bin = item; bin < (n); bin += GROUP) {                                               \
        uint sum = 0;                                                                              \
        for (uint c = 0; c < COPIES; c++)                                                          \
            sum += table[((t) + bin) * COPIES + ((c + item) & (COPIES - 1))];                      \
        if (sum)                                                                                   \
            atomic_add(counters + tile.counters + (o) + tile.cell * (n) + bin, sum);               \
    }

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_local(__global const uchar *pixels, __global const struct histogram_tile *tiles,
                uint first, uint count, __global uint *counters)
{
    __local uint table[PASS_BINS * COPIES];
    const uint item = (uint)get_local_id(0);
    const uint copy = item & (COPIES - 1);
    const struct histogram_tile tile = tiles[first + get_group_id(0)];

    for (uint w = item; w < PASS_BINS * COPIES; w += GROUP)
        table[w] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    __global const uchar *start = pixels + tile.offset;
    if (tile.rows == 1 && (tile.offset & 3u) == 0) {
        /* Contiguous: four pixels are three aligned words. */
        __global const uint *words = (__global const uint *)start;
        const uint quads = tile.width / 4;
        for (uint q = item; q < quads; q += GROUP) {
            const uint w0 = words[3 * q], w1 = words[3 * q + 1], w2 = words[3 * q + 2];
            PIXEL(w0, w0 >> 8, w0 >> 16)
            PIXEL(w0 >> 24, w1, w1 >> 8)
            PIXEL(w1 >> 16, w1 >> 24, w2)
            PIXEL(w2 >> 8, w2 >> 16, w2 >> 24)
        }
        const uint x = quads * 4 + item;
        if (x < tile.width)
            PIXEL((uint)start[3 * x], (uint)start[3 * x + 1], (uint)start[3 * x + 2])
    } else {
        const uint total = tile.width * tile.rows;
        for (uint i = item; i < total; i += GROUP) {
            const uint y = i / tile.width, x = i - y * tile.width;
            __global const uchar *p = start + y * tile.stride + 3 * x;
            PIXEL((uint)p[0], (uint)p[1], (uint)p[2])
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    FEATURES(MERGE)
}
