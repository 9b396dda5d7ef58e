/* histogram_local: the textbook approach: one table per work-group in local memory.
 *
 * Five steps: clear the table, barrier, count into it with local atomics, barrier, add it to the
 * picture's counters. It needs the least local memory, so many groups run at a time and large joint
 * tables fit. Its limit: work-items that increment the same counter or the same bank wait for each
 * other. Random bytes lose half of a GPU's rate to bank conflicts; a picture of one colour loses
 * most of it on devices that do not combine equal increments in hardware.
 *
 * The NDRange has exactly `count` groups, so no work-item returns early: PoCL 3.1 miscompiles a
 * return before a barrier even if a whole group takes it (measured: pixels counted in other
 * features' tables). Source: V. Podlozhnyuk, "Histogram calculation in CUDA" (2007), and every
 * OpenCL textbook since. */
#include "histogram_group.h"

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_local(__global const uchar *pixels, __global const struct histogram_tile *tiles,
                uint first, uint count, __global uint *counters)
{
    __local uint table[PASS_BINS];
    const uint item = (uint)get_local_id(0);
    const struct histogram_tile tile = tiles[first + get_group_id(0)];

    for (uint bin = item; bin < PASS_BINS; bin += GROUP)
        table[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    count_tile(table, 0, pixels, tile);
    barrier(CLK_LOCAL_MEM_FENCE);
    FEATURES(MERGE_TABLE)
}
