/* histogram_subgroup: one table a work-group in local memory, and one atomic for the work-items of
 * a subgroup that hit the same counter at the same time.
 *
 * Each time the work-items of a subgroup have a counter each, they look at each other's before any
 * of them adds. By NVIDIA's match.any (MATCH; compute capability 7.0 and later) each learns who
 * else hits its counter, and the first of those adds for all: a warp makes as many increments as
 * its pixels have different counters. By OpenCL's subgroups those that agree with the first
 * work-item are counted, by a ballot (BALLOT) or a sum, and it adds for them; the others add for
 * themselves. To go on with what is left would take as many rounds as there are counters, each of
 * them dearer than the increments that it saves.
 *
 * All work-items of a subgroup have to take part in that, so all of the work-group make the same
 * steps, and who has no pixel in one says NONE. Nothing else is asked of subgroups: neither their
 * size, nor that it divides the work-group, nor who is in which. A work-item takes four pixels at a
 * time, not the sixteen of the other kernels: those of a subgroup lie closer together and are equal
 * more often, and drivers that make a barrier of each exchange have a quarter of the code to build.
 *
 * What limits it: the exchange, which is paid for every counter whether pixels are equal or not. It
 * pays where equal local atomics wait for each other and an exchange takes less than that; NVIDIA's
 * hardware combines them by itself. docs/performance.md has what was measured.
 * Source: A. Adinets, "Optimized filtering with warp-aggregated atomics" (2014); match.sync of
 * the PTX ISA; the subgroup functions of OpenCL C.
 */
#ifndef GROUP
#error "the host defines GROUP, the work-group size"
#endif
#if defined MATCH && GROUP % 32
#error "the host gives whole warps"
#endif

#ifdef cl_khr_subgroups
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif

#include "histogram_bins.h"

#define NONE 0xffffffffu

/* `counter` or NONE; every work-item of the subgroup calls it. */
INLINE void add_together(__local uint *table, uint counter)
{
#if defined MATCH
    uint same, before;
    __asm__ volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(same) : "r"(counter));
    __asm__("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
    if (counter != NONE && (same & before) == 0)
        atomic_add(table + counter, popcount(same));
#else
    const uint first = sub_group_broadcast(counter, 0);
    const bool agrees = counter == first;
#ifdef BALLOT
    const uint together = sub_group_ballot_bit_count(sub_group_ballot(agrees));
#else
    const uint together = sub_group_reduce_add(agrees ? 1u : 0u);
#endif
    const bool adds = !agrees || get_sub_group_local_id() == 0;
    if (adds && counter != NONE)
        atomic_add(table + counter, agrees ? together : 1u);
#endif
}

/* `copy`: does the work-item have a pixel? */
#define COPY               bool
#define ADD(slot, counter) add_together(table, copy ? (counter) : NONE);

#include "histogram_group.h"

/* `width` pixels at byte `at`, shared by `step` work-items, of which this is number `index`; none
 * of its own where not `takes_part`. */
INLINE void count_row(__local uint *table, __global const uchar *pixels, uint at, uint width,
                      uint index, uint step, bool takes_part)
{
    const uint head = min(width, at & 3u); /* 3 * 3 is 1 modulo 4 */
    const uint fours = (width - head) / 4u, rest = width - 4u * fours;
    __global const uint *words = (__global const uint *)(pixels + at + 3u * head);
    for (uint first = 0; first < min(width, 6u); first += step) {
        const uint x = first + index;
        const bool mine = takes_part && x < rest;
        uint r = 0, g = 0, b = 0;
        if (mine) {
            __global const uchar *p = pixels + at + 3u * (x < head ? x : x + 4u * fours);
            r = p[0], g = p[1], b = p[2];
        }
        count_pixel(table, mine, r, g, b);
    }
    for (uint first = 0; first < width / 4u; first += step) {
        const uint i = first + index;
        const bool mine = takes_part && i < fours;
        uint w0 = 0, w1 = 0, w2 = 0;
        if (mine)
            w0 = words[3 * i], w1 = words[3 * i + 1], w2 = words[3 * i + 2];
        count_four(table, mine, w0, w1, w2);
    }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_subgroup(__global const uchar *pixels, __global const struct histogram_tile *tiles,
                   uint first, uint count, __global uint *counters)
{
    __local uint table[PASS_BINS];
    const uint item = (uint)get_local_id(0);
    const struct histogram_tile tile = tiles[first + get_group_id(0)];

    for (uint bin = item; bin < PASS_BINS; bin += GROUP)
        table[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint lanes = tile.rows == 1 ? GROUP : lanes_for(tile.width / 4u);
    for (uint row = 0; row < tile.rows; row += GROUP / lanes) {
        const uint y = row + item / lanes;
        count_row(table, pixels, tile.offset + y * tile.stride, tile.width, item & (lanes - 1),
                  lanes, y < tile.rows);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    FEATURES(MERGE_TABLE)
}
