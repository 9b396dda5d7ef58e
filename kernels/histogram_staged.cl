/* histogram_staged: pixels pass through local memory by asynchronous copies, double-buffered.
 *
 * The group starts copying a block of pixels (async_work_group_copy) into one half of a stage and
 * counts the other half in the meantime; wait_group_events and a barrier swap the halves. Rows of a
 * grid cell arrive packed, one copy per row on one event, so that counting sees consecutive pixels
 * at an aligned address whatever the layout of the picture; a long row is copied 16 bytes at a time
 * if its address allows. The finished table is copied out the same way if the tile covers its whole
 * cell; otherwise it is added with atomics.
 *
 * Its limits: on devices with a copy engine beside the cores (DSPs, accelerators), neither reading
 * nor addressing; that is what these functions are for. GPUs and CPUs copy with the work-items
 * themselves, so it costs one more store and load per pixel than histogram_local, and the stage
 * takes local memory that could have held copies of the table. Source: the OpenCL specification,
 * 6.12.10; double buffering as on the Cell's local stores. */
#include "histogram_group.h"

#define BLOCK   (16 * GROUP) /* pixels in half of the stage */
#define VECTORS (3 * GROUP)  /* the same in 16-byte vectors */

/* How a tile is cut: pieces of a row of at most BLOCK pixels, or as many rows as fit a block. */
struct cutting {
    uint width, rows; /* of a block */
};

/* Where a block begins: pixel x of row y; after the last one, y is tile.rows. */
struct cursor {
    uint y, x;
};

INLINE struct cutting cut(const struct histogram_tile tile)
{
    struct cutting c;
    c.width = clamp(tile.width, 1u, (uint)BLOCK);
    c.rows = min(tile.rows, BLOCK / c.width);
    if (c.width < tile.width)
        c.rows = 1;
    return c;
}

INLINE struct cursor block_after(struct cursor at, const struct histogram_tile tile,
                                 const struct cutting c)
{
    at.x += c.width;
    if (at.x >= tile.width) {
        at.x = 0;
        at.y = min(at.y + c.rows, tile.rows);
    }
    return at;
}

INLINE uint block_pixels(struct cursor at, const struct histogram_tile tile, const struct cutting c)
{
    return min(c.rows, tile.rows - at.y) * min(c.width, tile.width - at.x);
}

/* Starts copying a block. */
INLINE event_t fetch(__local uint4 *half_stage, __global const uchar *pixels, struct cursor at,
                     const struct histogram_tile tile, const struct cutting c)
{
    __local uchar *bytes = (__local uchar *)half_stage;
    const uint total = 3 * block_pixels(at, tile, c);
    uint from = tile.offset + at.y * tile.stride + 3 * at.x;
    if (tile.rows == 1 && (from & 15u) == 0) {
        const event_t event = async_work_group_copy(
            half_stage, (__global const uint4 *)(pixels + from), total / 16, 0);
        return async_work_group_copy(bytes + total / 16 * 16, pixels + from + total / 16 * 16,
                                     total % 16, event);
    }
    const uint row = 3 * min(c.width, tile.width - at.x);
    event_t event = async_work_group_copy(bytes, pixels + from, row, 0);
    for (uint done = row; done < total; done += row) {
        from += tile.stride;
        event = async_work_group_copy(bytes + done, pixels + from, row, event);
    }
    return event;
}

INLINE void count_block(__local uint *table, __local const uint4 *stage, uint pixels)
{
    const uint item = (uint)get_local_id(0);
    __local const uchar *p = (__local const uchar *)stage;
    for (uint i = item; i < pixels / 16; i += GROUP) {
        const uint4 u = stage[3 * i], v = stage[3 * i + 1], w = stage[3 * i + 2];
        count_four(table, 0, u.x, u.y, u.z);
        count_four(table, 0, u.w, v.x, v.y);
        count_four(table, 0, v.z, v.w, w.x);
        count_four(table, 0, w.y, w.z, w.w);
    }
    for (uint x = pixels / 16 * 16 + item; x < pixels; x += GROUP)
        count_pixel(table, 0, p[3 * x], p[3 * x + 1], p[3 * x + 2]);
}

#define STORE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    stored = async_work_group_copy(counters + tile.counters + (o) + tile.cell * (n), table + (t),  \
                                   (n), stored);
#define MERGE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    for (uint bin = item; bin < (n); bin += GROUP)                                                 \
        merge(counters + tile.counters + (o) + tile.cell * (n) + bin, table[(t) + bin], false);

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_staged(__global const uchar *pixels, __global const struct histogram_tile *tiles,
                 uint first, uint count, __global uint *counters)
{
    __local uint4 stage[2 * VECTORS];
    __local uint table[PASS_BINS];
    const uint item = (uint)get_local_id(0);
    const struct histogram_tile tile = tiles[first + get_group_id(0)];
    const struct cutting c = cut(tile);

    for (uint bin = item; bin < PASS_BINS; bin += GROUP)
        table[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    struct cursor at = {0, 0};
    uint half_number = 0;
    event_t arrival = 0, next = 0;
    if (at.y < tile.rows)
        arrival = fetch(stage, pixels, at, tile, c);
    while (at.y < tile.rows) {
        const struct cursor after = block_after(at, tile, c);
        if (after.y < tile.rows)
            next = fetch(stage + (1 - half_number) * VECTORS, pixels, after, tile, c);
        wait_group_events(1, &arrival);
        count_block(table, stage + half_number * VECTORS, block_pixels(at, tile, c));
        arrival = next;
        at = after;
        half_number = 1 - half_number;
        barrier(CLK_LOCAL_MEM_FENCE); /* the half is free, and the table is finished */
    }

    if (tile.cell_tiles == 1) {
        event_t stored = 0;
        FEATURES(STORE)
        wait_group_events(1, &stored);
    } else {
        FEATURES(MERGE)
    }
}
