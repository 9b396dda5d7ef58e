/* histogram_runs: one table a work-group in local memory, and one atomic for a run of equal pixels.
 *
 * A work-item walks sixteen pixels at a time, which lie side by side, and keeps for each table the
 * counter that was hit last and how often, in registers. A pixel that hits it again is a compare
 * and an addition; one that does not adds the run to the table by one local atomic and begins
 * another. Runs go on from one sixteen to the work-item's next, wherever that is, and end with the
 * tile. On CPU devices, whose work-items take turns, it is the one beside it (CONSECUTIVE);
 * elsewhere that is for another work-item, which reads it at the same time. Sixteen equal pixels
 * are told by their words and are one longer step of each run: flat ground costs next to no
 * arithmetic.
 *
 * What limits it: on flat ground, reading; where neighbours differ, what limits histogram_local,
 * and the compares and branches beside that. So it is for drawings, scans, screenshots and masks,
 * and for devices on which equal increments wait for each other; docs/performance.md has what was
 * measured.
 *
 * Source: NVIDIA's CUB has a thread compress its own samples like this (AgentHistogram,
 * RLE_COMPRESS); runs that go on, and sixteen pixels at once, are ours.
 */
#ifndef GROUP
#error "the host defines GROUP, the work-group size"
#endif

#include "histogram_bins.h"

/* So many pixels have hit the counter, and are not in the table yet. */
struct run {
    uint counter, length;
};

/* Runs that no pixel has begun have a length of 0, which any counter may be given. */
INLINE void end_run(__local uint *table, struct run run)
{
    if (run.length)
        atomic_add(table + run.counter, run.length);
}

INLINE void lengthen(__local uint *table, struct run *run, uint counter)
{
    if (run->counter != counter) {
        end_run(table, *run);
        run->counter = counter;
        run->length = 0;
    }
    run->length++;
}

#define COPY               struct run *
#define ADD(slot, counter) lengthen(table, copy + (slot), counter);

#include "histogram_group.h"

/* For each slot of a feature. The indices are constants, so that runs can stay in registers. */
#define EACH_RGB(DO, s)       DO(s) DO((s) + 1) DO((s) + 2)
#define EACH_GRAY(DO, s)      DO(s)
#define EACH_RGB_JOINT(DO, s) DO(s)
#define EACH_HSV(DO, s)       DO(s)

#define LENGTHEN_15(s)                       runs[s].length += 15;
#define REPEAT(i, KIND, n0, n1, n2, n, o, t) EACH_##KIND(LENGTHEN_15, 3 * (i))
#define END_RUN(s)                           end_run(table, runs[s]);
#define END(i, KIND, n0, n1, n2, n, o, t)    EACH_##KIND(END_RUN, 3 * (i))
#define SLOTS(i, KIND, n0, n1, n2, n, o, t)  +3

/* Are sixteen pixels the first one over and over? */
INLINE bool are_equal(uint4 u, uint4 v, uint4 w)
{
    const uint p = u.x & 0xffffffu;
    const uint a = p | p << 24, b = p >> 8 | p << 16, c = p >> 16 | p << 8;
    return ((u.x ^ a) | (u.y ^ b) | (u.z ^ c) | (u.w ^ a) | (v.x ^ b) | (v.y ^ c) | (v.z ^ a) |
            (v.w ^ b) | (w.x ^ c) | (w.y ^ a) | (w.z ^ b) | (w.w ^ c)) == 0;
}

/* `width` pixels at byte `at`, shared by `step` work-items, of which this is number `index`. Little
 * code: each counter is a branch here, and where it was unrolled PoCL's compiler took four times as
 * long. */
INLINE void count_row(__local uint *table, struct run *runs, __global const uchar *pixels, uint at,
                      uint width, uint index, uint step)
{
    const uint head = min(width, pixels_to_alignment(at));
    const uint blocks = (width - head) / 16u, rest = width - 16u * blocks;
    __global const uint4 *vectors = (__global const uint4 *)(pixels + at + 3u * head);
#ifdef CONSECUTIVE
    const uint each = (blocks + step - 1) / step, next = 1;
    const uint begin = index * each, end = min(blocks, begin + each);
#else
    const uint begin = index, end = blocks, next = step;
#endif
    for (uint i = begin; i < end; i += next) {
        const uint4 u = vectors[3 * i], v = vectors[3 * i + 1], w = vectors[3 * i + 2];
        if (are_equal(u, v, w)) {
            count_pixel(table, runs, u.x, u.x >> 8, u.x >> 16);
            FEATURES(REPEAT)
        } else {
            __global const uint *words = (__global const uint *)(vectors + 3 * i);
            for (uint j = 0; j < 12; j += 3)
                count_four(table, runs, words[j], words[j + 1], words[j + 2]);
        }
    }
    /* Before the first block and after the last one. */
    for (uint x = index; x < rest; x += step) {
        __global const uchar *p = pixels + at + 3u * (x < head ? x : x + 16u * blocks);
        count_pixel(table, runs, p[0], p[1], p[2]);
    }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_runs(__global const uchar *pixels, __global const struct histogram_tile *tiles,
               uint first, uint count, __global uint *counters)
{
    __local uint table[PASS_BINS];
    const uint item = (uint)get_local_id(0);
    const struct histogram_tile tile = tiles[first + get_group_id(0)];

    for (uint bin = item; bin < PASS_BINS; bin += GROUP)
        table[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        struct run runs[0 FEATURES(SLOTS)] = {{0, 0}};
        const uint lanes = tile.rows == 1 ? GROUP : lanes_for(tile.width / 16u);
        for (uint y = item / lanes; y < tile.rows; y += GROUP / lanes)
            count_row(table, runs, pixels, tile.offset + y * tile.stride, tile.width,
                      item & (lanes - 1), lanes);
        FEATURES(END)
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    FEATURES(MERGE_TABLE)
}
