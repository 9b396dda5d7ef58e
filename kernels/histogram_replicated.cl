/* histogram_replicated: COPIES interleaved tables per work-group in local memory.
 *
 * Counter `bin` of copy c is word bin * COPIES + c, and a work-item uses copy local_id mod COPIES.
 * Neighbouring work-items, which see neighbouring and therefore similar pixels, thus increment
 * different words in different banks, and a picture of one colour does not serialise on one
 * counter. With 32 copies and 32 banks a work-item always hits its own bank, whatever the pixels
 * are; with one counter per pixel instead of one per byte, 4 to 16 copies are as good and leave
 * room for more work-groups. The host uses as many as half of the local memory holds, up to 16.
 *
 * Three phases: clear, count with local atomics, then sum the copies (each work-item starts at a
 * different one to avoid bank conflicts) and add them to the picture's counters.
 *
 * Its limits: reading, for one counter per pixel and tables of a few KiB; joint tables of many
 * thousand bins leave room for one copy only, with the bank conflicts of histogram_local.
 * Replication: J. Gomez-Luna et al., "An optimized approach to histogram computation on GPU"
 * (2013). */
#ifndef COPIES
#error "the host defines COPIES, a power of two"
#endif

#include "histogram_group.h"

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_replicated(__global const uchar *pixels, __global const struct histogram_tile *tiles,
                     uint first, uint count, __global uint *counters)
{
    __local uint table[PASS_BINS * COPIES];
    const uint item = (uint)get_local_id(0);
    const struct histogram_tile tile = tiles[first + get_group_id(0)];

    for (uint w = item; w < PASS_BINS * COPIES; w += GROUP)
        table[w] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    count_tile(table, item & (COPIES - 1), pixels, tile);
    barrier(CLK_LOCAL_MEM_FENCE);
    FEATURES(MERGE_TABLE)
}
