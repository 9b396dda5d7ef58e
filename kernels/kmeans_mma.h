/* kmeans_mma.h: the tensor core part of kmeans_filter_half.cl: copies pieces of rows to local
 * memory, multiplies, and folds the scores of a span, the 64 lanes that a warp scores at a time.
 * TILE_ROWS, TILE_LANES, DEPTH, ITEMS, INLINE and KEEP are defined there. */
#ifndef CLPIPE_KMEANS_MMA_H
#define CLPIPE_KMEANS_MMA_H

#include "kmeans.h"

#define SPAN    64
#define PIECES  (DEPTH / 8)      /* 16-byte pieces per row of a stage */
#define BROUGHT (ITEMS / PIECES) /* rows of which the work-items copy one piece each */
#if KEEP > 0
#define ROW_TILES   2 /* per warp, 16 rows each */
#define SHARERS     4 /* work-items that share the scores of a row */
#define STAGE_LANES (KEEP > 2 ? SPAN : TILE_LANES)
#define SIDE_BYTES  (STAGE_LANES * DEPTH * 2)
#define STAGE_BYTES (KEEP * SIDE_BYTES + STAGE_LANES * 8) /* and lay_out's values for its lanes */
#define STAGES      2
#else
#define ROW_TILES   4
#define SHARERS     8
#define SIDE_BYTES  (TILE_ROWS * DEPTH * 2)
#define STAGE_BYTES (2 * SIDE_BYTES)
#define STAGES      3
#endif
#define ROWS_EACH (ROW_TILES * 2) /* rows of which a work-item has scores */

/* Byte offset of piece `piece` of row `row` in one side of a stage. */
static uint place(uint row, uint piece)
{
    return row * (DEPTH * 2) + ((piece ^ (row >> 1 & 3)) << 4);
}

static void copy_piece(uint to, __global const half *from)
{
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"((ulong)from));
}

static void load_matrices(uint *out, uint address)
{
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(address));
}

static __attribute__((unused)) void multiply(float *sum, const uint *a, uint b0, uint b1)
{
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* The same, with the sum starting at `start` for every row. */
static __attribute__((unused)) void multiply_first(float *sum, const uint *a, uint b0, uint b1, const float *start)
{
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %10, %11};"
                     : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(start[0]),
                       "f"(start[1]));
}

/* Maximum of the bits over the warp. */
static __attribute__((unused)) uint largest_in_warp(uint bits)
{
    uint largest;
    __asm__ volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(largest) : "r"(bits));
    return largest;
}

/* The bits of the work-item whose index in the warp differs by `distance`, a power of two. */
static __attribute__((unused)) uint from_neighbour(uint bits, uint distance)
{
    uint others;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;"
                     : "=r"(others)
                     : "r"(bits), "r"(distance));
    return others;
}

/* Index in the warp of the work-item's i-th row. */
static uint row_in_warp(uint i, uint lane)
{
    return (i >> 1) * 16 + (i & 1) * 8 + (lane >> 2);
}

/* Index in the span of the work-item's lane `code`. */
static uint lane_in_span(uint code, uint lane)
{
    return (code >> 1) * 8 + (lane & 3) * 2 + (code & 1);
}

/* Two tiles of 8 centroids are loaded at once: matrices 0 and 1 of the first, 2 and 3 of the
 * second. Returns the lane whose 8 columns the work-item addresses; bit 3 of its own index selects
 * which 8. */
static uint lane_of_matrices(uint lane)
{
    return (lane & 7) + (lane >> 4) * 8;
}

#if KEEP > 0
/* Start values of a span's sums; of_lanes: what lay_out computed for its lanes, two per vector. */
static void find_starts(float *start, __local const float4 *of_lanes, float farthest, uint lane)
{
#pragma unroll
    for (uint n = 0; n < SPAN / 8; n++) {
        const float4 two = of_lanes[n * 4 + (lane & 3)];
        start[n * 2] = fma(-farthest, two.y, two.x);
        start[n * 2 + 1] = fma(-farthest, two.w, two.z);
    }
}

/* Scores the warp's rows, a, against the span whose columns begin at `from`. */
INLINE void score_span(float (*sum)[SPAN / 8][4], uint (*a)[ROW_TILES][4], uint from,
                       const float *start, uint lane)
{
#pragma unroll
    for (uint d = 0; d < KEEP * 2; d++)
#pragma unroll
        for (uint n = 0; n < SPAN / 8; n += 2) {
            uint b[4];
            const uint row = n * 8 + lane_of_matrices(lane), quarter = lane >> 3 & 1;
            load_matrices(b, from + d / 2 * SIDE_BYTES + place(row, d % 2 * 2 + quarter));
#pragma unroll
            for (uint i = 0; i < 2 * ROW_TILES; i++) {
                const uint m = i / 2, h = i % 2;
                if (d == 0)
                    multiply_first(sum[m][n + h], a[d][m], b[h * 2], b[h * 2 + 1],
                                   start + (n + h) * 2);
                else
                    multiply(sum[m][n + h], a[d][m], b[h * 2], b[h * 2 + 1]);
            }
        }
}
#endif

/* Folds the scores of the span that begins at lane `from`. */
INLINE void fold_scores(float (*sum)[SPAN / 8][4], uint from, float *best, float *second,
                        uint *where)
{
#pragma unroll
    for (uint i = 0; i < ROWS_EACH; i++) {
        const float before = best[i];
#pragma unroll
        for (uint n = 0; n < SPAN / 8; n++)
#pragma unroll
            for (uint e = 0; e < 2; e++) {
                const float t =
                    as_float((as_uint(sum[i / 2][n][i % 2 * 2 + e]) & ~15u) | (n * 2 + e));
                second[i] = fmin(second[i], fmax(best[i], t));
                best[i] = fmin(best[i], t);
            }
        where[i] = best[i] < before ? from : where[i];
    }
}

/* Appends the centroids of a span whose scores are at most `most` to the slots of their rows, of which row p has
 * `room` from p * each on. ids: of the span's lanes; first_place: list index of the warp's first row. */
INLINE void list_scores(float (*sum)[SPAN / 8][4], __global const int *ids, uint lane,
                        uint first_place, const float *most, __global int *slots,
                        __global uint *taken, uint each, uint room)
{
#pragma unroll
    for (uint i = 0; i < ROWS_EACH; i++) {
        uint hits = 0;
#pragma unroll
        for (uint n = 0; n < SPAN / 8; n++)
#pragma unroll
            for (uint e = 0; e < 2; e++)
                hits |= sum[i / 2][n][i % 2 * 2 + e] <= most[i] ? 1u << (n * 2 + e) : 0;
        const uint p = first_place + row_in_warp(i, lane);
        for (; hits > 0; hits &= hits - 1) {
            const uint slot = atomic_inc(&taken[p]);
            if (slot < room)
                slots[(size_t)p * each + slot] =
                    ids[lane_in_span(31 - clz(hits & -hits), lane)];
        }
    }
}

#endif
