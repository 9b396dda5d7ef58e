/* histogram_private: one work-item counts one tile in private tables, for CPU devices.
 *
 * A CPU has few, strong threads and an L1 cache that holds a whole table, so the fastest histogram
 * is the sequential one: no barriers and no atomics while counting. Five things limit it:
 *
 * - Stores: one counter per byte and one store per cycle is the bound that nothing here beats.
 * - Instructions around each store. Pixels are read eight at a time as three 64-bit words, and the
 *   words are shifted in place by 16, so that extracting a byte costs one and a half instructions
 *   (both low bytes of a register can be addressed), without the increment. Compilers rewrite that
 *   into a shift and a mask for each byte unless KEEP hides where the word comes from, if the
 *   driver accepts that.
 * - Store-to-load forwarding: two equal neighbours increment the same word, and the second waits
 *   for the first. SUB sub-tables used in turn break that chain.
 * - False dependencies: loads wait for older stores whose addresses are equal in the low 12 bits.
 *   Sub-tables are therefore PITCH counters apart, not 256; otherwise a grey picture hits nothing
 *   else.
 * - Waiting for pixels, as slots are larger than a core's private caches. The hardware prefetcher
 *   stops at the end of a page, so the kernel prefetches itself (FETCH).
 *
 * If a pixel falls into one bin (joint histograms, hsv), the bins of 16 pixels are computed first,
 * in a loop that compilers vectorise, and then counted one by one.
 *
 * Channel and grey tables always have 256 counters and are folded into the requested bins at the
 * end: (v * B) >> 8 once per tile instead of once per pixel. A tile that covers its whole cell
 * stores its counters; if several tiles share a cell, each adds its own with atomics.
 *
 * Work-group size 1, one work-item per tile. Several sub-tables are the technique of J. Gomez-Luna
 * et al., "An optimized approach to histogram computation on GPU" (2013), applied to a single
 * thread. */
#include "histogram_bins.h"

#define SUB   4
#define PITCH 272

/* -D EXTENSIONS: the driver is known to accept inline assembly and this builtin; PoCL's prefetch()
 * does nothing. The prefetched address may lie past the pixels. */
#if defined EXTENSIONS && defined __x86_64__
#define KEEP(w)  __asm__("" : "+r"(w));
#define AHEAD    2048 /* bytes */
#define FETCH(p) __builtin_prefetch((const void *)((size_t)(p) + AHEAD));
#else
#define KEEP(w)
#define FETCH(p)
#endif

/* Channels have sub-tables, and so do few bins; many bins rarely collide and cost cache. */
#define WORDS_CHANNELS(KIND, n) (SUB * CHANNELS_##KIND * PITCH)
#define SINGLE_SUB(n)           ((n) <= 1024 ? SUB : 1)
#define SINGLE_PITCH(n)         ((n) + 16)
#define WORDS_SINGLE(KIND, n)   (SINGLE_SUB(n) * SINGLE_PITCH(n))

#define ADD(h, channels, c, v) h[((s) * (channels) + (c)) * PITCH + (v)]++;
#define COUNT_CHANNELS(KIND, h, r, g, b, n0, n1, n2, n)                                            \
    VALUES_##KIND(ADD, h, CHANNELS_##KIND, r, g, b)
#define COUNT_SINGLE(KIND, h, r, g, b, n0, n1, n2, n) h[BIN_##KIND(r, g, b, n0, n1, n2)]++;

/* Counts BLOCK pixels at p, for the forms that take them together. */
#define BLOCK 16
#define BLOCK_CHANNELS(KIND, h, n0, n1, n2, n)
#define BLOCK_SINGLE(KIND, h, n0, n1, n2, n)                                                       \
    {                                                                                              \
        uint bin[BLOCK];                                                                           \
        for (uint i = 0; i < BLOCK; i++)                                                           \
            bin[i] = BIN_##KIND((uint)p[3 * i], (uint)p[3 * i + 1], (uint)p[3 * i + 2], n0, n1, n2); \
        for (uint i = 0; i < BLOCK; i++)                                                           \
            h[i % SINGLE_SUB(n) * SINGLE_PITCH(n) + bin[i]]++;                                     \
    }
/* Counts one pixel of a block, for the other forms. */
#define REST_CHANNELS COUNT_CHANNELS
#define REST_SINGLE(KIND, h, r, g, b, n0, n1, n2, n)

/* Folds sub-tables, `step` counters apart, into `bins`. */
static inline void merge_channel(__global uint *out, const uint *h, uint step, uint bins,
                                 bool whole_cell)
{
    for (uint bin = 0, v = 0; bin < bins; bin++) {
        uint sum = 0;
        for (; v < 256 && v * bins >> 8 == bin; v++)
            for (uint s = 0; s < SUB; s++)
                sum += h[s * step + v];
        merge(out + bin, sum, whole_cell);
    }
}

/* The same for 256 bins, which need no folding: eight at a time. */
static inline void merge_values(__global uint *out, const uint *h, uint step, bool whole_cell)
{
    for (uint v = 0; v < 256; v += 8) {
        uint8 sum = 0;
        for (uint s = 0; s < SUB; s++)
            sum += vload8(0, h + s * step + v);
        if (whole_cell) {
            vstore8(sum, 0, out + v);
            continue;
        }
        uint one[8];
        vstore8(sum, 0, one);
        for (uint i = 0; i < 8; i++)
            merge(out + v + i, one[i], false);
    }
}

static inline void merge_plain(__global uint *out, const uint *h, uint bins, bool whole_cell)
{
    for (uint bin = 0; bin < bins; bin++) {
        uint sum = 0;
        for (uint s = 0; s < SINGLE_SUB(bins); s++)
            sum += h[s * SINGLE_PITCH(bins) + bin];
        merge(out + bin, sum, whole_cell);
    }
}

#define FOLD(h, bins, c, v)                                                                        \
    if ((bins) == 256)                                                                             \
        merge_values(out + (c) * (bins), h + (c) * PITCH, step, whole_cell);                       \
    else                                                                                           \
        merge_channel(out + (c) * (bins), h + (c) * PITCH, step, bins, whole_cell);
#define MERGE_CHANNELS(KIND, h, n0, n)                                                             \
    const uint step = CHANNELS_##KIND * PITCH;                                                     \
    VALUES_##KIND(FOLD, h, n0, 0, 0, 0)
#define MERGE_SINGLE(KIND, h, n0, n) merge_plain(out, h, n, whole_cell);

#define DECLARE(i, KIND, n0, n1, n2, n, o, t) uint h##i[CAT(WORDS_, FORM_##KIND)(KIND, n)];
#define CLEAR(i, KIND, n0, n1, n2, n, o, t)                                                        \
    for (uint w = 0; w < CAT(WORDS_, FORM_##KIND)(KIND, n); w++)                                   \
        h##i[w] = 0;
#define COUNT(i, KIND, n0, n1, n2, n, o, t)                                                        \
    CAT(COUNT_, FORM_##KIND)(KIND, h##i, r, g, b, n0, n1, n2, n)
#define COUNT_REST(i, KIND, n0, n1, n2, n, o, t)                                                   \
    CAT(REST_, FORM_##KIND)(KIND, h##i, r, g, b, n0, n1, n2, n)
#define COUNT_BLOCK(i, KIND, n0, n1, n2, n, o, t)                                                  \
    CAT(BLOCK_, FORM_##KIND)(KIND, h##i, n0, n1, n2, n)
#define MERGE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    {                                                                                              \
        __global uint *out = counters + tile.counters + (o) + tile.cell * (n);                     \
        CAT(MERGE_, FORM_##KIND)(KIND, h##i, n0, n)                                                \
    }

#define PIXEL(j)                                                                                   \
    {                                                                                              \
        const uint s = (j) % SUB;                                                                  \
        FEATURES(COUNT_REST)                                                                       \
    }
/* Eight bytes at any address. vload8 would go through a vector register. */
struct __attribute__((packed)) word {
    ulong v;
};

#define LOW(w)  ((uint)(w)&0xffu)
#define HIGH(w) ((uint)(w) >> 8 & 0xffu)
/* The next two bytes of a word. */
#define NEXT(w)                                                                                    \
    w >>= 16;                                                                                      \
    KEEP(w)

__kernel void histogram_private(__global const uchar *restrict pixels,
                                __global const struct histogram_tile *restrict tiles, uint first,
                                uint count, __global uint *restrict counters)
{
    const uint index = (uint)get_global_id(0);
    if (index >= count)
        return;
    const struct histogram_tile tile = tiles[first + index];
    if (tile.rows == 0)
        return;
    const bool whole_cell = tile.cell_tiles == 1;

    FEATURES(DECLARE)
    FEATURES(CLEAR)

    for (uint y = 0; y < tile.rows; y++) {
        __global const uchar *p = pixels + tile.offset + y * tile.stride;
        uint x = 0;
        for (; x + BLOCK <= tile.width; x += BLOCK) {
            FETCH(p)
            FEATURES(COUNT_BLOCK)
            for (uint half_block = 0; half_block < 2; half_block++, p += 3 * BLOCK / 2) {
                __global const struct word *words = (__global const struct word *)p;
                ulong w = words[0].v;
                uint r = LOW(w), g = HIGH(w), b;
                NEXT(w)
                b = LOW(w);
                PIXEL(0)
                r = HIGH(w);
                NEXT(w)
                g = LOW(w), b = HIGH(w);
                PIXEL(1)
                NEXT(w)
                r = LOW(w), g = HIGH(w);
                w = words[1].v;
                b = LOW(w);
                PIXEL(2)
                r = HIGH(w);
                NEXT(w)
                g = LOW(w), b = HIGH(w);
                PIXEL(3)
                NEXT(w)
                r = LOW(w), g = HIGH(w);
                NEXT(w)
                b = LOW(w);
                PIXEL(4)
                r = HIGH(w);
                w = words[2].v;
                g = LOW(w), b = HIGH(w);
                PIXEL(5)
                NEXT(w)
                r = LOW(w), g = HIGH(w);
                NEXT(w)
                b = LOW(w);
                PIXEL(6)
                r = HIGH(w);
                NEXT(w)
                g = LOW(w), b = HIGH(w);
                PIXEL(7)
            }
        }
        for (; x < tile.width; x++, p += 3) {
            const uint r = p[0], g = p[1], b = p[2], s = x % SUB;
            FEATURES(COUNT)
        }
    }

    FEATURES(MERGE)
}
