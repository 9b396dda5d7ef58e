/* histogram_packed: the three histograms of rgb:bins=B in one table, for GPUs.
 *
 * The fastest way to count on a GPU is 32 interleaved copies of the table (histogram_replicated): a
 * lane always increments in its own bank, whatever the pixels are. For three channels of 256
 * counters that takes 96 KiB, twice what OpenCL gives on most devices. Here one 32-bit word holds
 * the counters of red, green and blue value v: red in bits 0 to 9, green in 10 to 20, blue in 21 to
 * 31. That is 32 KiB; a work-group keeps 256 values x 32 copies, and counting a byte is a shift, a
 * mask with the copy put in, and one local atomic that adds the channel's unit. No channel needs
 * code of its own, so bytes are counted as they lie: each work-item reads 16 of them beside its
 * neighbours' (pixels of 3 bytes never coalesce like that), and vector i begins with channel i mod 3.
 *
 * A field of 10 bits must not pass 1023. A copy is shared by the work-items whose number is the same
 * modulo 32, so the tile is counted in chunks in which no copy can meet more: 32,256 pixels in one
 * row (a copy gets at most 189 vectors, 63 times 16 bytes of a channel, and two pixels beside), or
 * so many rows. After each chunk, two or so work-items a value sum the 32 copies of their value into
 * registers and clear them; the tile ends with one addition a counter to the picture's.
 *
 * What limits it: reading, once enough work-items are under way to wait for it, and the summing. On
 * an H200 a kernel of this loop alone reached 0.95 to 0.97 of plain reading, whatever the pixels are.
 * Replication is that of J. Gomez-Luna et al. (2013); counters narrower than a word, flushed in time,
 * are as old as V. Podlozhnyuk's byte counters in "Histogram calculation in CUDA" (2007); a field for
 * each channel of one value is ours.
 */
#ifndef GROUP
#error "the host defines GROUP, a multiple of 256"
#endif
#ifndef GRID
#error "the host defines GRID, 1 where tiles may be rectangles"
#endif

#include "histogram_bins.h"

#define COPIES 32
#define VALUES 256
#define PARTS  (GROUP / VALUES) /* work-items that sum a value */
#define QUADS  (COPIES / 4)     /* 16-byte vectors of a value's copies */

#define RED    1u
#define GREEN  (1u << 10)
#define BLUE   (1u << 21)
#define FIELD  1023u /* what the narrowest holds */
#define CHUNK  6048u /* vectors: 32,256 pixels */

/* A work-item counts in the words at byte `lane` of each value's 128. */
INLINE void count_byte(__local uchar *table, uint at, uint unit)
{
    atomic_add((__local uint *)(table + at), unit);
}

/* The units of bytes 0, 1 and 2 of a vector; byte 3 has that of byte 0 and so on. */
INLINE void count_vector(__local uchar *table, uint lane, uint a, uint b, uint c, uint4 v)
{
#define WORD(word, a, b, c)                                                                        \
    count_byte(table, (word << 7 & 0x7f80u) | lane, a);                                            \
    count_byte(table, (word >> 1 & 0x7f80u) | lane, b);                                                 \
    count_byte(table, (word >> 9 & 0x7f80u) | lane, c);                                                 \
    count_byte(table, (word >> 17 & 0x7f80u) | lane, a);
    WORD(v.x, a, b, c)
    WORD(v.y, b, c, a)
    WORD(v.z, c, a, b)
    WORD(v.w, a, b, c)
}

INLINE void count_pixel(__local uchar *table, uint lane, __global const uchar *p)
{
    count_byte(table, 128u * p[0] | lane, RED);
    count_byte(table, 128u * p[1] | lane, GREEN);
    count_byte(table, 128u * p[2] | lane, BLUE);
}

/* A row of pixels: up to 15 before the first at a multiple of 16 bytes, whole vectors of whole
 * pixels, and up to 15 more. */
struct row {
    uint head;
    uint vectors;
    uint tail; /* the first pixel of it */
};

INLINE struct row divide(uint at, uint width)
{
    struct row row;
    row.head = min(width, (16u - (at & 15u)) * 11u & 15u); /* 3 * 11 is 1 modulo 16 */
    row.vectors = (width - row.head) / 16u * 3u;
    row.tail = row.head + row.vectors / 3u * 16u;
    return row;
}

/* The units of the vectors that a work-item counts; vector i begins with channel i mod 3. */
struct units {
    uint a, b, c;
};

INLINE struct units units_of(uint vector)
{
    const uint phase = vector % 3u;
    struct units u;
    u.a = phase == 0u ? RED : phase == 1u ? GREEN : BLUE;
    u.b = phase == 0u ? GREEN : phase == 1u ? BLUE : RED;
    u.c = phase == 0u ? BLUE : phase == 1u ? RED : GREEN;
    return u;
}

/* Those of `step` vectors further on, a power of two, which is 1 or 2 modulo 3. */
INLINE struct units further(struct units u, uint step)
{
    const bool by_one = step % 3u == 1u;
    struct units v;
    v.a = by_one ? u.b : u.c;
    v.b = by_one ? u.c : u.a;
    v.c = by_one ? u.a : u.b;
    return v;
}

/* Vectors [i, end), every GROUP'th. Three are loaded before one is counted. */
INLINE void count_long(__local uchar *table, uint lane, __global const uint4 *vectors, uint i,
                       uint end)
{
    struct units u = units_of(i);
    const struct units v = further(u, GROUP), w = further(v, GROUP);
    for (; i + 2u * GROUP < end; i += 3u * GROUP) {
        const uint4 p = vectors[i], q = vectors[i + GROUP], r = vectors[i + 2u * GROUP];
        count_vector(table, lane, u.a, u.b, u.c, p);
        count_vector(table, lane, v.a, v.b, v.c, q);
        count_vector(table, lane, w.a, w.b, w.c, r);
    }
    for (; i < end; i += GROUP) {
        count_vector(table, lane, u.a, u.b, u.c, vectors[i]);
        u = further(u, GROUP);
    }
}

#if GRID
/* `width` pixels at byte `at`, shared by `step` work-items, of which this is number `index`. */
INLINE void count_row(__local uchar *table, uint lane, __global const uchar *pixels, uint at,
                      uint width, uint index, uint step)
{
    const struct row row = divide(at, width);
    __global const uchar *p = pixels + at;
    __global const uint4 *vectors = (__global const uint4 *)(p + 3u * row.head);
    struct units u = units_of(index);
    for (uint x = index; x < row.head; x += step)
        count_pixel(table, lane, p + 3u * x);
    for (uint i = index; i < row.vectors; i += step) {
        count_vector(table, lane, u.a, u.b, u.c, vectors[i]);
        u = further(u, step);
    }
    for (uint x = row.tail + index; x < width; x += step)
        count_pixel(table, lane, p + 3u * x);
}

/* Work-items for a row of so many vectors: a power of two. */
INLINE uint lanes_for(uint vectors)
{
    uint lanes = 4;
    while (lanes < COPIES && lanes < vectors)
        lanes *= 2;
    return lanes;
}

/* Rows that cannot pass a field. In one row a lane gets so many vectors, with at most 6 bytes of a
 * channel each, and its share of up to 15 pixels at either end; 32 / lanes rows share the copies.
 * No work-item is left over where all can have a row. */
INLINE uint rows_for(uint vectors, uint lanes)
{
    const uint each = 6u * ((vectors + lanes - 1u) / lanes) + 2u * ((14u + lanes) / lanes);
    const uint rows = max(1u, FIELD / each * (COPIES / lanes)), at_once = GROUP / lanes;
    return rows < at_once ? rows : rows / at_once * at_once;
}

#endif

/* Vectors of each chunk of a row: the same number, three of them whole pixels. */
INLINE uint chunk_for(uint vectors)
{
    const uint chunks = max((vectors + CHUNK - 1u) / CHUNK, 1u);
    return max((vectors + 3u * chunks - 1u) / (3u * chunks) * 3u, 3u);
}

/* Takes the copies of the item's value out of the table. */
INLINE void take(__local uint4 *quads, uint item, uint *red, uint *green, uint *blue)
{
    const uint value = item % VALUES, part = item / VALUES;
    /* Written out, the loads of all turns together take twice the registers of everything else. */
#pragma unroll 1
    for (uint q = 0; q < QUADS / PARTS; q++) {
        /* Neighbours begin at different banks. */
        __local uint4 *at = quads + value * QUADS + ((part * (QUADS / PARTS) + q + value) % QUADS);
        const uint4 w = *at;
        *at = (uint4)(0);
        const uint4 r = w & 1023u, g = w >> 10 & 2047u, b = w >> 21;
        *red += r.x + r.y + r.z + r.w;
        *green += g.x + g.y + g.z + g.w;
        *blue += b.x + b.y + b.z + b.w;
    }
}

/* A bin holds the values v with v * B / 256 equal to its number: from this one on. */
INLINE uint first_value(uint bin, uint bins)
{
    return (bin * VALUES + bins - 1u) / bins;
}

#define MERGE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    for (uint channel = 0; channel < 3; channel++) {                                               \
        __global uint *out =                                                                       \
            counters + tile.counters + (o) + tile.cell * (n) + channel * (n0);                     \
        for (uint bin = item; bin < (n0); bin += GROUP) {                                          \
            uint sum = 0;                                                                          \
            for (uint v = first_value(bin, n0); v < first_value(bin + 1u, n0); v++)                \
                for (uint part = 0; part < PARTS; part++)                                          \
                    sum += sums[(part * 3u + channel) * VALUES + v];                               \
            if (tile.cell_tiles == 1)                                                              \
                out[bin] = sum;                                                                    \
            else if (sum)                                                                          \
                atomic_add(out + bin, sum);                                                        \
        }                                                                                          \
    }

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_packed(__global const uchar *pixels, __global const struct histogram_tile *tiles,
                 uint first, uint count, __global uint *counters)
{
    __local uint4 quads[VALUES * QUADS];
    __local uchar *table = (__local uchar *)quads;
    __local uint *sums = (__local uint *)quads; /* at the end */
    const uint item = (uint)get_local_id(0);
    const uint lane = item % COPIES * 4u;
    uint red = 0, green = 0, blue = 0;

    for (uint q = item; q < VALUES * QUADS; q += GROUP)
        quads[q] = (uint4)(0);
    barrier(CLK_LOCAL_MEM_FENCE);

    /* One long row: what is not whole vectors first, then chunks of vectors. The tile is read anew
     * for each part, so that no part keeps what another needs: 32 registers are enough then, and
     * NVIDIA's multiprocessors run as many work-items as they can. A grid costs twice as many. */
    {
        const struct histogram_tile tile = tiles[first + get_group_id(0)];
        const uint width = tile.rows == 1 ? tile.width : 0;
        const struct row row = divide(tile.offset, width);
        __global const uchar *p = pixels + tile.offset;
        __global const uint4 *vectors = (__global const uint4 *)(p + 3u * row.head);
        if (item < row.head)
            count_pixel(table, lane, p + 3u * item);
        if (row.tail + item < width)
            count_pixel(table, lane, p + 3u * (row.tail + item));
        const uint chunk = chunk_for(row.vectors), end = width ? max(row.vectors, 1u) : 0;
        for (uint from = 0; from < end; from += chunk) {
            count_long(table, lane, vectors, from + item, min(row.vectors, from + chunk));
            barrier(CLK_LOCAL_MEM_FENCE);
            take(quads, item, &red, &green, &blue);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }

#if GRID
    /* Rows of a rectangle. */
    {
        const struct histogram_tile tile = tiles[first + get_group_id(0)];
        const uint vectors = (tile.width * 3u + 15u) / 16u, lanes = lanes_for(vectors);
        const uint rows = tile.rows == 1 ? 0 : tile.rows, chunk = rows_for(vectors, lanes);
        for (uint from = 0; from < rows; from += chunk) {
            const uint end = min(rows, from + chunk);
            for (uint y = from + item / lanes; y < end; y += GROUP / lanes)
                count_row(table, lane, pixels, tile.offset + y * tile.stride, tile.width,
                          item & (lanes - 1u), lanes);
            barrier(CLK_LOCAL_MEM_FENCE);
            take(quads, item, &red, &green, &blue);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }

#endif

    const struct histogram_tile tile = tiles[first + get_group_id(0)];
    const uint at = item / VALUES * 3u * VALUES + item % VALUES;
    sums[at] = red;
    sums[at + VALUES] = green;
    sums[at + 2u * VALUES] = blue;
    barrier(CLK_LOCAL_MEM_FENCE);
    FEATURES(MERGE)
}
