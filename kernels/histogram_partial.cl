/* histogram_partial: a bucket per work-group in global memory, and a second kernel that sums the
 * buckets of a cell: no global atomics at all, and no counters to clear beforehand.
 *
 * The first kernel equals histogram_replicated except for its end: tables in local memory, cleared
 * 16 bytes at a time, counted into with local atomics, their copies summed. Then the group stores
 * all its counters in its own bucket. The second kernel finds the first tile of each cell, which
 * says how many follow, and sums their buckets: a row of work-items takes neighbouring counters of
 * one bucket, so that reads coalesce; several rows share the buckets of a large picture, and their
 * sums are combined in local memory.
 *
 * Its limits: those of histogram_replicated, and a table written and read again for each tile,
 * which is little for pictures cut into tiles of 190,000 pixels and much for small ones with large
 * tables. It wins where global atomics are slow. It needs PASS_BINS words of device memory per
 * tile. Source: R. Shams, R. A. Kennedy, "Efficient histogram algorithms for NVIDIA CUDA compatible
 * devices" (2007), and NVIDIA's histogram256 sample. */
#ifndef COPIES
#error "the host defines COPIES, a power of two"
#endif

#include "histogram_group.h"

#define QUADS       ((PASS_BINS * COPIES + 3) / 4)
#define SLICES_MOST 16u /* rows of work-items that share the buckets of a cell */

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_partial(__global const uchar *pixels, __global const struct histogram_tile *tiles,
                  uint first, uint count, __global uint *buckets)
{
    __local uint4 quads[QUADS];
    __local uint *table = (__local uint *)quads;
    const uint item = (uint)get_local_id(0);
    const struct histogram_tile tile = tiles[first + get_group_id(0)];

    for (uint q = item; q < QUADS; q += GROUP)
        quads[q] = (uint4)(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    count_tile(table, item & (COPIES - 1), pixels, tile);
    barrier(CLK_LOCAL_MEM_FENCE);
    __global uint *bucket = buckets + get_group_id(0) * PASS_BINS;
    for (uint bin = item; bin < PASS_BINS; bin += GROUP)
        bucket[bin] = counter_of(table, bin, item);
}

/* Offset of counter `bin` of the pass in the picture's counters. */
#define PLACE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    if (bin >= (t) && bin - (t) < (n))                                                             \
        place = (o) + tile.cell * (n) + bin - (t);

/* Groups (x, y): x strides over rows of counters, y over tiles. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_reduce(__global const uint *buckets, __global const struct histogram_tile *tiles,
                 uint first, uint count, __global uint *counters)
{
    __local uint sums[GROUP];
    const uint item = (uint)get_local_id(0);
    for (uint t = (uint)get_group_id(1); t < count; t += (uint)get_num_groups(1)) {
        const struct histogram_tile tile = tiles[first + t];
        uint slices = 1;
        while (slices < SLICES_MOST && slices * 4 < GROUP && slices * 4 <= tile.cell_tiles)
            slices *= 2;
        const uint width = GROUP / slices, slice = item / width;
        const uint end = tile.cell_tiles ? PASS_BINS : 0;
        for (uint base = (uint)get_group_id(0) * width; base < end;
             base += (uint)get_num_groups(0) * width) {
            const uint bin = base + (item & (width - 1)); /* width is a power of two */
            uint sum = 0;
            for (uint i = slice; i < tile.cell_tiles && bin < PASS_BINS; i += slices)
                sum += buckets[(size_t)(t + i) * PASS_BINS + bin];
            sums[item] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint s = 1; s < slices && slice == 0; s++)
                sum += sums[s * width + item];
            uint place = 0;
            FEATURES(PLACE)
            if (slice == 0 && bin < PASS_BINS)
                counters[tile.counters + place] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
