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
 * run (a copy gets at most 189 vectors, 63 times 16 bytes of a channel, and two pixels beside), or
 * so many rows. After each chunk, two or so work-items a value sum the 32 copies of their value into
 * registers and clear them; the tile ends with one addition a counter to the picture's.
 *
 * What limits it: reading. On an H200 it reaches 0.95 to 0.97 of the plain read kernel on any pixels;
 * summing costs what is missing. Replication is J. Gomez-Luna's (2013); counters narrower than a word
 * with flushes in time are as old as V. Podlozhnyuk's byte counters in "Histogram calculation in
 * CUDA" (2007); a field for each channel of one value is ours.
 */
#ifndef GROUP
#error "the host defines GROUP, a multiple of 256"
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
#define PIXELS 32256u

/* The units of bytes 0, 1 and 2 of a vector; byte 3 has that of byte 0 and so on. */
INLINE void count_vector(__local uchar *lane, uint a, uint b, uint c, uint4 v)
{
/* A value's copies take 128 bytes. */
#define BYTE(word, byte, unit)                                                                     \
    atomic_add((__local uint *)(lane + (((byte) == 0 ? (word) << 7 : (word) >> (8 * (byte)-7)) &    \
                                        0x7f80u)),                                                 \
               unit);
#define WORD(word, a, b, c)                                                                        \
    BYTE(word, 0, a)                                                                               \
    BYTE(word, 1, b)                                                                               \
    BYTE(word, 2, c)                                                                               \
    BYTE(word, 3, a)
    WORD(v.x, a, b, c)
    WORD(v.y, b, c, a)
    WORD(v.z, c, a, b)
    WORD(v.w, a, b, c)
}

INLINE void count_pixel(__local uchar *lane, __global const uchar *p)
{
    atomic_add((__local uint *)(lane + 128u * p[0]), RED);
    atomic_add((__local uint *)(lane + 128u * p[1]), GREEN);
    atomic_add((__local uint *)(lane + 128u * p[2]), BLUE);
}

/* `width` pixels at byte `at`, shared by `step` work-items (a power of two), of which this is number
 * `index`. */
INLINE void count_run(__local uchar *lane, __global const uchar *pixels, uint at, uint width,
                             uint index, uint step)
{
    const uint head = min(width, (16u - (at & 15u)) * 11u & 15u); /* 3 * 11 is 1 modulo 16 */
    const uint count = (width - head) * 3u / 16u / 3u * 3u;       /* vectors of whole pixels */
    __global const uchar *p = pixels + at;
    __global const uint4 *vectors = (__global const uint4 *)(p + 3u * head);
    for (uint x = index; x < head; x += step)
        count_pixel(lane, p + 3 * x);

    /* `step` vectors on, the channels have moved by step mod 3, which is 1 or 2. */
    const bool by_one = step % 3u == 1u;
    const uint phase = index % 3u;
    uint a = phase == 0u ? RED : phase == 1u ? GREEN : BLUE;
    uint b = phase == 0u ? GREEN : phase == 1u ? BLUE : RED;
    uint c = phase == 0u ? BLUE : phase == 1u ? RED : GREEN;
    uint i = index;
    for (; i + 2u * step < count; i += 3u * step) {
        const uint4 u = vectors[i], v = vectors[i + step], w = vectors[i + 2u * step];
        count_vector(lane, a, b, c, u);
        count_vector(lane, by_one ? b : c, by_one ? c : a, by_one ? a : b, v);
        count_vector(lane, by_one ? c : b, by_one ? a : c, by_one ? b : a, w);
    }
    for (; i < count; i += step) {
        count_vector(lane, a, b, c, vectors[i]);
        const uint d = a, e = b, f = c;
        a = by_one ? e : f;
        b = by_one ? f : d;
        c = by_one ? d : e;
    }
    for (uint x = head + count / 3u * 16u + index; x < width; x += step)
        count_pixel(lane, p + 3 * x);
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
 * channel each, and its share of up to 15 pixels at either end; 32 / lanes rows share the copies. */
INLINE uint rows_for(uint vectors, uint lanes)
{
    const uint each = 6u * ((vectors + lanes - 1u) / lanes) + 2u * ((14u + lanes) / lanes);
    return max(1u, FIELD / each * (COPIES / lanes));
}

/* Takes the copies of the item's value out of the table. */
INLINE void take(__local uint4 *table, uint item, uint *red, uint *green, uint *blue)
{
    const uint value = item % VALUES, part = item / VALUES;
    for (uint q = 0; q < QUADS / PARTS; q++) {
        /* Neighbours begin at different banks. */
        __local uint4 *at = table + value * QUADS + ((part * (QUADS / PARTS) + q + value) % QUADS);
        const uint4 w = *at;
        *at = (uint4)(0);
        const uint4 r = w & 1023u, g = w >> 10 & 2047u, b = w >> 21;
        *red += r.x + r.y + r.z + r.w;
        *green += g.x + g.y + g.z + g.w;
        *blue += b.x + b.y + b.z + b.w;
    }
}

/* Bin q of a channel holds the values v with v * B / 256 == q: from the first on. */
INLINE uint first_value(uint q, uint bins)
{
    return (q * VALUES + bins - 1u) / bins;
}

#define MERGE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    for (uint bin = item; bin < (n); bin += GROUP) {                                               \
        const uint channel = bin / (n0), q = bin % (n0);                                           \
        uint sum = 0;                                                                              \
        for (uint v = first_value(q, n0); v < first_value(q + 1u, n0); v++)                        \
            for (uint part = 0; part < PARTS; part++)                                              \
                sum += sums[(part * 3u + channel) * VALUES + v];                                   \
        __global uint *out = counters + tile.counters + (o) + tile.cell * (n) + bin;               \
        if (tile.cell_tiles == 1)                                                                  \
            *out = sum;                                                                            \
        else if (sum)                                                                              \
            atomic_add(out, sum);                                                                  \
    }

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
histogram_packed(__global const uchar *pixels, __global const struct histogram_tile *tiles,
                 uint first, uint count, __global uint *counters)
{
    __local uint4 table[VALUES * QUADS];
    __local uint *sums = (__local uint *)table; /* at the end */
    const uint item = (uint)get_local_id(0);
    __local uchar *lane = (__local uchar *)table + item % COPIES * 4u;
    const struct histogram_tile tile = tiles[first + get_group_id(0)];
    uint red = 0, green = 0, blue = 0;

    for (uint q = item; q < VALUES * QUADS; q += GROUP)
        table[q] = (uint4)(0);
    barrier(CLK_LOCAL_MEM_FENCE);

    /* One long row is cut into pixels, a rectangle into rows. */
    const bool run = tile.rows == 1;
    const uint vectors = (tile.width * 3u + 15u) / 16u, lanes = lanes_for(vectors);
    const uint total = run ? tile.width : tile.rows;
    const uint chunk = run ? PIXELS : rows_for(vectors, lanes);
    for (uint from = 0; from < total; from += chunk) {
        const uint end = min(total, from + chunk);
        if (run)
            count_run(lane, pixels, tile.offset + 3u * from, end - from, item, GROUP);
        else
            for (uint y = from + item / lanes; y < end; y += GROUP / lanes)
                count_run(lane, pixels, tile.offset + y * tile.stride, tile.width,
                          item & (lanes - 1u), lanes);
        barrier(CLK_LOCAL_MEM_FENCE);
        take(table, item, &red, &green, &blue);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    const uint at = item / VALUES * 3u * VALUES + item % VALUES;
    sums[at] = red;
    sums[at + VALUES] = green;
    sums[at + 2u * VALUES] = blue;
    barrier(CLK_LOCAL_MEM_FENCE);
    FEATURES(MERGE)
}
