/* histogram_packed: the three histograms of rgb:bins=B in one table, for GPUs.
 *
 * The fastest way to count on a GPU is 32 interleaved copies of the table (histogram_replicated): a
 * lane always increments in its own bank, whatever the pixels are. For three channels of 256
 * counters that takes 96 KiB, twice what OpenCL offers on most devices. Here one 32-bit word holds
 * two of them, for values v below 128 and v + 128 of one channel. Each byte adds 1 to the word of
 * its lower seven bits and, if the eighth is set, 2^14 as well: the lower 14 bits count both
 * values, the upper 18 the larger one. Address and addend are thus each one mask away from the
 * shifted pixels, and counting a byte takes a shift, two such masks and one local atomic.
 *
 * All channels run the same code, so bytes are counted as they come: each work-item reads 16 of
 * them next to its neighbours' (3-byte pixels never coalesce like that), vector i begins with
 * channel i mod 3, and the channel is or'ed into the address together with the copy.
 *
 * The lower field must not exceed 16,383. Work-items whose indices are equal modulo 32 share a
 * copy, which gets at most (GROUP / 32) * 16 / 3 bytes of a channel from each GROUP vectors; with
 * 1,024 work-items 507,904 pixels fit. The host makes single-row tiles no longer than that, so the
 * copies are summed once, at the end; rectangles are counted in chunks of rows.
 *
 * Its limits: reading, and the phases of a tile that read nothing: clearing 48 KiB, waiting for the
 * first pixels, summing. Other work-groups read during these. This requires straight-line code for
 * the loads of FLIGHT vectors: after a branch, a value is copied, and the copy is waited for. Loads
 * in flight need lines of the L1 cache, of which the tables leave few; on NVIDIA loads do not
 * allocate there (no_allocate). docs/performance.md has the measured rates.
 *
 * Replication follows J. Gomez-Luna et al. (2013); counters narrower than a word go back to V.
 * Podlozhnyuk's byte counters in "Histogram calculation in CUDA" (2007); counting the upper half in
 * both fields is new here. */
#ifndef GROUP
#error "the host defines GROUP, a multiple of 128"
#endif
#ifndef GRID
#error "the host defines GRID, 1 where tiles may be rectangles"
#endif

#include "histogram_bins.h"

#define COPIES 32
#define VALUES 128          /* values of a channel that have a word */
#define ROWS   (3 * VALUES) /* words per copy */
#define QUADS  (COPIES / 4) /* 16-byte vectors of one word's copies */

#define CHANNEL 16384u /* bytes per channel */
#define BOTH    16383u /* the lower field */
#define UPPER   16384u /* one, in the upper field */

/* Vectors a work-item loads before it counts one, a multiple of 3. Six take 40 registers; NVIDIA's
 * multiprocessors have enough for three work-groups of 512, but only for one of 1,024. */
#if defined NO_ALLOCATE && GROUP <= 512
#define FLIGHT 6
#else
#define FLIGHT 3
#endif

INLINE uint4 load(__global const uint4 *p)
{
#ifdef NO_ALLOCATE
    uint4 v;
    __asm__ volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(p));
    return v;
#else
    return *p;
#endif
}

/* Counts a byte in bits 7 to 14. `copy`: where the work-item's copy of the channel begins. `one` is
 * 1, but the compiler must not know: from a register it is or'ed in with the mask in one
 * instruction. */
INLINE void count_byte(__local uchar *table, uint byte, uint copy, uint one)
{
    atomic_add((__local uint *)(table + ((byte & 0x3f80u) | copy)), (byte & UPPER) | one);
}

INLINE void count_vector(__local uchar *table, uint one, uint a, uint b, uint c, uint4 v)
{
#define WORD(word, a, b, c)                                                                        \
    count_byte(table, word << 7, a, one);                                                          \
    count_byte(table, word >> 1, b, one);                                                          \
    count_byte(table, word >> 9, c, one);                                                          \
    count_byte(table, word >> 17, a, one);
    WORD(v.x, a, b, c)
    WORD(v.y, b, c, a)
    WORD(v.z, c, a, b)
    WORD(v.w, a, b, c)
}

INLINE void count_pixel(__local uchar *table, uint lane, uint one, __global const uchar *p)
{
    count_byte(table, (uint)p[0] << 7, lane, one);
    count_byte(table, (uint)p[1] << 7, lane | CHANNEL, one);
    count_byte(table, (uint)p[2] << 7, lane | 2u * CHANNEL, one);
}

/* A row of pixels: up to 15 before the first multiple of 16 bytes, whole vectors of whole pixels,
 * and up to 15 more. */
struct row {
    uint head;
    uint vectors;
    uint tail; /* its first pixel */
};

INLINE struct row divide(uint at, uint width)
{
    struct row row;
    row.head = min(width, (16u - (at & 15u)) * 11u & 15u); /* 3 * 11 is 1 modulo 16 */
    row.vectors = (width - row.head) / 16u * 3u;
    row.tail = row.head + row.vectors / 3u * 16u;
    return row;
}

/* Copies for the channels of bytes 0, 1 and 2 of a vector; byte 3 uses that of byte 0, and so on.
 * Vector i begins with channel i mod 3. */
struct copies {
    uint a, b, c;
};

INLINE struct copies copies_of(uint vector, uint lane)
{
    const uint first = vector % 3u;
    struct copies u;
    u.a = lane | first * CHANNEL;
    u.b = lane | (first == 2u ? 0u : first + 1u) * CHANNEL;
    u.c = lane | (first == 0u ? 2u : first - 1u) * CHANNEL;
    return u;
}

/* The copies for a vector `step` further on; step is a power of two, hence 1 or 2 modulo 3. */
INLINE struct copies further(struct copies u, uint step)
{
    const bool by_one = step % 3u == 1u;
    struct copies v;
    v.a = by_one ? u.b : u.c;
    v.b = by_one ? u.c : u.a;
    v.c = by_one ? u.a : u.b;
    return v;
}

/* Counts vectors [0, end), of which the work-item takes every GROUP-th. */
INLINE void count_long(__local uchar *table, uint lane, uint one, __global const uint4 *vectors,
                       uint item, uint end)
{
    struct copies u = copies_of(item, lane);
    uint4 p[FLIGHT];
    uint i = item;
    for (; i - item + FLIGHT * GROUP <= end; i += FLIGHT * GROUP) {
#pragma unroll
        for (uint f = 0; f < FLIGHT; f++)
            p[f] = load(vectors + i + f * GROUP);
#pragma unroll
        for (uint f = 0; f < FLIGHT; f++) {
            count_vector(table, one, u.a, u.b, u.c, p[f]);
            u = further(u, GROUP);
        }
    }
    if (i - item < end) {
#pragma unroll
        for (uint f = 0; f < FLIGHT; f++)
            if (i + f * GROUP < end)
                p[f] = load(vectors + i + f * GROUP);
#pragma unroll
        for (uint f = 0; f < FLIGHT; f++) {
            if (i + f * GROUP < end)
                count_vector(table, one, u.a, u.b, u.c, p[f]);
            u = further(u, GROUP);
        }
    }
}

#if GRID
/* Counts `width` pixels at byte `at`, shared by `step` work-items; this is number `index`. */
INLINE void count_row(__local uchar *table, uint lane, uint one, __global const uchar *pixels,
                      uint at, uint width, uint index, uint step)
{
    const struct row row = divide(at, width);
    __global const uchar *p = pixels + at;
    __global const uint4 *vectors = (__global const uint4 *)(p + 3u * row.head);
    struct copies u = copies_of(index, lane);
    for (uint x = index; x < row.head; x += step)
        count_pixel(table, lane, one, p + 3u * x);
    for (uint i = index; i < row.vectors; i += step) {
        count_vector(table, one, u.a, u.b, u.c, vectors[i]);
        u = further(u, step);
    }
    for (uint x = row.tail + index; x < width; x += step)
        count_pixel(table, lane, one, p + 3u * x);
}

/* Work-items for a row of `vectors` vectors: a power of two. */
INLINE uint lanes_for(uint vectors)
{
    uint lanes = 4;
    while (lanes < COPIES && lanes < vectors)
        lanes *= 2;
    return lanes;
}

/* Number of rows that cannot overflow a field. In one row a lane gets this many vectors, with at
 * most 6 bytes of a channel each, and its share of up to 15 pixels at either end; 32 / lanes rows
 * share the copies. No work-item is idle while there are rows. */
INLINE uint rows_for(uint vectors, uint lanes)
{
    const uint each = 6u * ((vectors + lanes - 1u) / lanes) + 2u * ((14u + lanes) / lanes);
    const uint rows = max(1u, BOTH / each * (COPIES / lanes)), at_once = GROUP / lanes;
    return rows < at_once ? rows : rows / at_once * at_once;
}

#endif

/* Adds the counts of values v and v + 128 to the picture's. A tile that covers its whole cell owns
 * the counters, but with fewer bins values share one. */
INLINE void merge_pair(__global uint *out, uint v, uint bins, uint low, uint high, bool whole)
{
    const uint a = v * bins >> 8, b = (v + VALUES) * bins >> 8;
    if (whole && bins == 256u) {
        out[a] = low;
        out[b] = high;
        return;
    }
    if (low)
        atomic_add(out + a, low);
    if (high)
        atomic_add(out + b, high);
}

#define MERGE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    merge_pair(counters + tile.counters + (o) + tile.cell * (n) + row / VALUES * (n0),             \
               row % VALUES, n0, both - upper, upper, whole);

/* Sums the copies and clears the table. */
INLINE void take(__local uint4 *quads, uint item, const struct histogram_tile tile, bool whole,
                 __global uint *counters)
{
    for (uint row = item; row < ROWS; row += GROUP) {
        uint both = 0, upper = 0;
#pragma unroll 2
        for (uint q = 0; q < QUADS; q++) {
            /* Neighbours start at different banks. */
            __local uint4 *at = quads + row * QUADS + (q + row) % QUADS;
            const uint4 w = *at, l = w & BOTH, h = w >> 14;
            both += l.x + l.y + l.z + l.w;
            upper += h.x + h.y + h.z + h.w;
#if GRID
            *at = (uint4)(0);
#endif
        }
        FEATURES(MERGE)
    }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_packed(__global const uchar *pixels, __global const struct histogram_tile *tiles,
                 uint first, uint count, __global uint *counters)
{
    __local uint4 quads[ROWS * QUADS];
    __local uchar *table = (__local uchar *)quads;
    const uint item = (uint)get_local_id(0);
    const uint lane = item % COPIES * 4u;
    const uint one = min(count, 1u);

    for (uint q = item; q < ROWS * QUADS; q += GROUP)
        quads[q] = (uint4)(0);
    barrier(CLK_LOCAL_MEM_FENCE);

    /* One long row. The tile is read again afterwards so that nothing is kept live: every register
     * costs a work-item that could hide memory latency. */
    {
        const struct histogram_tile tile = tiles[first + get_group_id(0)];
        const uint width = tile.rows == 1 ? tile.width : 0;
        const struct row row = divide(tile.offset, width);
        __global const uchar *p = pixels + tile.offset;
        if (item < row.head)
            count_pixel(table, lane, one, p + 3u * item);
        count_long(table, lane, one, (__global const uint4 *)(p + 3u * row.head), item,
                   row.vectors);
        if (row.tail + item < width)
            count_pixel(table, lane, one, p + 3u * (row.tail + item));
    }

    const struct histogram_tile tile = tiles[first + get_group_id(0)];
#if GRID
    /* Rows of a rectangle. */
    const uint vectors = (tile.width * 3u + 15u) / 16u, lanes = lanes_for(vectors);
    const uint rows = tile.rows == 1 ? 0 : tile.rows, chunk = rows_for(vectors, lanes);
    for (uint from = 0; from < max(rows, 1u); from += chunk) {
        const uint end = min(rows, from + chunk);
        for (uint y = from + item / lanes; y < end; y += GROUP / lanes)
            count_row(table, lane, one, pixels, tile.offset + y * tile.stride, tile.width,
                      item & (lanes - 1u), lanes);
        barrier(CLK_LOCAL_MEM_FENCE);
        take(quads, item, tile, tile.cell_tiles == 1 && chunk >= rows, counters);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
    barrier(CLK_LOCAL_MEM_FENCE);
    take(quads, item, tile, tile.cell_tiles == 1, counters);
#endif
}
