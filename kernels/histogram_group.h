/* histogram_group.h: how a work-group walks the pixels of a tile; shared by the kernels that keep
 * the table of the pass in local memory, or COPIES interleaved ones: counter `bin` of copy c is word
 * bin * COPIES + c.
 *
 * 3-byte pixels straddle words and cache lines. A work-item takes sixteen of them at a time, 48
 * bytes, as three 16-byte vectors, and loads all three before it counts any: neighbouring
 * work-items use up every line while it is in the L1 cache, and several loads are always in flight
 * (measured on an H200: 0.97 of the bandwidth of reading alone; one 4-byte word at a time gave
 * 0.89). Pixels before the first multiple of 16 bytes and after the last whole sixteen are read
 * byte by byte. */
#include "histogram_bins.h"

#ifndef GROUP
#error "the host defines GROUP, the work-group size"
#endif

#ifdef COPIES
#define WORD(counter, copy) ((counter) * COPIES + (copy))
#else
#define WORD(counter, copy) (counter)
#endif

#define LANES 32 /* maximum number of work-items that share a row */

INLINE void add(__local uint *table, uint copy, uint counter)
{
    atomic_inc(table + WORD(counter, copy));
}

#define ADD(t, n0, c, v) add(table, copy, (t) + (c) * (n0) + ((v) * (n0) >> 8));
#define COUNT_CHANNELS(KIND, t, r, g, b, n0, n1, n2) VALUES_##KIND(ADD, t, n0, r, g, b)
#define COUNT_SINGLE(KIND, t, r, g, b, n0, n1, n2)                                                 \
    add(table, copy, (t) + BIN_##KIND(r, g, b, n0, n1, n2));
#define COUNT(i, KIND, n0, n1, n2, n, o, t)                                                        \
    CAT(COUNT_, FORM_##KIND)(KIND, t, r, g, b, n0, n1, n2)

INLINE void count_pixel(__local uint *table, uint copy, uint red, uint green, uint blue)
{
    const uint r = red & 0xffu, g = green & 0xffu, b = blue & 0xffu;
    FEATURES(COUNT)
}

/* Four pixels in three words. */
INLINE void count_four(__local uint *table, uint copy, uint w0, uint w1, uint w2)
{
    count_pixel(table, copy, w0, w0 >> 8, w0 >> 16);
    count_pixel(table, copy, w0 >> 24, w1, w1 >> 8);
    count_pixel(table, copy, w1 >> 16, w1 >> 24, w2);
    count_pixel(table, copy, w2 >> 8, w2 >> 16, w2 >> 24);
}

/* Pixels before the first one at a multiple of 16 bytes: 3 * 11 is 1 modulo 16. */
INLINE uint pixels_to_alignment(uint at)
{
    return (16u - (at & 15u)) * 11u & 15u;
}

/* `width` pixels at byte `at`, shared by `step` work-items, of which this is number `index`. */
INLINE void count_run(__local uint *table, uint copy, __global const uchar *pixels, uint at,
                             uint width, uint index, uint step)
{
    const uint head = min(width, pixels_to_alignment(at));
    const uint blocks = (width - head) / 16u;
    __global const uint4 *vectors = (__global const uint4 *)(pixels + at + 3u * head);
    __global const uchar *p = pixels + at;
    for (uint x = index; x < head; x += step)
        count_pixel(table, copy, p[3 * x], p[3 * x + 1], p[3 * x + 2]);
    for (uint i = index; i < blocks; i += step) {
        const uint4 u = vectors[3 * i], v = vectors[3 * i + 1], w = vectors[3 * i + 2];
        count_four(table, copy, u.x, u.y, u.z);
        count_four(table, copy, u.w, v.x, v.y);
        count_four(table, copy, v.z, v.w, w.x);
        count_four(table, copy, w.y, w.z, w.w);
    }
    for (uint x = head + 16u * blocks + index; x < width; x += step)
        count_pixel(table, copy, p[3 * x], p[3 * x + 1], p[3 * x + 2]);
}

/* Work-items for a row of `pieces` pieces: a power of two, so that no row is split between sets. */
INLINE uint lanes_for(uint pieces)
{
    uint lanes = 4;
    while (lanes < LANES && lanes < pieces)
        lanes *= 2;
    return min(lanes, (uint)GROUP);
}

/* Counts all pixels of a tile. Every work-item of the group calls it. */
INLINE void count_tile(__local uint *table, uint copy, __global const uchar *pixels,
                              const struct histogram_tile tile)
{
    const uint item = (uint)get_local_id(0);
    /* A single long row is shared by all, with a stride known at compile time. */
    if (tile.rows == 1)
        count_run(table, copy, pixels, tile.offset, tile.width, item, GROUP);
    const uint lanes = lanes_for(tile.width / 16u), rows = tile.rows == 1 ? 0 : tile.rows;
    for (uint y = item / lanes; y < rows; y += GROUP / lanes)
        count_run(table, copy, pixels, tile.offset + y * tile.stride, tile.width,
                  item & (lanes - 1), lanes);
}

/* A counter, summed over the copies: each work-item starts at a different one to avoid bank
 * conflicts. */
INLINE uint counter_of(__local const uint *table, uint counter, uint item)
{
#ifdef COPIES
    uint sum = 0;
    for (uint c = 0; c < COPIES; c++)
        sum += table[WORD(counter, (c + item) & (COPIES - 1))];
    return sum;
#else
    return table[counter];
#endif
}

/* Merges each counter of a feature at the end of a kernel that has the variables `tile`, `table`,
 * `counters` and `item`. */
#define MERGE_TABLE(i, KIND, n0, n1, n2, n, o, t)                                                  \
    for (uint bin = item; bin < (n); bin += GROUP)                                                 \
        merge(counters + tile.counters + (o) + tile.cell * (n) + bin,                              \
              counter_of(table, (t) + bin, item), tile.cell_tiles == 1);
