/* kmeans_filter_half.cl: the first filter on NVIDIA GPUs: scores by tensor cores, with rows and
 * centroids rounded to float16 and sums in float32.
 *
 * Of a row that it leaves in doubt it lists the centroids that may be the nearest, and the canonical
 * distance decides; so its rounding shows in speed only. Rows with too many such centroids go to the
 * float32 filter (kmeans_filter_tiled.cl). The bound is derived in docs/clustering.md; it takes a
 * tensor core's sum of n terms to be within n * 2^-22 of the sum of their magnitudes, whatever the
 * order and the rounding inside.
 *
 * A work-group of 4 warps scores TILE_ROWS rows against one panel of TILE_LANES centroids at a
 * time; a warp has 64 rows and 64 centroids, 4 x 8 tiles of mma.m16n8k16. Operands come to local
 * memory by cp.async, STAGES blocks of DEPTH columns ahead; 16-byte pieces are swapped within a row
 * so that neither these stores nor ldmatrix meet in a bank. Sums begin at the centroids' starts, so
 * they end as scores. Best and second score of a row stay in registers over all panels; which of a
 * work-item's 16 centroids a score is of stands in its lowest 4 bits, and so goes with it through
 * min and max.
 *
 * -D KEEP=n   rows have n blocks of columns and stay in local memory, which only centroids then
 *             pass through; 0: there is no room for them, and they come again for each panel
 * -D PLAIN    the same searches, a work-item to a row, for tests where there are no tensor cores
 */
#include "kmeans_bounds.h"
#include "kmeans_lanes.h"

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

#if !defined(KEEP)
#error "KEEP must be given"
#endif

#define TILE_ROWS   KMEANS_HALF_ROWS
#define TILE_LANES  KMEANS_HALF_LANES
#define DEPTH       KMEANS_HALF_COLUMNS
#define ITEMS       KMEANS_HALF_ITEMS
#define PIECES      (DEPTH / 8) /* 16-byte pieces of a row of a stage */
#define BROUGHT     (ITEMS / PIECES) /* rows that the work-items bring a piece each of */
#define SIDE_BYTES  (TILE_ROWS * DEPTH * 2)
#define KEPT_BYTES  (KEEP * SIDE_BYTES)
#if KEEP > 0
#define STAGE_BYTES SIDE_BYTES
#define STAGES      (KEEP > 3 ? 2 : 3)
#else
#define STAGE_BYTES (2 * SIDE_BYTES)
#define STAGES      3
#endif

/* --- rounding -------------------------------------------------------------------------------- */

/* Values less the centre, scaled into (-1, 1) by two powers of two. Rows are padded with zeros to a
 * multiple of 16 columns, those of float16 to one of DEPTH. */
static float8 scaled_values(__global const float *row, __global const float *centre, uint stride,
                            uint j, float scale, float scale_again)
{
    return j < stride ? (vload8(0, row + j) - vload8(0, centre + j)) * scale * scale_again
                      : (float8)(0.0f);
}

/* Rounds a tile's rows, and finds their norms as row_norms (kmeans_rows.cl) does: KMEANS_HALF_SHARES
 * work-items to a row. */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
round_rows(__global const float *restrict x, __global const float *restrict centre,
           __global half *restrict out, __global float *restrict norms, uint rows, uint stride,
           uint columns, float scale, float scale_again, float growth, float tiny)
{
    __local float parts[ITEMS];
    const uint lid = (uint)get_local_id(0), share = lid % KMEANS_HALF_SHARES;
    const uint row = (uint)(get_global_id(0) / KMEANS_HALF_SHARES);
    float8 sum = (float8)(0.0f);
    for (uint j = share * 8; j < columns && row < rows; j += KMEANS_HALF_SHARES * 8) {
        const float8 value =
            scaled_values(x + (size_t)row * stride, centre, stride, j, scale, scale_again);
        sum = fma(value, value, sum);
        vstore_half8_rte(value, 0, out + (size_t)row * columns + j);
    }
    const float4 half_sum = sum.lo + sum.hi;
    parts[lid] = half_sum.x + half_sum.y + half_sum.z + half_sum.w;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (share > 0 || row >= rows)
        return;
    float total = 0.0f;
    for (uint i = 0; i < KMEANS_HALF_SHARES; i++)
        total += parts[lid + i];
    norms[row] = length_bound(total, growth, tiny);
}

/* Lays centroids out in panels: dimension 0 is pieces of 8 columns, dimension 1 is lanes. Lane l has
 * centroid ids[l] if use_ids, else l; there are `used` of them, the other lanes get none. squares: of
 * each centroid the squared length less the centre, to be multiplied by square_scale.
 *
 * lanes: of each lane where its sum starts, the square less the offset, and the slope, both divided
 * by `unit`, twice the scale between rows and centroids. Offset and slope are the bound's, by
 * centroid, as docs/clustering.md derives them; the terms say what of it does not depend on the
 * centroid: s0..s3 are offset, offset by square, offset by length and slope by length, slope. */
__kernel void lay_out(__global const float *restrict x, __global const float *restrict centre,
                      __global const double *restrict squares, __global const int *restrict ids,
                      __global half *restrict out, __global float2 *restrict lanes,
                      __global float *restrict slopes, __global float *restrict offsets, uint used,
                      uint stride, uint columns, uint use_ids, float scale, float scale_again,
                      double square_scale, double unit, double slope_plain, double slope_length,
                      double offset_plain, double offset_length, double offset_square)
{
    const uint j = (uint)get_global_id(0) * 8;
    const uint lane = (uint)get_global_id(1);
    if (j >= columns)
        return;
    const uint id = lane >= used ? 0 : use_ids ? (uint)ids[lane] : lane;
    const float8 value =
        scaled_values(x + (size_t)id * stride, centre, stride, j, scale, scale_again);
    vstore_half8_rte(lane < used ? value : (float8)(0.0f), 0, out + (size_t)lane * columns + j);
    if (j > 0)
        return;
    if (lane >= used) {
        lanes[lane] = (float2)(KMEANS_HALF_FAR, 0.0f);
        return;
    }
    const double square = squares[id] * square_scale, length = sqrt(square);
    const double slope = convert_float_rtp(slope_plain + slope_length * length);
    const double offset =
        convert_float_rtp(offset_plain + offset_length * length + offset_square * square);
    lanes[lane] = (float2)((float)((square - offset) / unit), (float)(slope / unit));
    slopes[id] = (float)slope;
    offsets[id] = (float)offset;
}

/* --- scores ---------------------------------------------------------------------------------- */

/* Where piece `piece` of row `row` of one side of a stage lies, bytes. */
static uint place(uint row, uint piece)
{
    return row * (DEPTH * 2) + ((piece ^ (row >> 1 & 3)) << 4);
}

#ifdef PLAIN
/* The sum of the products begins at `start`. */
static float plain_score(__global const half *row, __global const half *centroid, uint columns,
                         float start)
{
    float8 sum = (float8)(0.0f);
    for (uint j = 0; j < columns; j += 8)
        sum = fma(vload_half8(0, row + j), vload_half8(0, centroid + j), sum);
    const float4 half_sum = sum.lo + sum.hi;
    return start + (half_sum.x + half_sum.y + half_sum.z + half_sum.w);
}
#else
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

/* The same, but the sum begins at `start` for every row. */
static void multiply_first(float *sum, const uint *a, uint b0, uint b1, const float *start)
{
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %10, %11};"
                     : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(start[0]),
                       "f"(start[1]));
}

/* The largest bits in the warp. */
static uint largest_in_warp(uint bits)
{
    uint largest;
    __asm__ volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(largest) : "r"(bits));
    return largest;
}
#endif

/* Searches rows: those of the tile, or with use_rows the counts[rows_count] of the list `rows`, at
 * most most_rows. centroids: times -1; lanes, slope and offset: see lay_out.
 *
 * mode KMEANS_HALF_ALL: the panels are of all centroids. Label and bounds are written, or the row is
 * put on the list `flagged` and `upper` tells what the best centroid's score cannot exceed.
 *
 * mode KMEANS_HALF_SOME: they are of some: see far_among_some. Where the label may not stand
 * `flagged` gets the row and `found` in its place the outcome of the search, for settle_rows.
 *
 * mode KMEANS_HALF_LIST: of the row in place p of the list, slots[p * KMEANS_HALF_SLOTS...] get the
 * centroids whose scores do not exceed `upper`, and taken[p] (zero before) their number, which may be
 * larger than the room. */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
assign_half(__global const half *restrict x, __global const half *restrict centroids,
            __global const float2 *restrict lanes, __global const float *restrict slope,
            __global const float *restrict offset, __global const int *restrict ids,
            __global const float *restrict norms, __global const uint *restrict rows,
            __global int *labels, __global float *near, __global float *far,
            __global float *upper, __global uint *flagged, __global float4 *found,
            __global int *slots, __global uint *taken, __global uint *counts, uint flagged_count,
            uint rows_count, uint most_rows, uint columns, uint panel_count, uint use_rows,
            uint mode, float unit, float slack, float4 bounds)
{
#ifndef PLAIN
    __local uchar memory[KEPT_BYTES + STAGES * STAGE_BYTES] __attribute__((aligned(128)));
#endif
    const uint lid = (uint)get_local_id(0);
    const uint lane = lid & 31, warp = lid >> 5;
    const uint warp_row = (warp & 1) * 64, warp_lane = (warp >> 1) * 64;
    const uint first = (uint)get_group_id(0) * TILE_ROWS;
    const uint count = use_rows ? min(counts[rows_count], most_rows) : most_rows;
    if (first >= count)
        return;
    /* For lists several groups may share the panels. */
    const ulong shares = get_num_groups(1), share = get_group_id(1);
    const uint from_panel = (uint)(panel_count * share / shares);
    const uint to_panel = (uint)(panel_count * (share + 1) / shares);

#ifdef PLAIN
    const uint p = first + lid;
    if (p >= count)
        return;
    const uint row = use_rows ? rows[p] : p;
    const float length = norms[row], longest = length;
    const float most = mode == KMEANS_HALF_LIST ? upper[row] / unit : 0.0f;
    float b = KMEANS_HALF_FAR, s = KMEANS_HALF_FAR;
    uint w = 0;
    for (uint l = from_panel * TILE_LANES; l < to_panel * TILE_LANES; l++) {
        const float score =
            plain_score(x + (size_t)row * columns, centroids + (size_t)l * columns, columns,
                        fma(-longest, lanes[l].y, lanes[l].x));
        if (mode == KMEANS_HALF_LIST && score <= most) {
            const uint slot = atomic_inc(&taken[p]);
            if (slot < KMEANS_HALF_SLOTS)
                slots[p * KMEANS_HALF_SLOTS + slot] = ids[l];
        }
        s = fmin(s, fmax(b, score));
        w = score < b ? l : w;
        b = fmin(b, score);
    }
    if (mode == KMEANS_HALF_LIST)
        return;
#else
    const uint base = (uint)(size_t)memory, stages = base + KEPT_BYTES;
    const uint blocks = columns / DEPTH, steps = blocks * (to_panel - from_panel);

    /* Each work-item brings 4 pieces of the rows and 4 of the centroids a stage. */
    const uint piece = lid & (PIECES - 1), brought = lid / PIECES; /* rows brought + BROUGHT i */
    __global const half *row_from[4];
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        uint at = min(first + brought + BROUGHT * i, count - 1);
        at = use_rows ? rows[at] : at;
        row_from[i] = x + (size_t)at * columns + piece * 8;
    }
    const uint row_to = place(brought, piece); /* BROUGHT rows further the swap is the same */

    /* Of the work-item's 8 rows; in mode LIST `best` is what scores must not exceed. */
    float best[8], second[8];
    uint where[8]; /* panel */
#pragma unroll
    for (uint i = 0; i < 8; i++) {
        best[i] = second[i] = KMEANS_HALF_FAR;
        where[i] = 0;
        const uint at = first + warp_row + (i >> 1) * 16 + (i & 1) * 8 + (lane >> 2);
        if (mode == KMEANS_HALF_LIST)
            best[i] = at < count ? upper[rows[at]] / unit : -INFINITY;
    }
    float sum[4][8][4], start[16];

#define FIND_STARTS(panel)                                                                         \
    {                                                                                              \
        _Pragma("unroll") for (uint n = 0; n < 8; n++)                                             \
            _Pragma("unroll") for (uint e = 0; e < 2; e++)                                         \
        {                                                                                          \
            const float2 of_lane =                                                                 \
                lanes[(panel)*TILE_LANES + warp_lane + n * 8 + (lane & 3) * 2 + e];                \
            start[n * 2 + e] = fma(-longest, of_lane.y, of_lane.x);                                \
        }                                                                                          \
    }

    /* What is brought next: its stage, its block of columns, its panel. */
    uint to = stages, from_column = 0, brought_steps = 0;
    __global const half *from_lane =
        centroids + ((size_t)from_panel * TILE_LANES + brought) * columns + piece * 8;
#define BRING()                                                                                    \
    if (brought_steps < steps) {                                                                   \
        _Pragma("unroll") for (uint i = 0; i < 4; i++)                                             \
        {                                                                                          \
            copy_piece(to + row_to + i * BROUGHT * DEPTH * 2,                                      \
                       from_lane + from_column + (size_t)(i * BROUGHT) * columns);                 \
            if (KEEP == 0)                                                                         \
                copy_piece(to + SIDE_BYTES + row_to + i * BROUGHT * DEPTH * 2,                     \
                           row_from[i] + from_column);                                             \
        }                                                                                          \
        brought_steps++;                                                                           \
        to = to + STAGE_BYTES == stages + STAGES * STAGE_BYTES ? stages : to + STAGE_BYTES;        \
        from_column += DEPTH;                                                                      \
        if (from_column == columns) {                                                              \
            from_column = 0;                                                                       \
            from_lane += (size_t)TILE_LANES * columns;                                             \
        }                                                                                          \
    }
#define COMMIT() __asm__ volatile("cp.async.commit_group;")

    for (uint b = 0; b < KEEP; b++)
#pragma unroll
        for (uint i = 0; i < 4; i++)
            copy_piece(base + b * SIDE_BYTES + row_to + i * BROUGHT * DEPTH * 2,
                       row_from[i] + b * DEPTH);
    for (uint s = 0; s < STAGES - 1; s++) {
        BRING()
        COMMIT();
    }

    /* The tile's largest norm stands for all of its rows: then a lane's start holds for all. Norms
     * are not negative, so they are in order as their bits are. The last stage is not in use yet. */
    __local uint *largest = (__local uint *)(memory + KEPT_BYTES + (STAGES - 1) * STAGE_BYTES);
    const uint mine = min(first + lid, count - 1), row = use_rows ? rows[mine] : mine;
    const float length = norms[row];
    const uint in_warp = largest_in_warp(as_uint(length));
    if (lane == 0)
        largest[warp] = in_warp;
    barrier(CLK_LOCAL_MEM_FENCE);
    const float longest =
        as_float(max(max(largest[0], largest[1]), max(largest[2], largest[3])));
    FIND_STARTS(from_panel)
    const uint frag_row = warp_row + (lane & 15), frag_half = lane >> 4;
    /* Two 8-centroid tiles at once: matrices 0, 1 of the first, 2, 3 of the second. */
    const uint frag_lane = warp_lane + (lane & 7) + (lane >> 4) * 8, frag_quarter = lane >> 3 & 1;
    uint stage = stages;
    for (uint panel = from_panel; panel < to_panel; panel++) {
        for (uint block = 0; block < blocks; block++) {
            __asm__ volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
            barrier(CLK_LOCAL_MEM_FENCE);
            BRING()
            COMMIT();
            const uint row_side = KEEP > 0 ? base + block * SIDE_BYTES : stage + SIDE_BYTES;
#pragma unroll
            for (uint d = 0; d < DEPTH / 16; d++) {
                uint a[4][4], b[4][4];
#pragma unroll
                for (uint m = 0; m < 4; m++)
                    load_matrices(a[m], row_side + place(frag_row + m * 16, d * 2 + frag_half));
#pragma unroll
                for (uint n = 0; n < 4; n++)
                    load_matrices(b[n], stage + place(frag_lane + n * 16, d * 2 + frag_quarter));
                if (d == 0 && block == 0) {
#pragma unroll
                    for (uint m = 0; m < 4; m++)
#pragma unroll
                        for (uint n = 0; n < 8; n++)
                            multiply_first(sum[m][n], a[m], b[n >> 1][(n & 1) * 2],
                                           b[n >> 1][(n & 1) * 2 + 1], start + n * 2);
                } else {
#pragma unroll
                    for (uint m = 0; m < 4; m++)
#pragma unroll
                        for (uint n = 0; n < 8; n++)
                            multiply(sum[m][n], a[m], b[n >> 1][(n & 1) * 2],
                                     b[n >> 1][(n & 1) * 2 + 1]);
                }
            }
            stage = stage + STAGE_BYTES == stages + STAGES * STAGE_BYTES ? stages
                                                                         : stage + STAGE_BYTES;
        }
        /* While the scores are folded these are on their way. */
        FIND_STARTS(panel + 1 < to_panel ? panel + 1 : panel)
        if (mode == KMEANS_HALF_LIST) {
#pragma unroll
            for (uint i = 0; i < 8; i++) {
                uint hits = 0;
#pragma unroll
                for (uint n = 0; n < 8; n++)
#pragma unroll
                    for (uint e = 0; e < 2; e++)
                        hits |= sum[i / 2][n][i % 2 * 2 + e] <= best[i] ? 1u << (n * 2 + e) : 0;
                const uint p = first + warp_row + (i >> 1) * 16 + (i & 1) * 8 + (lane >> 2);
                for (; hits > 0; hits &= hits - 1) {
                    const uint code = 31 - clz(hits & -hits);
                    const uint slot = atomic_inc(&taken[p]);
                    if (slot < KMEANS_HALF_SLOTS)
                        slots[p * KMEANS_HALF_SLOTS + slot] =
                            ids[panel * TILE_LANES + warp_lane + (code >> 1) * 8 + (lane & 3) * 2 +
                                (code & 1)];
                }
            }
            continue;
        }
#pragma unroll
        for (uint i = 0; i < 8; i++) {
            const float before = best[i];
#pragma unroll
            for (uint n = 0; n < 8; n++)
#pragma unroll
                for (uint e = 0; e < 2; e++) {
                    const float t = as_float((as_uint(sum[i / 2][n][i % 2 * 2 + e]) & ~15u) |
                                             (n * 2 + e));
                    second[i] = fmin(second[i], fmax(best[i], t));
                    best[i] = fmin(best[i], t);
                }
            where[i] = best[i] < before ? panel : where[i];
        }
    }
    if (mode == KMEANS_HALF_LIST)
        return;

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
#endif
    b *= unit;
    s *= unit;
    const int id = ids[w];
    const float limit = b + 2.0f * fma(longest, slope[id], offset[id]) + slack * longest * longest;
    if (mode == KMEANS_HALF_SOME) {
        const float others =
            far_among_some(far[row], b, s, id, labels[row], length, bounds);
        if (others > near[row]) {
            far[row] = others;
        } else {
            const uint at = atomic_inc(&counts[flagged_count]);
            flagged[at] = row;
            found[at] = (float4)(b, s, limit, as_float(id));
        }
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

/* --- rows in doubt --------------------------------------------------------------------------- */

/* Second part of a search among some, where the distance to the own centroid is needed: of the
 * counts[rows_count] rows listed, with what was found. With found_any 0 there was nothing to search.
 * Rows that stay in doubt go to `flagged`. */
__kernel __attribute__((reqd_work_group_size(KMEANS_OWN_ITEMS, 1, 1))) void
settle_rows(__global const float *restrict x, __global const float *restrict centroids,
            __global const float *restrict norms, __global const uint *restrict rows,
            __global const float4 *restrict found, __global int *labels, __global float *near,
            __global float *far, __global uint *flagged, __global uint *counts, uint flagged_count,
            uint rows_count, uint found_any, uint stride, float half_scale, float growth,
            float tiny, float4 bounds)
{
    __local float parts[KMEANS_OWN_ITEMS];
    const uint lid = (uint)get_local_id(0), lane = lid % KMEANS_LANES;
    const uint each = KMEANS_OWN_ITEMS / KMEANS_LANES, step = (uint)get_num_groups(0) * each;
    const uint count = counts[rows_count];
    for (uint first = (uint)get_group_id(0) * each; first < count; first += step) {
        const uint i = first + lid / KMEANS_LANES;
        const uint row = rows[min(i, count - 1)];
        const int own = labels[row];
        parts[lid] = difference_part(x + (size_t)row * stride, centroids + (size_t)own * stride,
                                     stride, lane, half_scale);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < count && lane == 0) {
            float sum = 0.0f;
            for (uint l = 0; l < KMEANS_LANES; l++)
                sum += parts[lid + l];
            const float4 outcome =
                found_any ? found[i] : (float4)(INFINITY, INFINITY, INFINITY, as_float(-1));
            float low = fmin(near[row], length_bound(sum, growth, tiny) + bounds.w);
            float high = far[row];
            const int label = label_among_some(&low, &high, outcome.x, outcome.y,
                                               as_int(outcome.w), own, outcome.z, norms[row], bounds);
            if (label < 0) {
                flagged[atomic_inc(&counts[flagged_count])] = row;
            } else {
                labels[row] = label;
                near[row] = low;
                far[row] = high;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#define FLIGHT 8

/* One lane of the canonical distance; FLIGHT columns are on their way at a time. */
static double lane_sum(__global const float *row, __global const float *centroid, uint stride,
                       uint lane)
{
    double sum = 0.0;
    for (uint from = lane; from < stride; from += FLIGHT * KMEANS_LANES) {
        float values[FLIGHT], others[FLIGHT];
#pragma unroll
        for (uint i = 0; i < FLIGHT; i++) {
            const uint j = min(from + i * KMEANS_LANES, stride - KMEANS_LANES + lane);
            values[i] = row[j];
            others[i] = centroid[j];
        }
#pragma unroll
        for (uint i = 0; i < FLIGHT; i++) {
            const double t = (double)values[i] - (double)others[i];
            sum = from + i * KMEANS_LANES < stride ? fma(t, t, sum) : sum;
        }
    }
    return sum;
}

/* Decides rows in doubt by the canonical distance, of the centroids in their slots: KMEANS_LANES
 * work-items to a row. Those with too many centroids, or beyond the room for slots, go to `left`.
 * length_scale is 2^-R: see kmeans_bounds.h. */
__kernel __attribute__((reqd_work_group_size(KMEANS_OWN_ITEMS, 1, 1))) void
decide_rows(__global const float *restrict x, __global const float *restrict centroids,
            __global const float *restrict norms, __global const uint *restrict rows,
            __global const int *restrict slots, __global uint *taken,
            __global const float *restrict upper, __global int *labels, __global float *near,
            __global float *far, __global uint *left, __global uint *counts, uint left_count,
            uint rows_count, uint room, uint stride, double length_scale, float4 bounds)
{
    __local double lanes[KMEANS_OWN_ITEMS];
    __local uint most;
    const uint lid = (uint)get_local_id(0), lane = lid % KMEANS_LANES;
    const uint each = KMEANS_OWN_ITEMS / KMEANS_LANES, step = (uint)get_num_groups(0) * each;
    const uint count = counts[rows_count];
    for (uint first = (uint)get_group_id(0) * each; first < count; first += step) {
        const uint i = first + lid / KMEANS_LANES;
        const uint row = rows[min(i, count - 1)];
        const uint listed = i < count && i < room ? taken[i] : 0;
        const uint scored = listed <= KMEANS_HALF_SLOTS ? listed : 0;
        if (lid == 0)
            most = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0)
            atomic_max(&most, scored);
        barrier(CLK_LOCAL_MEM_FENCE);
        double best = INFINITY, second = INFINITY;
        int best_id = INT_MAX;
        for (uint s = 0; s < most; s++) {
            const int id = s < scored ? slots[i * KMEANS_HALF_SLOTS + s] : 0;
            const double sum = s < scored ? lane_sum(x + (size_t)row * stride,
                                                     centroids + (size_t)id * stride, stride, lane)
                                          : 0.0;
            fold_lanes(lanes, sum, lid);
            const double distance = s < scored ? lanes[lid - lane] : INFINITY;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (distance < best || (distance == best && id < best_id)) {
                second = best;
                best = distance;
                best_id = id;
            } else {
                second = fmin(second, distance);
            }
        }
        if (i < count && lane == 0) {
            if (scored == 0) {
                left[atomic_inc(&counts[left_count])] = row;
            } else {
                const double reach = sqrt(second) * length_scale * (1.0 - 0x1p-19);
                labels[row] = best_id;
                near[row] =
                    convert_float_rtp(sqrt(best) * length_scale * (1.0 + 0x1p-19));
                far[row] = fmin(far_bound(upper[row], norms[row], bounds),
                                reach < FARTHEST ? convert_float_rtn(reach) : FARTHEST);
            }
            if (i < room)
                taken[i] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
