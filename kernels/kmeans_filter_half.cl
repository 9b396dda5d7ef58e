/* kmeans_filter_half.cl: the first filter on NVIDIA GPUs: tensor cores compute the scores, with
 * rows and centroids rounded to float16 and sums in float32.
 *
 * For each row that it leaves undecided it lists the centroids that may be the nearest, and the
 * canonical distance decides; its rounding thus affects speed only. Rows with too many such
 * centroids go to the float32 filter (kmeans_filter_tiled.cl). The bound is derived in
 * docs/clustering.md; it assumes that a tensor core's sum of n terms is within n * 2^-22 of the sum
 * of their magnitudes, whatever the order and the rounding inside.
 *
 * A work-group of 4 warps scores TILE_ROWS rows against panels of TILE_LANES centroids, in tiles of
 * mma.m16n8k16. cp.async copies operands to local memory STAGES - 1 stages ahead; 16-byte pieces
 * are swizzled within a row so that neither these stores nor ldmatrix cause bank conflicts. Sums
 * begin at the centroids' start values, so they end as scores. A row's best and second score stay
 * in registers over all panels; the lowest 4 bits of a score tell which of the work-item's 16
 * centroids of a span it belongs to, and so pass through min and max with it.
 *
 * If rows have few columns, a warp keeps 32 of them in registers and scores them against every span
 * of 64 lanes. A compute unit then has room for three or four groups instead of two, and one group
 * multiplies while another folds its scores, which takes as long. Longer rows pass through local
 * memory too, for each panel, a block of DEPTH columns at a time; then a warp has 64 rows and one
 * span of the panel.
 *
 * -D KEEP=n   rows have n blocks of columns and stay in registers; 0: they do not fit
 * -D PLAIN    the same searches with a work-item per row, for tests without tensor cores */
#include "kmeans_half.h"
#include "kmeans_lanes.h"

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

#if !defined(KEEP)
#error "KEEP must be given"
#endif

#define TILE_ROWS  KMEANS_HALF_ROWS
#define TILE_LANES KMEANS_HALF_PANEL
#define DEPTH      KMEANS_HALF_COLUMNS
#define ITEMS      KMEANS_HALF_ITEMS
#ifdef PLAIN
#define MEMORY_BYTES 1
#else
#define MEMORY_BYTES (STAGES * STAGE_BYTES)
#endif

/* Arrays passed to functions stay in registers only if the functions are inlined. */
#define INLINE static inline __attribute__((always_inline))

#ifdef PLAIN
#define RESTRICT /* Oclgrind 21.10 does not support what clang makes of it in inline functions */
#else
#define RESTRICT restrict
#include "kmeans_mma.h"
#endif

/* --- rounding -------------------------------------------------------------------------------- */

/* Rounds a tile's rows and computes their norms as row_norms (kmeans_rows.cl) does, and their
 * reaches, by which slopes are multiplied: norm_share of the norm plus rest_share of the length
 * that rounding took. KMEANS_HALF_SHARES work-items per row. */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
round_rows(__global const float *restrict x, __global const float *restrict centre,
           __global half *restrict out, __global float *restrict norms,
           __global float *restrict reaches, uint rows, uint stride, uint columns, float scale,
           float scale_again, float growth, float tiny, float norm_share, float rest_share)
{
    __local float2 parts[ITEMS];
    const uint lid = (uint)get_local_id(0), share = lid % KMEANS_HALF_SHARES;
    const uint row = (uint)(get_global_id(0) / KMEANS_HALF_SHARES);
    float8 sum = (float8)(0.0f), lost = (float8)(0.0f);
    for (uint j = share * 8; j < columns && row < rows; j += KMEANS_HALF_SHARES * 8)
        round_values(scaled_values(x + (size_t)row * stride, centre, stride, j, scale, scale_again),
                     out + (size_t)row * columns + j, &sum, &lost);
    parts[lid] = (float2)(sum_of(sum), sum_of(lost));
    barrier(CLK_LOCAL_MEM_FENCE);
    if (share > 0 || row >= rows)
        return;
    float2 total = (float2)(0.0f);
    for (uint i = 0; i < KMEANS_HALF_SHARES; i++)
        total += parts[lid + i];
    const float norm = length_bound(total.x, growth, tiny);
    norms[row] = norm;
    reaches[row] = fma(norm, norm_share, length_bound(total.y, growth, tiny) * rest_share);
}

/* Lays out centroids in panels, a work-group per lane. Lane l gets centroid ids[l] if use_ids, else
 * l; at most `used` lanes have one, the other lanes and those of id -1 have none.
 * squares[c * square_step + square_from] times terms.square_scale is the squared length of centroid c
 * less the centre. within: NULL, or the squared distance by which the scores of centroid c begin lower. lanes,
 * slopes and offsets (NULL: not wanted): see lane_start. */
__kernel __attribute__((reqd_work_group_size(KMEANS_HALF_LANE_ITEMS, 1, 1))) void
lay_out(__global const float *restrict x, __global const float *restrict centre,
        __global const double *restrict squares, __global const double *restrict within,
        __global const int *restrict ids, __global half *restrict out,
        __global float2 *restrict lanes, __global float *restrict slopes,
        __global float *restrict offsets, uint used, uint stride, uint columns, uint use_ids,
        uint square_step, uint square_from, struct kmeans_half_terms terms)
{
    __local float parts[KMEANS_HALF_LANE_ITEMS];
    const uint lid = (uint)get_local_id(0), lane = (uint)get_group_id(0);
    const int id = lane >= used ? -1 : use_ids ? ids[lane] : (int)lane;
    float8 sum = (float8)(0.0f), lost = (float8)(0.0f);
    for (uint j = lid * 8; j < columns; j += KMEANS_HALF_LANE_ITEMS * 8)
        round_values(id < 0 ? (float8)(0.0f)
                            : scaled_values(x + (size_t)id * stride, centre, stride, j, terms.scale,
                                            terms.scale_again),
                     out + (size_t)lane * columns + j, &sum, &lost);
    parts[lid] = sum_of(lost);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid > 0)
        return;
    if (id < 0) {
        lanes[lane] = (float2)(KMEANS_HALF_FAR, 0.0f);
        return;
    }
    float total = 0.0f;
    for (uint i = 0; i < KMEANS_HALF_LANE_ITEMS; i++)
        total += parts[i];
    lanes[lane] = lane_start(squares[(size_t)id * square_step + square_from], within ? within[id] : 0.0, total,
                             terms, slopes ? slopes + id : 0, offsets ? offsets + id : 0);
}

/* --- scores ---------------------------------------------------------------------------------- */

#ifdef PLAIN
/* The products are added to `start`. */
static float plain_score(__global const half *row, __global const half *centroid, uint columns,
                         float start)
{
    float8 sum = (float8)(0.0f);
    for (uint j = 0; j < columns; j += 8)
        sum = fma(vload_half8(0, row + j), vload_half8(0, centroid + j), sum);
    const float4 half_sum = sum.lo + sum.hi;
    return start + (half_sum.x + half_sum.y + half_sum.z + half_sum.w);
}
#endif

/* Searches rows: those of the tile or, with use_rows, the counts[rows_count] rows of list `rows`,
 * at most most_rows. centroids: negated; lanes, slope and offset: see lay_out.
 *
 * mode KMEANS_HALF_ALL: the panels hold all centroids. Writes label and bounds, or appends the row
 * to `flagged` with `upper` an upper bound on the best centroid's score.
 *
 * mode KMEANS_HALF_SOME: they hold some (see far_among_some). If the label may change, the row is
 * appended to `flagged` and the outcome of the search stored at its place in `found`, for
 * settle_rows.
 *
 * list (KMEANS_HALF_LIST): for the row at place p of the list, slots[p * each...] get the centroids whose
 * scores do not exceed `upper`, from slot taken[p] (given) on up to slot `room`, and taken[p] grows by their
 * number, whether there was room or not. */
#define PARAMETERS                                                                                 \
    __global const half *RESTRICT x, __global const half *RESTRICT centroids,                      \
        __global const float2 *RESTRICT lanes, __global const float *RESTRICT slope,               \
        __global const float *RESTRICT offset, __global const int *RESTRICT ids,                   \
        __global const float *RESTRICT norms, __global const float *RESTRICT reaches,              \
        __global const uint *RESTRICT rows, __global int *labels, __global float *near,            \
        __global float *far, __global float *upper, __global uint *flagged,                        \
        __global float4 *found, __global int *slots, __global uint *taken, __global uint *counts,  \
        uint flagged_count, uint rows_count, uint most_rows, uint columns, uint panel_count,       \
        uint use_rows, uint mode, uint each, uint room, float unit, float slack, float4 bounds
#define ARGUMENTS                                                                                  \
    x, centroids, lanes, slope, offset, ids, norms, reaches, rows, labels, near, far, upper,       \
        flagged, found, slots, taken, counts, flagged_count, rows_count, most_rows, columns,       \
        panel_count, use_rows, mode, each, room, unit, slack, bounds
INLINE void search(PARAMETERS, bool list, __local uchar *memory)
{
    const uint lid = (uint)get_local_id(0);
    const uint first = (uint)get_group_id(0) * TILE_ROWS;
    const uint count = use_rows ? min(counts[rows_count], most_rows) : most_rows;
    if (first >= count)
        return;
    /* Several groups may share the panels of a list. */
    const ulong shares = get_num_groups(1), share = get_group_id(1);
    const uint from_panel = (uint)(panel_count * share / shares);
    const uint to_panel = (uint)(panel_count * (share + 1) / shares);

#ifdef PLAIN
    const uint p = first + lid;
    if (p >= count)
        return;
    const uint row = use_rows ? rows[p] : p;
    const float length = norms[row], farthest = reaches[row];
    const float most = list ? upper[row] / unit : 0.0f;
    float b = KMEANS_HALF_FAR, s = KMEANS_HALF_FAR;
    uint w = 0;
    for (uint l = from_panel * TILE_LANES; l < to_panel * TILE_LANES; l++) {
        const float score =
            plain_score(x + (size_t)row * columns, centroids + (size_t)l * columns, columns,
                        fma(-farthest, lanes[l].y, lanes[l].x));
        if (list && score <= most) {
            const uint slot = atomic_inc(&taken[p]);
            if (slot < room)
                slots[(size_t)p * each + slot] = ids[l];
        }
        s = fmin(s, fmax(b, score));
        w = score < b ? l : w;
        b = fmin(b, score);
    }
    if (list)
        return;
#else
    const uint lane = lid & 31, warp = lid >> 5;
    const uint warp_row = KEEP > 0 ? warp * 32 : (warp & 1) * 64;
    const uint stages = (uint)(size_t)memory;

    /* The piece to copy next, and its stage. */
    const uint piece = lid & (PIECES - 1), brought = lid / PIECES; /* rows brought + BROUGHT i */
    const uint row_to = place(brought, piece); /* the swizzle repeats every BROUGHT rows */
    uint to = stages, brought_steps = 0;
    __global const half *from_lane =
        centroids + ((size_t)from_panel * TILE_LANES + brought) * columns + piece * 8;
#define NEXT_STAGE(stage)                                                                          \
    ((stage) + STAGE_BYTES == stages + STAGES * STAGE_BYTES ? stages : (stage) + STAGE_BYTES)
#define COMMIT() __asm__ volatile("cp.async.commit_group;")
#if KEEP > 0
    const uint steps = (to_panel - from_panel) * (TILE_LANES / STAGE_LANES);
    __global const float2 *from_start = lanes + from_panel * TILE_LANES + lid * 2;
#define BRING()                                                                                    \
    if (brought_steps < steps) {                                                                   \
        _Pragma("unroll") for (uint d = 0; d < KEEP; d++)                                          \
            _Pragma("unroll") for (uint i = 0; i < STAGE_LANES / BROUGHT; i++)                     \
                copy_piece(to + d * SIDE_BYTES + row_to + i * BROUGHT * DEPTH * 2,                 \
                           from_lane + (i * BROUGHT * KEEP + d) * DEPTH);                          \
        if (lid < STAGE_LANES / 2)                                                                 \
            copy_piece(to + KEEP * SIDE_BYTES + lid * 16, (__global const half *)from_start);      \
        brought_steps++;                                                                           \
        to = NEXT_STAGE(to);                                                                       \
        from_lane += STAGE_LANES * KEEP * DEPTH;                                                   \
        from_start += STAGE_LANES;                                                                 \
    }
#else
    const uint warp_lane = (warp >> 1) * SPAN;
    const uint blocks = columns / DEPTH, steps = blocks * (to_panel - from_panel);
    /* Each work-item copies 4 pieces of the rows and 4 of the centroids per stage. */
    __global const half *row_from[4];
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        uint at = min(first + brought + BROUGHT * i, count - 1);
        at = use_rows ? rows[at] : at;
        row_from[i] = x + (size_t)at * columns + piece * 8;
    }
    uint from_column = 0;
#define BRING()                                                                                    \
    if (brought_steps < steps) {                                                                   \
        _Pragma("unroll") for (uint i = 0; i < 4; i++)                                             \
        {                                                                                          \
            copy_piece(to + row_to + i * BROUGHT * DEPTH * 2,                                      \
                       from_lane + from_column + (size_t)(i * BROUGHT) * columns);                 \
            copy_piece(to + SIDE_BYTES + row_to + i * BROUGHT * DEPTH * 2,                         \
                       row_from[i] + from_column);                                                 \
        }                                                                                          \
        brought_steps++;                                                                           \
        to = NEXT_STAGE(to);                                                                       \
        from_column += DEPTH;                                                                      \
        if (from_column == columns) {                                                              \
            from_column = 0;                                                                       \
            from_lane += (size_t)TILE_LANES * columns;                                             \
        }                                                                                          \
    }
#endif
    for (uint s = 0; s < STAGES - 1; s++) {
        BRING()
        COMMIT();
    }
#if KEEP > 0
    /* The warp's rows as mma operands. */
    uint a[KEEP * 2][ROW_TILES][4];
#pragma unroll
    for (uint i = 0; i < ROWS_EACH; i++) {
        uint at = min(first + warp_row + row_in_warp(i, lane), count - 1);
        at = use_rows ? rows[at] : at;
        __global const uint *pairs = (__global const uint *)(x + (size_t)at * columns) + (lane & 3);
#pragma unroll
        for (uint d = 0; d < KEEP * 2; d++) {
            a[d][i / 2][i % 2] = pairs[d * 8];
            a[d][i / 2][i % 2 + 2] = pairs[d * 8 + 4];
        }
    }
#endif

    /* For the work-item's rows; for a list, `best` is the largest score to list. */
    float best[ROWS_EACH], second[ROWS_EACH];
    uint where[ROWS_EACH]; /* the first lane of the span */
#pragma unroll
    for (uint i = 0; i < ROWS_EACH; i++) {
        best[i] = second[i] = KMEANS_HALF_FAR;
        where[i] = 0;
        const uint at = first + warp_row + row_in_warp(i, lane);
        if (list)
            best[i] = at < count ? upper[rows[at]] / unit : -INFINITY;
    }

    /* The tile's largest reach stands for all of its rows, so that a lane has one start for all.
     * Reaches are not negative, so their bits compare as they do. The last stage is not in use
     * yet. */
    __local uint *largest = (__local uint *)(memory + (STAGES - 1) * STAGE_BYTES);
    const uint mine = min(first + lid, count - 1), row = use_rows ? rows[mine] : mine;
    const float length = norms[row];
    const uint in_warp = largest_in_warp(as_uint(reaches[row]));
    if (lane == 0)
        largest[warp] = in_warp;
    barrier(CLK_LOCAL_MEM_FENCE);
    const float farthest =
        as_float(max(max(largest[0], largest[1]), max(largest[2], largest[3])));

    float sum[ROW_TILES][SPAN / 8][4], start[SPAN / 4];
    uint stage = stages;
#if KEEP > 0
    for (uint l = from_panel * TILE_LANES; l < to_panel * TILE_LANES;) {
        __asm__ volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        barrier(CLK_LOCAL_MEM_FENCE);
        BRING()
        COMMIT();
        __local const uchar *of_lanes = memory + (stage - stages) + KEEP * SIDE_BYTES;
#pragma unroll
        for (uint span = 0; span < STAGE_LANES; span += SPAN, l += SPAN) {
            find_starts(start, (__local const float4 *)(of_lanes + span * 8), farthest, lane);
            score_span(sum, a, stage + span * DEPTH * 2, start, lane);
            if (list)
                list_scores(sum, ids + l, lane, first + warp_row, best, slots, taken, each, room);
            else
                fold_scores(sum, l, best, second, where);
        }
        stage = NEXT_STAGE(stage);
    }
#else
#define FIND_STARTS(panel)                                                                         \
    {                                                                                              \
        _Pragma("unroll") for (uint n = 0; n < 8; n++)                                             \
            _Pragma("unroll") for (uint e = 0; e < 2; e++)                                         \
        {                                                                                          \
            const float2 of_lane =                                                                 \
                lanes[(panel)*TILE_LANES + warp_lane + n * 8 + (lane & 3) * 2 + e];                \
            start[n * 2 + e] = fma(-farthest, of_lane.y, of_lane.x);                               \
        }                                                                                          \
    }
    FIND_STARTS(from_panel)
    const uint frag_lane = lane_of_matrices(lane), frag_quarter = lane >> 3 & 1;
    const uint frag_row = warp_row + (lane & 15), frag_half = lane >> 4;
    for (uint panel = from_panel; panel < to_panel; panel++) {
        for (uint block = 0; block < blocks; block++) {
            __asm__ volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
            barrier(CLK_LOCAL_MEM_FENCE);
            BRING()
            COMMIT();
#pragma unroll
            for (uint d = 0; d < DEPTH / 16; d++) {
                uint a[4][4], b[4][4];
#pragma unroll
                for (uint m = 0; m < 4; m++)
                    load_matrices(a[m], stage + SIDE_BYTES +
                                            place(frag_row + m * 16, d * 2 + frag_half));
#pragma unroll
                for (uint n = 0; n < 4; n++)
                    load_matrices(b[n], stage + place(warp_lane + frag_lane + n * 16,
                                                      d * 2 + frag_quarter));
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
            stage = NEXT_STAGE(stage);
        }
        /* In flight while the scores are folded. */
        FIND_STARTS(panel + 1 < to_panel ? panel + 1 : panel)
        const uint l = panel * TILE_LANES + warp_lane;
        if (list)
            list_scores(sum, ids + l, lane, first + warp_row, best, slots, taken, each, room);
        else
            fold_scores(sum, l, best, second, where);
    }
#endif
    if (list)
        return;

    /* 4 neighbouring work-items hold a row's scores, in 2 warps if spans are shared out. */
    __asm__ volatile("cp.async.wait_group 0;");
    barrier(CLK_LOCAL_MEM_FENCE);
    __local float *fold_best = (__local float *)memory;
    __local float *fold_second = fold_best + TILE_ROWS * SHARERS;
    __local uint *fold_where = (__local uint *)(fold_second + TILE_ROWS * SHARERS);
#pragma unroll
    for (uint i = 0; i < ROWS_EACH; i++) {
        const uint r = warp_row + row_in_warp(i, lane);
        const uint at = r * SHARERS + (KEEP > 0 ? 0 : (warp >> 1) * 4) + (lane & 3);
        fold_best[at] = best[i];
        fold_second[at] = second[i];
        fold_where[at] = where[i] + lane_in_span(as_uint(best[i]) & 15, lane);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first + lid >= count)
        return;
    float b = KMEANS_HALF_FAR, s = KMEANS_HALF_FAR;
    uint w = 0;
    for (uint o = 0; o < SHARERS; o++) {
        const uint at = lid * SHARERS + ((o + lid) & (SHARERS - 1));
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
    const float limit = b + 2.0f * fma(farthest, slope[id], offset[id]) + slack * length * length;
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

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void assign_half(PARAMETERS)
{
    __local uchar memory[MEMORY_BYTES] __attribute__((aligned(128)));
    search(ARGUMENTS, false, memory);
}

/* A separate kernel: a choice of mode between the products of one span and those of the next would
 * keep the compiler from interleaving them. */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void list_half(PARAMETERS)
{
    __local uchar memory[MEMORY_BYTES] __attribute__((aligned(128)));
    search(ARGUMENTS, true, memory);
}

/* Blocks of columns that a work-item of seed_half has in flight. */
#define SEED_BLOCKS 2

/* Seeding: sets bit i of mask if candidate i of KMEANS_TRIALS_MAX may be nearer than the row's
 * threshold. Rows pass once, from global memory to registers: a warp takes 32 of them, and every
 * shares-th block of their columns (shares: 1, 2 or 4), so that a group reads whole rows at a time.
 * The 16 columns of a product are those that make a load of 16 bytes, in the same order on both
 * sides. */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
seed_half(__global const half *restrict x, __global const half *restrict candidates,
          __global const float2 *restrict lanes, __global const float *restrict reaches,
          __global const float *restrict thresholds, __global uint *restrict mask, uint count,
          uint columns, uint shares, float unit)
{
    const uint lid = (uint)get_local_id(0);
    const uint group_first = (uint)get_group_id(0) * (ITEMS / shares);
#ifdef PLAIN
    const uint row = group_first + lid;
    if (lid >= ITEMS / shares || row >= count)
        return;
    uint bits = 0;
    for (uint t = 0; t < KMEANS_TRIALS_MAX; t++)
        if (plain_score(x + (size_t)row * columns, candidates + (size_t)t * columns, columns,
                        fma(-reaches[row], lanes[t].y, lanes[t].x)) < thresholds[row] / unit)
            bits |= 1u << t;
    mask[row] = bits;
#else
    __local float parts[ITEMS / 32][16][32];
    const uint lane = lid & 31, quad = lane >> 2, q = lane & 3;
    const uint warp = lid >> 5, share = warp & (shares - 1);
    const uint first = group_first + (warp - share) / shares * 32 + quad;
    float sum[2][2][4];
    __global const half *row[4], *candidate[2];
#pragma unroll
    for (uint i = 0; i < 4; i++)
        row[i] = x + (size_t)min(first + i * 8, count - 1) * columns + q * 8;
#pragma unroll
    for (uint n = 0; n < 2; n++)
        candidate[n] = candidates + (size_t)(n * 8 + quad) * columns + q * 8;
#pragma unroll
    for (uint i = 0; i < 16; i++)
        sum[i / 8][i / 4 % 2][i % 4] = 0.0f;
    const uint step = shares * DEPTH;
    for (uint j = share * DEPTH; j < columns; j += SEED_BLOCKS * step) {
        uint4 a[SEED_BLOCKS][4], b[SEED_BLOCKS][2];
#pragma unroll
        for (uint d = 0; d < SEED_BLOCKS; d++) {
            const bool there = j + d * step < columns;
            const uint from = there ? j + d * step : j;
#pragma unroll
            for (uint i = 0; i < 4; i++)
                a[d][i] = *(__global const uint4 *)(row[i] + from);
#pragma unroll
            for (uint n = 0; n < 2; n++)
                b[d][n] = there ? *(__global const uint4 *)(candidate[n] + from) : (uint4)(0);
        }
#pragma unroll
        for (uint d = 0; d < SEED_BLOCKS; d++)
#pragma unroll
            for (uint m = 0; m < 2; m++) {
                const uint4 top = a[d][m * 2], bottom = a[d][m * 2 + 1];
                const uint low[4] = {top.x, bottom.x, top.y, bottom.y};
                const uint high[4] = {top.z, bottom.z, top.w, bottom.w};
#pragma unroll
                for (uint n = 0; n < 2; n++) {
                    multiply(sum[m][n], low, b[d][n].x, b[d][n].y);
                    multiply(sum[m][n], high, b[d][n].z, b[d][n].w);
                }
            }
    }
    if (share > 0)
#pragma unroll
        for (uint i = 0; i < 16; i++)
            parts[warp][i][lane] = sum[i / 8][i / 4 % 2][i % 4];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (share > 0)
        return;
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        const uint at = min(first + i * 8, count - 1);
        const float reach = reaches[at], most = thresholds[at] / unit;
        uint bits = 0;
#pragma unroll
        for (uint e = 0; e < 4; e++) {
            const uint t = e / 2 * 8 + q * 2 + e % 2, entry = i % 2 * 2 + e % 2;
            float score = sum[i / 2][e / 2][entry] + fma(-reach, lanes[t].y, lanes[t].x);
            for (uint w = 1; w < shares; w++)
                score += parts[warp + w][i / 2 * 8 + e / 2 * 4 + entry][lane];
            bits |= score < most ? 1u << t : 0;
        }
        bits |= from_neighbour(bits, 1);
        bits |= from_neighbour(bits, 2);
        if (q == 0 && first + i * 8 < count)
            mask[at] = bits;
    }
#endif
}

/* --- undecided rows -------------------------------------------------------------------------- */

/* Second part of a search among some, which needs the distance to the own centroid, for the
 * counts[rows_count] rows listed, given `found`. found_any 0: there was nothing to search. Rows
 * that stay undecided are appended to `flagged`. */
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
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); /* labels are written next */
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

/* Decides undecided rows by the canonical distance to the centroids in their slots: KMEANS_LANES
 * work-items per row. Rows with too many centroids, or without slots, go to `left`. length_scale is
 * 2^-R: see kmeans_bounds.h. */
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
