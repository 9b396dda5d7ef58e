/* search_pairs.cl: finds the nearest rows of many rows: 8-bit codes, their exact products by tensor
 * cores, lists of the pairs that these leave in doubt, and the canonical distance, which decides.
 *
 * A row's index among the codes is its position. Facts of a position: scale, error (rounded up by
 * SEARCH_SLACK), square (rounded down by it), and error^2 - square. With p = 2 scale_x scale_y (q_x
 * . q_y) the squared distance of the codes of x and y is square_x + square_y - p, and y is in doubt
 * for x unless that exceeds (reach_x + error_y)^2; reach_x includes the error of x. docs/search.md
 * derives it.
 *
 * -D KEPT=n  rows have n blocks of columns and stay in registers, so that only lanes pass through
 *            local memory; 0: too many blocks for that
 * -D PLAIN   products without tensor cores, a work-item per row, for tests */
#include "kmeans_lanes.h"
#include "search.h"

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

#define INLINE static inline __attribute__((always_inline))

/* --- codes ------------------------------------------------------------------------------------ */

/* A work-group per row: row first + group of the block goes to position row * step % block_rows. */
__kernel __attribute__((reqd_work_group_size(SEARCH_ENCODE_ITEMS, 1, 1))) void
encode_rows(__global const float *values, __global const float *centre, __global char *codes,
            __global float4 *facts, __global uint *ids, uint first, uint block_rows, uint block_first,
            ulong step, uint stride, uint columns, double unit, int largest_code)
{
    __local double parts[SEARCH_ENCODE_ITEMS];
    __local double lengths[SEARCH_ENCODE_ITEMS];
    __local ulong squares[SEARCH_ENCODE_ITEMS];
    const uint lid = (uint)get_local_id(0);
    const uint row = first + (uint)get_group_id(0);
    const uint position = (uint)((ulong)row * step % block_rows);
    values += (size_t)row * stride;
    codes += (size_t)position * columns;
    double most = 0;
    for (uint j = lid; j < stride; j += SEARCH_ENCODE_ITEMS)
        most = fmax(most, fabs(((double)values[j] - (double)centre[j]) * unit));
    parts[lid] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_items = SEARCH_ENCODE_ITEMS / 2; half_items > 0; half_items /= 2) {
        if (lid < half_items)
            parts[lid] = fmax(parts[lid], parts[lid + half_items]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    most = parts[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    const bool wild = most > 0x1p40;
    const float scale = wild ? 0.0f : (float)(most / largest_code);
    const double inverse = scale > 0.0f ? 1 / (double)scale : 0.0, top = largest_code;
    double rest = 0, length = 0;
    ulong square = 0;
    for (uint j = lid; j < columns; j += SEARCH_ENCODE_ITEMS) {
        double z = 0, q = 0;
        if (j < stride) {
            z = ((double)values[j] - (double)centre[j]) * unit;
            q = wild ? 0.0 : fmin(fmax(rint(z * inverse), -top), top);
        }
        const double e = z - q * (double)scale;
        const int code = (int)q;
        codes[j] = (char)code;
        rest += e * e;
        length += z * z;
        square += (ulong)(code * code);
    }
    parts[lid] = rest;
    lengths[lid] = length;
    squares[lid] = square;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_items = SEARCH_ENCODE_ITEMS / 2; half_items > 0; half_items /= 2) {
        if (lid < half_items) {
            parts[lid] += parts[lid + half_items];
            lengths[lid] += lengths[lid + half_items];
            squares[lid] += squares[lid + half_items];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lid > 0)
        return;
    /* The second term covers the rounding of z and e. */
    const double error = sqrt(parts[0]) * (1 + 0x1p-30) + sqrt(lengths[0]) * 0x1p-48;
    const float longer = wild ? SEARCH_FAR : convert_float_rtp(error) * (1 + 2 * SEARCH_SLACK);
    const float less =
        (float)((double)scale * (double)scale * (double)squares[0]) * (1 - SEARCH_SLACK);
    /* One by one: Oclgrind 21.10 reports assembled vectors as uninitialised. */
    __global float *of_row = (__global float *)(facts + position);
    of_row[0] = scale;
    of_row[1] = longer;
    of_row[2] = less;
    of_row[3] = longer * longer - less;
    ids[position] = block_first + row;
}

/* --- the filter ------------------------------------------------------------------------------- */

#ifdef PLAIN
#define RESTRICT /* Oclgrind 21.10 does not support what clang makes of it in inline functions */
#define MEMORY_BYTES 1
#else
#define RESTRICT  restrict
#define KEEP      0
#define TILE_ROWS SEARCH_ROWS
#define TILE_LANES SEARCH_PANEL
#define DEPTH     (SEARCH_BLOCK / 2)
#define ITEMS     SEARCH_ITEMS
#include "kmeans_mma.h"
#include "mma_bytes.h"
#if KEPT > 8
#error "KEPT is at most 8"
#endif
/* Lanes that a warp scores at a time, its parts of 16 rows, and rows of a work-item. A stage has
 * the same size either way, with 8 blocks. */
#define GROUP_LANES     (KEPT > 0 ? 32 : SPAN)
#define ROW_PARTS       (KEPT > 0 ? 2 : 4)
#define GROUP_ROWS_EACH (ROW_PARTS * 2)
/* Two stages: codes and, with KEPT, the lanes' facts and reaches after them. */
#undef STAGES
#undef STAGE_BYTES
#define STAGES 2
#if KEPT > 0
#define FACTS_AT    (KEPT * GROUP_LANES * SEARCH_BLOCK)
#define REACHES_AT  (FACTS_AT + GROUP_LANES * 16)
#define STAGE_BYTES (REACHES_AT + GROUP_LANES * 4)
#else
#define STAGE_BYTES (2 * SIDE_BYTES)
#endif
#define MEMORY_BYTES (STAGES * STAGE_BYTES)
/* Pairs in doubt found by a work-group; once there are QUEUE / 2, all its work-items append them to
 * the rows' lists. Appending one by one, a work-item would wait for each place on a list, and the
 * group for the work-item. */
#define QUEUE 1024
struct queue {
    uint slot[QUEUE], position[QUEUE], product[QUEUE];
    uint taken, seen[2]; /* seen: `taken` before alternate barriers */
};
#endif

/* Appends a pair to the list of the row in place `slot`. */
static void list_pair(__global uint *counts, __global uint2 *found, uint capacity, uint slot,
                      uint position, int product)
{
    const uint at = atomic_inc(&counts[slot]);
    if (at >= capacity)
        return;
    __global uint *pair = (__global uint *)(found + (size_t)slot * capacity + at);
    pair[0] = position;
    pair[1] = (uint)product;
}

#ifndef PLAIN
static void queue_pair(__local struct queue *queue, __global uint *counts, __global uint2 *found,
                       uint capacity, uint slot, uint position, int product)
{
    const uint at = atomic_inc(&queue->taken);
    if (at >= QUEUE) {
        list_pair(counts, found, capacity, slot, position, product);
        return;
    }
    queue->slot[at] = slot;
    queue->position[at] = position;
    queue->product[at] = (uint)product;
}

/* Empties the queue. Every work-item calls it after a barrier; it ends with a barrier. */
static void list_queue(__local struct queue *queue, __global uint *counts, __global uint2 *found,
                       uint capacity, uint lid)
{
    const uint taken = min(queue->taken, (uint)QUEUE);
    for (uint at = lid; at < taken; at += SEARCH_ITEMS)
        list_pair(counts, found, capacity, queue->slot[at], queue->position[at],
                  (int)queue->product[at]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0)
        queue->taken = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
}
#endif

/* p for codes with that product. */
static float scaled(int product, float of_query, float of_lane)
{
    return (float)product * (2 * of_query * of_lane);
}

#ifdef PLAIN
/* Is x in doubt for y, given y's facts and reach as a lane? p: of the pair. */
static bool in_doubt_for(float4 of_y, float reach_y, float4 of_x, float p)
{
    return p + (2 * reach_y * of_x.y + of_x.w) >= of_y.z - reach_y * reach_y - SEARCH_SLACK_LEAST;
}
#endif

/* A work-item per span of SEARCH_SPAN lanes: its largest scale, error and error^2 - square. With a
 * row's largest product with any of them these can show that no lane of the span is in doubt. */
__kernel void bound_spans(__global const float4 *facts, __global float4 *spans, uint count)
{
    const uint span = (uint)get_global_id(0);
    if (span >= count)
        return;
    float scale = 0.0f, error = 0.0f, start = -INFINITY;
    for (uint i = 0; i < SEARCH_SPAN; i++) {
        const float4 of_lane = facts[span * SEARCH_SPAN + i];
        scale = fmax(scale, of_lane.x);
        error = fmax(error, of_lane.y);
        start = fmax(start, of_lane.w);
    }
    __global float *out = (__global float *)(spans + span);
    out[0] = scale;
    out[1] = error;
    out[2] = start;
    out[3] = 0.0f;
}

/* A work-item per span of lanes that are themselves queries: the longest reach and the least square
 * - reach^2. With a row's largest product these can show that the row is in doubt for none of
 * them. */
__kernel void bound_reaches(__global const float4 *facts, __global const float *reaches,
                            __global float2 *sides, uint count)
{
    const uint span = (uint)get_global_id(0);
    if (span >= count)
        return;
    float longest = 0.0f, least = INFINITY;
    for (uint i = 0; i < SEARCH_SPAN; i++) {
        const uint position = span * SEARCH_SPAN + i;
        const float reach = reaches[position];
        longest = fmax(longest, reach);
        least = fmin(least, facts[position].z - reach * reach - SEARCH_SLACK_LEAST);
    }
    __global float *out = (__global float *)(sides + span);
    out[0] = 2 * longest;
    out[1] = least;
}

/* The position of a row in a block, or SEARCH_NONE. */
static uint position_of(uint row, uint block_first, uint block_rows, ulong step)
{
    return row - block_first < block_rows ? (uint)((ulong)(row - block_first) * step % block_rows)
                                          : SEARCH_NONE;
}

/* Compares the rows at positions query_list[0..query_count) with `lanes` lanes from first_lane on,
 * whole panels, and lists the pairs in doubt with the product of their codes. ALL_ROWS: queries and
 * lanes are the same rows, all of them, query_list[i] is i, and first_lane is counted from a
 * work-group's own rows, wrapping around after all_lanes lanes; BOTH_WAYS: a pair is also listed
 * for its lane, whose place on the list is its position. */
__kernel __attribute__((reqd_work_group_size(SEARCH_ITEMS, 1, 1))) void
filter_pairs(__global const uchar *RESTRICT queries, __global const float4 *RESTRICT query_facts,
             __global const float *RESTRICT reaches, __global const uint *RESTRICT query_ids,
             __global const uint *RESTRICT query_list, __global const uchar *RESTRICT codes,
             __global const float4 *RESTRICT facts, __global const float4 *RESTRICT spans,
             __global const float2 *RESTRICT sides, __global uint *counts, __global uint2 *found,
             uint query_count, uint columns, uint first_lane, uint lanes, uint all_lanes, uint ways,
             uint capacity, uint block_first, uint block_rows, ulong step)
{
    const uint lid = (uint)get_local_id(0);
    const uint first = (uint)get_group_id(0) * SEARCH_ROWS;
    const bool both = ways & SEARCH_BOTH_WAYS;
    first_lane += ways & SEARCH_ALL_ROWS ? first : 0;
    first_lane -= first_lane >= all_lanes ? all_lanes : 0;
#ifdef PLAIN
    const uint slot = first + lid;
    if (slot >= query_count)
        return;
    const uint query = query_list[slot];
    const uint own = position_of(query_ids[query], block_first, block_rows, step);
    const float4 of_query = query_facts[query];
    const float reach = reaches[query];
    const float least = of_query.z - reach * reach - SEARCH_SLACK_LEAST;
    __global const char *row = (__global const char *)queries + (size_t)query * columns;
    for (uint done = 0, span = first_lane; done < lanes; done += SEARCH_SPAN, span += SEARCH_SPAN) {
        span -= span >= all_lanes ? all_lanes : 0;
        int products[SEARCH_SPAN], largest = 0;
        for (uint i = 0; i < SEARCH_SPAN; i++) {
            __global const char *other =
                (__global const char *)codes + (size_t)(span + i) * columns;
            int sum = 0;
            for (uint j = 0; j < columns; j++)
                sum += row[j] * other[j];
            products[i] = sum;
            largest = max(largest, sum);
        }
        const float4 bound = spans[span / SEARCH_SPAN];
        const float2 side = both ? sides[span / SEARCH_SPAN] : (float2)(0.0f, INFINITY);
        const float longest = scaled(largest, of_query.x, bound.x);
        if (longest + (2 * reach * bound.y + bound.z) < least &&
            longest + (side.x * of_query.y + of_query.w) < side.y)
            continue;
        for (uint i = 0; i < SEARCH_SPAN; i++) {
            const float4 of_lane = facts[span + i];
            const float p = scaled(products[i], of_query.x, of_lane.x);
            if (span + i == own)
                continue;
            if (p + (2 * reach * of_lane.y + of_lane.w) >= least)
                list_pair(counts, found, capacity, slot, span + i, products[i]);
            if (both && in_doubt_for(of_lane, reaches[span + i], of_query, p))
                list_pair(counts, found, capacity, span + i, slot, products[i]);
        }
    }
#else
    __local uchar memory[MEMORY_BYTES] __attribute__((aligned(128)));
    __local struct queue queue;
    const uint lane = lid & 31, warp = lid >> 5;
    const uint stages = (uint)(size_t)memory;
    const uint piece = lid & (PIECES - 1), brought = lid / PIECES;
    const uint row_to = place(brought, piece);
    uint to = stages, brought_steps = 0;
    __global const uchar *from_lane = codes + ((size_t)first_lane + brought) * columns + piece * 16;
#define NEXT_STAGE(stage)                                                                          \
    ((stage) + STAGE_BYTES == stages + STAGES * STAGE_BYTES ? stages : (stage) + STAGE_BYTES)
#define COMMIT() __asm__ volatile("cp.async.commit_group;")
/* A barrier, and more of them if all see that the queue is half full. */
#define LIST_IF_MANY(turn)                                                                         \
    if (lid == 0)                                                                                  \
        queue.seen[turn] = queue.taken;                                                            \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    if (queue.seen[turn] > QUEUE / 2)                                                              \
        list_queue(&queue, counts, found, capacity, lid);
#if KEPT > 0
    const uint warp_row = warp * 32, warp_lane = 0;
    const uint steps = lanes / GROUP_LANES;
    const uint from_wrap = (all_lanes - first_lane) / GROUP_LANES;
    uint from_position = first_lane;
#define BRING()                                                                                    \
    if (brought_steps < steps) {                                                                   \
        _Pragma("unroll") for (uint d = 0; d < KEPT; d++)                                          \
            copy_piece(to + d * (GROUP_LANES * SEARCH_BLOCK) + row_to,                             \
                       (__global const half *)(from_lane + d * SEARCH_BLOCK));                     \
        if (lid < GROUP_LANES)                                                                     \
            copy_piece(to + FACTS_AT + lid * 16, (__global const half *)(facts + from_position + lid)); \
        else if (both && lid < GROUP_LANES + GROUP_LANES / 4)                                      \
            copy_piece(to + REACHES_AT + (lid - GROUP_LANES) * 16,                                 \
                       (__global const half *)(reaches + from_position + (lid - GROUP_LANES) * 4)); \
        brought_steps++;                                                                           \
        to = NEXT_STAGE(to);                                                                       \
        from_lane += (size_t)GROUP_LANES * columns;                                                \
        from_position += GROUP_LANES;                                                              \
        if (brought_steps == from_wrap) {                                                          \
            from_lane -= (size_t)all_lanes * columns;                                              \
            from_position -= all_lanes;                                                            \
        }                                                                                          \
    }
#else
    const uint warp_row = (warp & 1) * 64, warp_lane = (warp >> 1) * GROUP_LANES;
    const uint blocks = columns / SEARCH_BLOCK;
    const uint steps = blocks * (lanes / SEARCH_PANEL);
    const uint from_wrap = blocks * ((all_lanes - first_lane) / SEARCH_PANEL);
    uint from_column = 0;
    __global const uchar *row_from[4];
#pragma unroll
    for (uint i = 0; i < 4; i++) {
        const uint at = query_list[min(first + brought + BROUGHT * i, query_count - 1)];
        row_from[i] = queries + (size_t)at * columns + piece * 16;
    }
#define BRING()                                                                                    \
    if (brought_steps < steps) {                                                                   \
        _Pragma("unroll") for (uint i = 0; i < 4; i++)                                             \
        {                                                                                          \
            copy_piece(to + row_to + i * BROUGHT * SEARCH_BLOCK,                                   \
                       (__global const half *)(from_lane + from_column +                           \
                                               (size_t)(i * BROUGHT) * columns));                  \
            copy_piece(to + SIDE_BYTES + row_to + i * BROUGHT * SEARCH_BLOCK,                      \
                       (__global const half *)(row_from[i] + from_column));                        \
        }                                                                                          \
        brought_steps++;                                                                           \
        to = NEXT_STAGE(to);                                                                       \
        from_column += SEARCH_BLOCK;                                                               \
        if (from_column == columns) {                                                              \
            from_column = 0;                                                                       \
            from_lane += (size_t)SEARCH_PANEL * columns;                                           \
            if (brought_steps == from_wrap)                                                        \
                from_lane -= (size_t)all_lanes * columns;                                          \
        }                                                                                          \
    }
#endif
    if (lid == 0)
        queue.taken = 0;
    for (uint s = 0; s < STAGES - 1; s++) {
        BRING()
        COMMIT();
    }
    /* For the work-item's rows: twice the scale, twice the reach, the lower limit of p, the error,
     * and error^2 - square. */
    float scale[GROUP_ROWS_EACH], reach[GROUP_ROWS_EACH], least[GROUP_ROWS_EACH];
    float error[GROUP_ROWS_EACH], start[GROUP_ROWS_EACH];
    uint own[GROUP_ROWS_EACH];
#pragma unroll
    for (uint i = 0; i < GROUP_ROWS_EACH; i++) {
        const uint slot = first + warp_row + row_in_warp(i, lane);
        const uint query = query_list[min(slot, query_count - 1)];
        const float4 of_query = query_facts[query];
        scale[i] = 2 * of_query.x;
        reach[i] = reaches[query];
        least[i] = slot < query_count ? of_query.z - reach[i] * reach[i] - SEARCH_SLACK_LEAST
                                      : SEARCH_NO_ROW;
        reach[i] *= 2;
        error[i] = of_query.y;
        start[i] = slot < query_count ? of_query.w : -SEARCH_NO_ROW;
        own[i] = position_of(query_ids[query], block_first, block_rows, step);
    }
    int sum[ROW_PARTS][GROUP_LANES / 8][4];
    uint stage = stages;
    const uint frag_lane = lane_of_matrices(lane), frag_quarter = lane >> 3 & 1;
#if KEPT > 0
    /* The warp's rows as mma operands. */
    uint a[KEPT * 2][ROW_PARTS][4];
#pragma unroll
    for (uint i = 0; i < GROUP_ROWS_EACH; i++) {
        const uint at = query_list[min(first + warp_row + row_in_warp(i, lane), query_count - 1)];
        __global const uint *fours = (__global const uint *)(queries + (size_t)at * columns) + (lane & 3);
#pragma unroll
        for (uint d = 0; d < KEPT * 2; d++) {
            a[d][i / 2][i % 2] = fours[d * 8];
            a[d][i / 2][i % 2 + 2] = fours[d * 8 + 4];
        }
    }
    for (uint done = 0, panel = first_lane; done < lanes; done += GROUP_LANES, panel += GROUP_LANES) {
        panel -= panel >= all_lanes ? all_lanes : 0;
        const float4 bound = spans[panel / SEARCH_SPAN];
        const float2 side = both ? sides[panel / SEARCH_SPAN] : (float2)(0.0f, INFINITY);
        __asm__ volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        LIST_IF_MANY(done / GROUP_LANES % 2)
        BRING()
        COMMIT();
        __local const float4 *lane_facts = (__local const float4 *)(memory + (stage - stages) + FACTS_AT);
        __local const float *lane_reaches = (__local const float *)(memory + (stage - stages) + REACHES_AT);
#pragma unroll
        for (uint d = 0; d < KEPT * 2; d++)
#pragma unroll
            for (uint n = 0; n < GROUP_LANES / 8; n += 2) {
                uint b[4];
                load_matrices(b, stage + d / 2 * (GROUP_LANES * SEARCH_BLOCK) +
                                     place(n * 8 + frag_lane, d % 2 * 2 + frag_quarter));
#pragma unroll
                for (uint i = 0; i < 2 * ROW_PARTS; i++) {
                    const uint m = i / 2, h = i % 2;
                    if (d == 0)
                        multiply_first_codes(sum[m][n + h], a[d][m], b[h * 2], b[h * 2 + 1]);
                    else
                        multiply_codes(sum[m][n + h], a[d][m], b[h * 2], b[h * 2 + 1]);
                }
            }
        stage = NEXT_STAGE(stage);
#else
    const uint frag_row = warp_row + (lane & 15), frag_half = lane >> 4;
    for (uint done = 0, panel = first_lane; done < lanes; done += SEARCH_PANEL, panel += SEARCH_PANEL) {
        panel -= panel >= all_lanes ? all_lanes : 0;
        const float4 bound = spans[(panel + warp_lane) / SEARCH_SPAN];
        const float2 side = both ? sides[(panel + warp_lane) / SEARCH_SPAN] : (float2)(0.0f, INFINITY);
        __global const float4 *lane_facts = facts + panel + warp_lane;
        __global const float *lane_reaches = reaches + panel + warp_lane;
        LIST_IF_MANY(done / SEARCH_PANEL % 2)
        for (uint block = 0; block < blocks; block++) {
            __asm__ volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
            barrier(CLK_LOCAL_MEM_FENCE);
            BRING()
            COMMIT();
#pragma unroll
            for (uint d = 0; d < 2; d++) {
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
                            multiply_first_codes(sum[m][n], a[m], b[n >> 1][(n & 1) * 2],
                                                 b[n >> 1][(n & 1) * 2 + 1]);
                } else {
#pragma unroll
                    for (uint m = 0; m < 4; m++)
#pragma unroll
                        for (uint n = 0; n < 8; n++)
                            multiply_codes(sum[m][n], a[m], b[n >> 1][(n & 1) * 2],
                                           b[n >> 1][(n & 1) * 2 + 1]);
                }
            }
            stage = NEXT_STAGE(stage);
        }
#endif
        uint rows_in_doubt = 0;
#pragma unroll
        for (uint i = 0; i < GROUP_ROWS_EACH; i++) {
            int largest = 0;
#pragma unroll
            for (uint n = 0; n < GROUP_LANES / 8; n++)
                largest = max(largest, max(sum[i / 2][n][i % 2 * 2], sum[i / 2][n][i % 2 * 2 + 1]));
            const float p = (float)largest * (scale[i] * bound.x);
            if (p + fma(reach[i], bound.y, bound.z) >= least[i] ||
                p + fma(side.x, error[i], start[i]) >= side.y)
                rows_in_doubt |= 1u << i;
        }
        if (rows_in_doubt == 0)
            continue;
#pragma unroll
        for (uint i = 0; i < GROUP_ROWS_EACH; i++) {
            if (!(rows_in_doubt >> i & 1))
                continue;
            const uint slot = first + warp_row + row_in_warp(i, lane);
            uint hits = 0; /* of the row; of its lanes from bit GROUP_LANES / 4 on */
#pragma unroll
            for (uint n = 0; n < GROUP_LANES / 8; n++)
#pragma unroll
                for (uint e = 0; e < 2; e++) {
                    const uint place_in_group = n * 8 + (lane & 3) * 2 + e;
                    const float4 of_lane = lane_facts[place_in_group];
                    const float p = (float)sum[i / 2][n][i % 2 * 2 + e] * (scale[i] * of_lane.x);
                    if (p + fma(reach[i], of_lane.y, of_lane.w) >= least[i])
                        hits |= 1u << (n * 2 + e);
                    if (!both)
                        continue;
                    const float back = lane_reaches[place_in_group];
                    if (p + fma(2 * back, error[i], start[i]) >=
                        of_lane.z - back * back - SEARCH_SLACK_LEAST)
                        hits |= 1u << (GROUP_LANES / 4 + n * 2 + e);
                }
            for (; hits > 0; hits &= hits - 1) {
                const uint hit = 31 - clz(hits & -hits), code = hit % (GROUP_LANES / 4);
                int product = 0;
#pragma unroll
                for (uint n = 0; n < GROUP_LANES / 8; n++)
#pragma unroll
                    for (uint e = 0; e < 2; e++)
                        product = code == n * 2 + e ? sum[i / 2][n][i % 2 * 2 + e] : product;
                const uint position = panel + warp_lane + lane_in_span(code, lane);
                if (position == own[i])
                    continue;
                const bool for_row = hit == code;
                queue_pair(&queue, counts, found, capacity, for_row ? slot : position,
                           for_row ? position : slot, product);
            }
        }
    }
    __asm__ volatile("cp.async.wait_group 0;");
    barrier(CLK_LOCAL_MEM_FENCE);
    list_queue(&queue, counts, found, capacity, lid);
#endif
}

/* --- lists ------------------------------------------------------------------------------------ */

/* Upper bound on the distance of a listed pair, in the codes' unit. */
static float longest(float4 of_query, float4 of_lane, float p)
{
    if (of_query.y >= SEARCH_FAR || of_lane.y >= SEARCH_FAR)
        return INFINITY;
    const float squares = (of_query.z + of_lane.z) * (1 + 4 * SEARCH_SLACK);
    const float square = fmax(squares - p + SEARCH_SLACK_LEAST, 0.0f);
    return (sqrt(square) + of_query.y + of_lane.y) * (1 + 2 * SEARCH_SLACK);
}

/* A work-group per row: its reach becomes the n-th smallest of the upper bounds of the listed
 * pairs, or slightly more, and pairs out of reach leave the list. lost[slot]: more pairs were found
 * than fit. */
__kernel __attribute__((reqd_work_group_size(SEARCH_SHRINK_ITEMS, 1, 1))) void
shrink_lists(__global const float4 *query_facts, __global float *reaches,
             __global const uint *query_list, __global const float4 *facts, __global uint *counts,
             __global uint2 *found, __global uint *lost, uint capacity, uint n)
{
    __local uint lengths[SEARCH_LIST_MOST];
    __local uint2 pairs[SEARCH_LIST_MOST];
    __local uint below, kept;
    const uint lid = (uint)get_local_id(0), slot = (uint)get_group_id(0);
    const uint query = query_list[slot], all = counts[slot], count = min(all, capacity);
    const float4 of_query = query_facts[query];
    float reach = reaches[query];
    found += (size_t)slot * capacity;
    for (uint i = lid; i < count; i += SEARCH_SHRINK_ITEMS) {
        const uint2 pair = found[i];
        pairs[i] = pair;
        const float4 of_lane = facts[pair.x];
        lengths[i] = as_uint(
            longest(of_query, of_lane, scaled((int)pair.y, of_query.x, of_lane.x)));
    }
    if (lid == 0)
        kept = 0;
    uint low = 0, high = as_uint(INFINITY);
    for (uint step = 0; step < 20 && count >= n; step++) {
        const uint middle = low + (high - low) / 2;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid == 0)
            below = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        uint mine = 0;
        for (uint i = lid; i < count; i += SEARCH_SHRINK_ITEMS)
            mine += lengths[i] <= middle;
        if (mine > 0)
            atomic_add(&below, mine);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (below >= n)
            high = middle;
        else
            low = middle + 1;
    }
    /* All have read before anything is overwritten. */
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const float length = as_float(high);
    if (count >= n && length < SEARCH_FAR)
        reach = fmin(reach, (length + of_query.y) * (1 + 2 * SEARCH_SLACK));
    const float least = of_query.z - reach * reach - SEARCH_SLACK_LEAST;
    for (uint i = lid; i < count; i += SEARCH_SHRINK_ITEMS) {
        const float4 of_lane = facts[pairs[i].x];
        if (scaled((int)pairs[i].y, of_query.x, of_lane.x) +
                (2 * reach * of_lane.y + of_lane.w) >=
            least)
            found[atomic_inc(&kept)] = pairs[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid > 0)
        return;
    counts[slot] = kept;
    reaches[query] = reach;
    if (all > capacity)
        lost[slot] = 1;
}

static bool before(double a, uint row_a, double b, uint row_b)
{
    return a < b || (a == b && row_a < row_b);
}

/* A work-group per row: the canonical distances of its list; keeps the n smallest of these and of
 * those so far in `squared` and `rows`, in order, and empties the list. */
__kernel __attribute__((reqd_work_group_size(SEARCH_EXACT_ITEMS, 1, 1))) void
decide_lists(__global const float *query_values, __global const uint *query_ids, uint query_first,
             __global const float4 *query_facts, __global float *reaches,
             __global const uint *query_list, __global const float *values,
             __global const uint *ids, uint block_first, __global uint *counts,
             __global const uint2 *found, __global double *squared, __global uint *rows, uint stride,
             uint capacity, uint n, double unit)
{
    __local double distances[SEARCH_LIST_MOST + SEARCH_N_MOST];
    __local uint candidates[SEARCH_LIST_MOST + SEARCH_N_MOST];
    __local double lanes[SEARCH_EXACT_ITEMS];
    const uint lid = (uint)get_local_id(0), slot = (uint)get_group_id(0);
    const uint lane = lid % KMEANS_LANES, share = lid / KMEANS_LANES;
    const uint query = query_list[slot], count = min(counts[slot], capacity);
    __global const float *x = query_values + (size_t)(query_ids[query] - query_first) * stride;
    found += (size_t)slot * capacity;
    squared += (size_t)slot * n;
    rows += (size_t)slot * n;
    for (uint i = lid; i < n; i += SEARCH_EXACT_ITEMS) {
        distances[i] = squared[i];
        candidates[i] = rows[i];
    }
    for (uint i = 0; i < count; i += SEARCH_EXACT_ITEMS / KMEANS_LANES) {
        const uint at = i + share;
        double sum = 0;
        uint row = 0;
        if (at < count) {
            row = ids[found[at].x];
            __global const float *y = values + (size_t)(row - block_first) * stride;
            for (uint j = lane; j < stride; j += KMEANS_LANES) {
                const double t = (double)x[j] - (double)y[j];
                sum = fma(t, t, sum);
            }
        }
        fold_lanes(lanes, sum, lid);
        if (lane == 0 && at < count) {
            distances[n + at] = lanes[lid];
            candidates[n + at] = row;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (uint i = lid; i < n + count; i += SEARCH_EXACT_ITEMS) {
        const double mine = distances[i];
        const uint row = candidates[i];
        uint rank = 0;
        /* Places without a row, all alike, stay at the end in their order. */
        for (uint other = 0; other < n + count && rank < n; other++)
            rank += before(distances[other], candidates[other], mine, row) ||
                    (row == SEARCH_NONE && candidates[other] == SEARCH_NONE && other < i);
        if (rank >= n)
            continue;
        squared[rank] = mine;
        rows[rank] = row;
        if (rank == n - 1 && row != SEARCH_NONE) {
            const double length = sqrt(mine) * unit;
            if (length < SEARCH_FAR)
                reaches[query] =
                    fmin(reaches[query], convert_float_rtp((length + (double)query_facts[query].y) *
                                                           (1 + (double)SEARCH_SLACK)));
        }
    }
    if (lid == 0)
        counts[slot] = 0;
}
