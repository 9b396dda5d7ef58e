/* kmeans_filter_half.cl: the first filter on NVIDIA GPUs: scores by tensor cores, with rows and
 * centroids rounded to float16 and sums in float32.
 *
 * What it leaves in doubt goes to the float32 filter (kmeans_filter_tiled.cl) and from there to the
 * canonical distance, so its rounding shows in speed only. The bound is derived in
 * docs/clustering.md; it takes a tensor core's sum of n terms to be within n * 2^-22 of the sum of
 * their magnitudes, whatever the order and the rounding inside.
 *
 * A work-group of 4 warps scores TILE_ROWS rows against one panel of TILE_LANES centroids at a
 * time; a warp has 64 rows and 64 centroids, 4 x 8 tiles of mma.m16n8k16. Operands come to local
 * memory by cp.async, STAGES blocks of DEPTH columns ahead; 16-byte pieces are swapped within a row
 * so that neither these stores nor ldmatrix meet in a bank. Sums begin at the centroids' starts, so
 * they end as scores. Best and second score of a row stay in registers over all panels; which of a
 * work-item's 16 centroids a score is of stands in its lowest 4 bits, and so goes with it through
 * min and max.
 */
#include "kmeans_bounds.h"

#pragma OPENCL FP_CONTRACT OFF

#define TILE_ROWS   KMEANS_HALF_ROWS
#define TILE_LANES  KMEANS_HALF_LANES
#define DEPTH       KMEANS_HALF_COLUMNS
#define STAGES      3
#define ITEMS       KMEANS_HALF_ITEMS
#define PIECES      (DEPTH / 8) /* 16-byte pieces of a row of a stage */
#define SIDE_BYTES  (TILE_ROWS * DEPTH * 2)
#define STAGE_BYTES (2 * SIDE_BYTES)

/* Rounds rows less the centre, scaled into (-1, 1) by two powers of two: dimension 0 is pieces of 8
 * columns, dimension 1 is rows. With use_ids row i is taken from row ids[i], and is zero where that
 * is negative. */
__kernel void rows_to_half(__global const float *restrict x, __global const float *restrict centre,
                           __global const int *restrict ids, __global half *restrict out, uint rows,
                           uint stride, uint columns, uint use_ids, float scale, float scale_again)
{
    const uint j = (uint)get_global_id(0) * 8;
    const uint row = (uint)get_global_id(1);
    if (j >= columns || row >= rows)
        return;
    const int from = use_ids ? ids[row] : (int)row;
    float8 value = (float8)(0.0f);
    /* Both are padded with zeros, x to a multiple of 16, `columns` to one of DEPTH. */
    if (j < stride && from >= 0)
        value = (vload8(0, x + (size_t)from * stride + j) - vload8(0, centre + j)) * scale *
                scale_again;
    vstore_half8_rte(value, 0, out + (size_t)row * columns + j);
}

/* Where piece `piece` of row `row` of one side of a stage lies, bytes. */
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

static void multiply(float *sum, const uint *a, uint b0, uint b1)
{
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Decides rows where it can: label and bounds are written, or the row is put on the list `flagged`
 * and `upper` tells what the best centroid's score cannot exceed. centroids: times -1; lanes: of
 * each lane of the panels the square less the offset, and the slope, both divided by `unit`, twice
 * the scale between rows and centroids; slope and offset: of each centroid. With use_rows it
 * searches the counts[rows_count] rows of the list `rows`. With some, as in kmeans_filter_tiled.cl. */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
assign_half(__global const half *restrict x, __global const half *restrict centroids,
            __global const float2 *restrict lanes, __global const float *restrict slope,
            __global const float *restrict offset, __global const int *restrict ids,
            __global const float *restrict norms, __global const uint *restrict rows,
            __global int *labels, __global float *near, __global float *far,
            __global float *upper, __global uint *flagged, __global uint *counts,
            uint flagged_count, uint rows_count, uint tile_rows, uint columns, uint panel_count,
            uint use_rows, uint some, float unit, float slack, float4 bounds)
{
    __local uchar memory[STAGES * STAGE_BYTES] __attribute__((aligned(128)));
    const uint lid = (uint)get_local_id(0);
    const uint lane = lid & 31, warp = lid >> 5;
    const uint warp_row = (warp & 1) * 64, warp_lane = (warp >> 1) * 64;
    const uint first = (uint)get_group_id(0) * TILE_ROWS;
    const uint count = use_rows ? counts[rows_count] : tile_rows;
    if (first >= count)
        return;
    const uint base = (uint)(size_t)memory;
    const uint blocks = columns / DEPTH, steps = blocks * panel_count;

    /* Each work-item brings 4 pieces of the rows and 4 of the centroids a stage. */
    const uint piece = lid & (PIECES - 1), brought = lid / PIECES; /* rows brought + 32 i */
    __global const half *row_from[4];
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        uint at = min(first + brought + 32 * i, count - 1);
        at = use_rows ? rows[at] : at;
        row_from[i] = x + (size_t)at * columns + piece * 8;
    }
    __global const half *lane_from = centroids + (size_t)brought * columns + piece * 8;
    const uint row_to = place(brought, piece); /* 32 rows further the swap is the same */

    /* The tile's largest norm stands for all of its rows: then a lane's start holds for all. */
    __local float *norm_of = (__local float *)memory;
    const uint mine = min(first + lid, count - 1);
    norm_of[lid] = norms[use_rows ? rows[mine] : mine];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint reach = TILE_ROWS / 2; reach > 0; reach /= 2) {
        if (lid < reach)
            norm_of[lid] = fmax(norm_of[lid], norm_of[lid + reach]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float longest = norm_of[0];
    barrier(CLK_LOCAL_MEM_FENCE);

    float best[8], second[8];
    uint where[8]; /* panel */
#pragma unroll
    for (uint i = 0; i < 8; i++) {
        best[i] = second[i] = KMEANS_HALF_FAR;
        where[i] = 0;
    }
    float sum[4][8][4];

#define START(panel)                                                                               \
    {                                                                                              \
        _Pragma("unroll") for (uint n = 0; n < 8; n++)                                             \
            _Pragma("unroll") for (uint e = 0; e < 2; e++)                                         \
        {                                                                                          \
            const float2 of_lane =                                                                 \
                lanes[(panel)*TILE_LANES + warp_lane + n * 8 + (lane & 3) * 2 + e];                \
            const float start = fma(-longest, of_lane.y, of_lane.x);                               \
            _Pragma("unroll") for (uint m = 0; m < 4; m++) sum[m][n][e] = sum[m][n][2 + e] =       \
                start;                                                                             \
        }                                                                                          \
    }
#define BRING(step)                                                                                \
    {                                                                                              \
        const uint stage = base + (step) % STAGES * STAGE_BYTES;                                   \
        const uint block = (step) % blocks * DEPTH;                                                \
        __global const half *from =                                                                \
            lane_from + (size_t)((step) / blocks) * TILE_LANES * columns + block;                  \
        _Pragma("unroll") for (uint i = 0; i < 4; i++)                                             \
        {                                                                                          \
            copy_piece(stage + row_to + i * 32 * DEPTH * 2, row_from[i] + block);                  \
            copy_piece(stage + SIDE_BYTES + row_to + i * 32 * DEPTH * 2,                           \
                       from + (size_t)(i * 32) * columns);                                         \
        }                                                                                          \
    }
#define COMMIT() __asm__ volatile("cp.async.commit_group;")

    for (uint s = 0; s < STAGES - 1; s++) {
        if (s < steps)
            BRING(s)
        COMMIT();
    }
    START(0)
    const uint frag_row = (lane & 15), frag_half = lane >> 4;
    for (uint step = 0; step < steps; step++) {
        __asm__ volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        barrier(CLK_LOCAL_MEM_FENCE);
        if (step + STAGES - 1 < steps)
            BRING(step + STAGES - 1)
        COMMIT();
        const uint stage = base + step % STAGES * STAGE_BYTES;
#pragma unroll
        for (uint d = 0; d < DEPTH / 16; d++) {
            uint a[4][4], b[4][4];
#pragma unroll
            for (uint m = 0; m < 4; m++)
                load_matrices(a[m], stage + place(warp_row + m * 16 + frag_row, d * 2 + frag_half));
                /* Two 8-centroid tiles at once: matrices 0, 1 of the first, 2, 3 of the second. */
#pragma unroll
            for (uint n = 0; n < 4; n++)
                load_matrices(b[n], stage + SIDE_BYTES +
                                        place(warp_lane + n * 16 + (lane & 7) + (lane >> 4) * 8,
                                              d * 2 + (lane >> 3 & 1)));
#pragma unroll
            for (uint m = 0; m < 4; m++)
#pragma unroll
                for (uint n = 0; n < 8; n++)
                    multiply(sum[m][n], a[m], b[n >> 1][(n & 1) * 2], b[n >> 1][(n & 1) * 2 + 1]);
        }
        if ((step + 1) % blocks != 0)
            continue;
        const uint panel = step / blocks;
#pragma unroll
        for (uint m = 0; m < 4; m++)
#pragma unroll
            for (uint h = 0; h < 2; h++) {
                const uint i = m * 2 + h;
                const float before = best[i];
#pragma unroll
                for (uint n = 0; n < 8; n++)
#pragma unroll
                    for (uint e = 0; e < 2; e++) {
                        const float t =
                            as_float((as_uint(sum[m][n][h * 2 + e]) & ~15u) | (n * 2 + e));
                        second[i] = fmin(second[i], fmax(best[i], t));
                        best[i] = fmin(best[i], t);
                    }
                where[i] = best[i] < before ? panel : where[i];
            }
        if (panel + 1 < panel_count)
            START(panel + 1)
    }

    /* A row's scores are with 4 neighbouring work-items of 2 warps. */
    __asm__ volatile("cp.async.wait_group 0;");
    barrier(CLK_LOCAL_MEM_FENCE);
    __local float *fold_best = (__local float *)memory;
    __local float *fold_second = fold_best + TILE_ROWS * 8;
    __local uint *fold_where = (__local uint *)(fold_second + TILE_ROWS * 8);
#pragma unroll
    for (uint i = 0; i < 8; i++) {
        const uint r = warp_row + (i >> 1) * 16 + (i & 1) * 8 + (lane >> 2);
        const uint at = r * 8 + (warp >> 1) * 4 + (lane & 3);
        const uint code = as_uint(best[i]) & 15;
        fold_best[at] = best[i];
        fold_second[at] = second[i];
        fold_where[at] =
            where[i] * TILE_LANES + warp_lane + (code >> 1) * 8 + (lane & 3) * 2 + (code & 1);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first + lid >= count)
        return;
    float b = KMEANS_HALF_FAR, s = KMEANS_HALF_FAR;
    uint w = 0;
    for (uint o = 0; o < 8; o++) {
        const uint at = lid * 8 + ((o + lid) & 7);
        const float other = fold_best[at];
        s = fmin(fmin(s, fold_second[at]), fmax(b, other));
        if (other < b) {
            b = other;
            w = fold_where[at];
        }
    }
    b *= unit;
    s *= unit;
    const uint row = use_rows ? rows[first + lid] : first + lid;
    const float length = norms[row];
    const int id = ids[w];
    const float limit = b + 2.0f * fma(longest, slope[id], offset[id]) + slack * longest * longest;
    if (some) {
        float low = near[row], high = far[row];
        const int label =
            label_among_some(&low, &high, b, s, id, labels[row], limit, length, bounds);
        if (label < 0) {
            flagged[atomic_inc(&counts[flagged_count])] = row;
            return;
        }
        labels[row] = label;
        near[row] = low;
        far[row] = high;
        return;
    }
    if (s > limit) {
        labels[row] = id;
        near[row] = near_bound(limit, length, bounds);
        far[row] = far_bound(s, length, bounds);
    } else {
        upper[row] = limit;
        flagged[atomic_inc(&counts[flagged_count])] = row;
    }
}
