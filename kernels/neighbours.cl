/* neighbours: counts features whose bins depend on a pixel and its eight neighbours.
 *
 * A kind's header (neighbours_planes.h defines the interface) finds the bin, and for some kinds the
 * weight, of a pixel from planes: one value per pixel, such as its luma, computed once from its
 * three channels. Only the planes needed by the features of the pass are computed.
 *
 * On CPUs (GROUP is 1) a work-item counts a tile in private tables, in rows of up to STRETCH
 * pixels. It keeps three rows of each plane; the loops over a row are simple ones that compilers
 * vectorise, except the last, which increments. They take whole vectors: values past the last pixel
 * come from an earlier row or are 0, and are not counted. Elsewhere a work-group counts a tile in
 * local memory, one work-item per pixel, which computes the nine values itself from loads that the
 * L1 cache serves.
 *
 * A tile that covers its whole cell stores its words; others add theirs with atomics. */
#include "histogram_bins.h"
#include "neighbours_planes.h"

#ifndef GROUP
#error "the host defines GROUP, the work-group size"
#endif

#define STRETCH 256
#define SUB     4 /* tables used in turn, so that equal neighbours rarely wait for each other */

/* Does a kind of the pass need the plane? */
#define NEED(i, KIND, n0, n1, n2, n, o, t) | PLANES_##KIND
enum { NEEDED = 0 FEATURES(NEED) };

#if GROUP == 1

#define WIDTH (STRETCH + 2)
#define LANES 16u

/* Iterations are independent; the compiler need not prove it. */
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")

/* Bins have 16 bits but are computed as int, for which the compiler would choose half the width. */
#define WHOLE_VECTORS _Pragma("clang loop vectorize(assume_safety) vectorize_width(16)")

/* At any address. OpenCL C 2.0's vload16 takes a generic pointer, which Oclgrind 21.10 lacks. */
struct __attribute__((packed)) sixteen_pixels {
    uchar16 first, second, third;
};

struct __attribute__((packed)) sixteen_values {
    short16 values;
};

static inline void store(short *row, short16 values)
{
    ((struct sixteen_values *)row)->values = values;
}

/* Computes LANES values of each plane needed. */
INLINE void fill_vectors(short (*rows)[WIDTH], __global const uchar *in, uint x)
{
    const struct sixteen_pixels all = *(__global const struct sixteen_pixels *)(in + 3 * x);
    const uchar16 p = all.first, q = all.second, s = all.third;
    const ushort16 r = convert_ushort16((uchar16)(p.s0369, p.scf, q.s258b, q.se, s.s147a, s.sd));
    const ushort16 g = convert_ushort16((uchar16)(p.s147a, p.sd, q.s0369, q.scf, s.s258b, s.se));
    const ushort16 b = convert_ushort16((uchar16)(p.s258b, p.se, q.s147a, q.sd, s.s0369, s.scf));
    if (NEEDED & 1 << PLANE_LUMA)
        store(rows[PLANE_LUMA] + x, as_short16(LUMA((ushort)77 * r, (ushort)150 * g, (ushort)29 * b)));
    if (NEEDED & 1 << PLANE_RED_GREEN)
        store(rows[PLANE_RED_GREEN] + x, as_short16(r - g));
    if (NEEDED & 1 << PLANE_YELLOW_BLUE)
        store(rows[PLANE_YELLOW_BLUE] + x, as_short16(r + g - b - b));
}

/* Computes a row of each plane needed. */
INLINE void fill_rows(short (*rows)[WIDTH], __global const uchar *in, uint width)
{
    for (uint x = 0; width >= LANES && x < width; x += LANES)
        fill_vectors(rows, in, min(x, width - LANES));
    for (uint x = 0; width < LANES && x < width; x++) {
        const short r = in[3 * x], g = in[3 * x + 1], b = in[3 * x + 2];
        rows[PLANE_LUMA][x] = (short)luma_of((uint)r, (uint)g, (uint)b);
        rows[PLANE_RED_GREEN][x] = (short)(r - g);
        rows[PLANE_YELLOW_BLUE][x] = (short)(r + g - 2 * b);
    }
    if (NEEDED & 1 << PLANE_ZONE) {
        INDEPENDENT for (uint x = 0; x < width; x++)
            rows[PLANE_ZONE][x] = (short)zone_of(in[3 * x], in[3 * x + 1], in[3 * x + 2]);
    }
}

/* Four bins, or weights, of a row. */
struct four {
    ushort4 values;
};

INLINE ulong load_four(const ushort *at)
{
    return as_ulong(((const struct four *)at)->values);
}

/* For each bin of a row, adds 1 or a weight to one of SUB tables of `size`. */
INLINE void increment(uint *table, uint size, const ushort *bins, const ushort *weights, uint width,
                      int weighted)
{
    uint x = 0;
    for (; x + SUB <= width; x += SUB) {
        ulong bin = load_four(bins + x), weight = weighted ? load_four(weights + x) : 0;
#pragma unroll
        for (uint k = 0; k < SUB; k++, bin >>= 16, weight >>= 16)
            table[k * size + (bin & 65535u)] += weighted ? (uint)(weight & 65535u) : 1u;
    }
    for (; x < width; x++)
        table[bins[x]] += weighted ? weights[x] : 1u;
}

#define DECLARE(i, KIND, n0, n1, n2, n, o, t) uint h##i[SUB * TABLE_##KIND] = {0};
#define COUNT_CHANNEL(h, KIND, c, plane)                                                           \
    {                                                                                              \
        const short *above = rows[y % 3][plane], *here = rows[(y + 1) % 3][plane];                 \
        const short *below = rows[(y + 2) % 3][plane];                                             \
        uint *table = h + (c) * (TABLE_##KIND / CHANNELS_##KIND);                                  \
        WHOLE_VECTORS for (uint x = 0; x < whole; x++)                                             \
            bins[x] = (ushort)BIN_##KIND(above + x, here + x, below + x,                           \
                                         rows[(y + 1) % 3][PLANE_ZONE][x + 1]);                    \
        if (WEIGHTED_##KIND) {                                                                     \
            INDEPENDENT for (uint x = 0; x < whole; x++)                                           \
                weights[x] = (ushort)WEIGHT_##KIND(above + x, here + x, below + x);                \
        }                                                                                          \
        increment(table, TABLE_##KIND, bins, weights, width, WEIGHTED_##KIND);                     \
    }
#define COUNT(i, KIND, n0, n1, n2, n, o, t) CHANNEL_LIST_##KIND(COUNT_CHANNEL, h##i, KIND)
#define MERGE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    {                                                                                              \
        __global uint *out = counters + tile.counters + (o) + tile.cell * (n);                     \
        for (uint w = 1; w < SUB; w++)                                                             \
            for (uint k = 0; k < TABLE_##KIND; k++)                                                \
                h##i[k] += h##i[w * TABLE_##KIND + k];                                             \
        FOLD_##KIND(h##i);                                                                         \
        for (uint k = 0; k < (n); k++)                                                             \
            merge(out + k, h##i[k], tile.cell_tiles == 1);                                         \
    }

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
neighbours(__global const uchar *restrict pixels, __global const struct histogram_tile *restrict tiles,
           uint first, uint count, __global uint *restrict counters)
{
    if (get_global_id(0) >= count)
        return;
    const struct histogram_tile tile = tiles[first + get_global_id(0)];
    if (tile.rows == 0)
        return;
    short rows[3][PLANES][WIDTH] = {0};
    ushort bins[STRETCH] __attribute__((aligned(64))), weights[STRETCH] __attribute__((aligned(64)));
    FEATURES(DECLARE)
    for (uint left = 0; left < tile.width; left += STRETCH) {
        const uint width = min(tile.width - left, (uint)STRETCH);
        const uint whole = (width + LANES - 1) / LANES * LANES;
        __global const uchar *in = pixels + tile.offset + 3 * left;
        fill_rows(rows[0], in, width + 2);
        fill_rows(rows[1], in + tile.stride, width + 2);
        for (uint y = 0; y < tile.rows; y++) {
            fill_rows(rows[(y + 2) % 3], in + (y + 2) * tile.stride, width + 2);
            FEATURES(COUNT)
        }
    }
    FEATURES(MERGE)
}

#else

#define ADD_CHANNEL(table, KIND, c, plane)                                                         \
    {                                                                                              \
        const short *above = value[plane], *here = value[plane] + 3, *below = value[plane] + 6;    \
        const uint bin = (uint)CLASS_##KIND(BIN_##KIND(above, here, below, zone));                 \
        const uint weight = WEIGHTED_##KIND ? (uint)WEIGHT_##KIND(above, here, below) : 1u;        \
        atomic_add(table + (c) * BINS_##KIND + bin, weight);                                       \
    }
#define ADD(i, KIND, n0, n1, n2, n, o, t) CHANNEL_LIST_##KIND(ADD_CHANNEL, (table + (t)), KIND)
#define WRITE(i, KIND, n0, n1, n2, n, o, t)                                                        \
    {                                                                                              \
        __global uint *out = counters + tile.counters + (o) + tile.cell * (n);                     \
        for (uint k = (uint)get_local_id(0); k < (n); k += GROUP) {                                \
            if (tile.cell_tiles == 1)                                                              \
                out[k] = table[(t) + k];                                                           \
            else if (table[(t) + k] > 0)                                                           \
                atomic_add(out + k, table[(t) + k]);                                               \
        }                                                                                          \
    }

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
neighbours(__global const uchar *restrict pixels, __global const struct histogram_tile *restrict tiles,
           uint first, uint count, __global uint *restrict counters)
{
    __local uint table[PASS_BINS];
    if (get_group_id(0) >= count)
        return;
    const struct histogram_tile tile = tiles[first + get_group_id(0)];
    const uint total = tile.width * tile.rows;
    for (uint k = (uint)get_local_id(0); k < PASS_BINS; k += GROUP)
        table[k] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = (uint)get_local_id(0); i < total; i += GROUP) {
        const uint y = i / tile.width, x = i - y * tile.width;
        __global const uchar *in = pixels + tile.offset + y * tile.stride + 3 * x;
        short value[PLANES][9], zone = 0;
        for (uint k = 0; k < 9; k++) {
            __global const uchar *p = in + k / 3 * tile.stride + 3 * (k % 3);
            const uint r = p[0], g = p[1], b = p[2];
            value[PLANE_LUMA][k] = (short)luma_of(r, g, b);
            if (NEEDED & (1 << PLANE_RED_GREEN | 1 << PLANE_YELLOW_BLUE)) {
                value[PLANE_RED_GREEN][k] = (short)((int)r - (int)g);
                value[PLANE_YELLOW_BLUE][k] = (short)((int)r + (int)g - 2 * (int)b);
            }
            if (NEEDED & 1 << PLANE_ZONE && k == 4)
                zone = (short)zone_of((int)r, (int)g, (int)b);
        }
        FEATURES(ADD)
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    FEATURES(WRITE)
}

#endif
