/* histogram_private: one work-item counts one tile in tables of its own, for CPU devices.
 *
 * A CPU has few, strong threads and a first-level cache that holds a whole table, so the fastest
 * histogram is the sequential one: no barriers and no atomics while counting. What limits it is
 * store-to-load forwarding: two equal neighbours increment the same word, and the second waits for
 * the first. Sub-tables that take turns (SUB of them, 4 for the channel histograms) break that
 * chain, so that a constant picture counts as fast as a natural one. Pixels are read eight at a time
 * as three 64-bit words. Channel and grey tables always have 256 counters and are folded to the bins
 * asked for at the end: (v * B) >> 8 once a tile instead of once a pixel. A tile ends with one
 * atomic addition for each counter that is not zero, since several tiles may belong to one picture.
 *
 * Work-group size 1, one work-item a tile. The technique of several sub-tables is that of
 * J. Gomez-Luna et al., "An optimized approach to histogram computation on GPU" (2013), turned to
 * the other end: replication for one thread.
 */
#include "histogram_bins.h"

#define SUB 4

/* Sub-tables of each kind: many bins collide seldom and cost cache. */
#define WORDS_RGB(n) (SUB * 768)
#define WORDS_GRAY(n) (SUB * 256)
#define WORDS_RGB_JOINT(n) (n)
#define WORDS_HSV(n) (n)

#define COUNT_RGB(h, s, r, g, b, n0, n1, n2)                                                       \
    h[(s) * 768 + (r)]++;                                                                          \
    h[(s) * 768 + 256 + (g)]++;                                                                    \
    h[(s) * 768 + 512 + (b)]++;
#define COUNT_GRAY(h, s, r, g, b, n0, n1, n2) h[(s) * 256 + luma(r, g, b)]++;
#define COUNT_RGB_JOINT(h, s, r, g, b, n0, n1, n2) h[rgb_joint_bin(r, g, b, n0, n1, n2)]++;
#define COUNT_HSV(h, s, r, g, b, n0, n1, n2) h[hsv_bin(r, g, b, n0, n1, n2)]++;

/* Adds the finished table to the picture's counters. */
static inline void merge(__global uint *out, uint count)
{
    if (count)
        atomic_add(out, count);
}

static void merge_channel(__global uint *out, const uint *h, uint step, uint bins)
{
    for (uint bin = 0, v = 0; bin < bins; bin++) {
        uint sum = 0;
        for (; v < 256 && (v * bins >> 8) == bin; v++)
            for (uint s = 0; s < SUB; s++)
                sum += h[s * step + v];
        merge(out + bin, sum);
    }
}

static void merge_plain(__global uint *out, const uint *h, uint bins)
{
    for (uint bin = 0; bin < bins; bin++)
        merge(out + bin, h[bin]);
}

#define MERGE_RGB(out, h, n0, n)                                                                   \
    merge_channel(out, h, 768, n0);                                                                \
    merge_channel(out + (n0), h + 256, 768, n0);                                                   \
    merge_channel(out + 2 * (n0), h + 512, 768, n0);
#define MERGE_GRAY(out, h, n0, n) merge_channel(out, h, 256, n0);
#define MERGE_RGB_JOINT(out, h, n0, n) merge_plain(out, h, n);
#define MERGE_HSV(out, h, n0, n) merge_plain(out, h, n);

#define DECLARE(i, KIND, n0, n1, n2, n, o, t) uint h##i[WORDS_##KIND(n)];
#define CLEAR(i, KIND, n0, n1, n2, n, o, t)                                                        \
    for (uint w = 0; w < WORDS_##KIND(n); w++)                                                     \
        h##i[w] = 0;
#define COUNT(i, KIND, n0, n1, n2, n, o, t) COUNT_##KIND(h##i, s, r, g, b, n0, n1, n2)
#define MERGE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    {                                                                                              \
        __global uint *out = counters + tile.counters + (o) + tile.cell * (n);                     \
        MERGE_##KIND(out, h##i, n0, n)                                                             \
    }

/* Byte k of eight pixels in the words w0, w1, w2. */
#define BYTE(k) ((uint)((k) < 8 ? w0 >> ((k) % 8 * 8) : (k) < 16 ? w1 >> ((k) % 8 * 8) : w2 >> ((k) % 8 * 8)) & 0xffu)
#define PIXEL(j)                                                                                   \
    {                                                                                              \
        const uint s = (j) % SUB;                                                                  \
        const uint r = BYTE(3 * (j)), g = BYTE(3 * (j) + 1), b = BYTE(3 * (j) + 2);                \
        FEATURES(COUNT)                                                                            \
    }

__kernel void histogram_private(__global const uchar *pixels,
                                __global const struct histogram_tile *tiles, uint first,
                                uint count, __global uint *counters)
{
    const uint index = (uint)get_global_id(0);
    if (index >= count)
        return;
    const struct histogram_tile tile = tiles[first + index];
    if (tile.rows == 0)
        return;

    FEATURES(DECLARE)
    FEATURES(CLEAR)

    for (uint y = 0; y < tile.rows; y++) {
        __global const uchar *p = pixels + tile.offset + y * tile.stride;
        uint x = 0;
        for (; x + 8 <= tile.width; x += 8, p += 24) {
            const ulong w0 = as_ulong(vload8(0, p));
            const ulong w1 = as_ulong(vload8(1, p));
            const ulong w2 = as_ulong(vload8(2, p));
            PIXEL(0) PIXEL(1) PIXEL(2) PIXEL(3) PIXEL(4) PIXEL(5) PIXEL(6) PIXEL(7)
        }
        for (; x < tile.width; x++, p += 3) {
            const uint s = x % SUB, r = p[0], g = p[1], b = p[2];
            FEATURES(COUNT)
        }
    }

    FEATURES(MERGE)
}
