/* kmeans_exact.cl: the canonical distance and the decisions based on it, on devices with float64.
 * pipeline/kmeans/canonical.c gives the same bits.
 *
 * -D GROUP=n      work-items of a group (1 on CPUs, where a work-item's vectors do the work)
 * -D SPAN=1|16    lanes of a panel that a work-item scores at once
 * -D NVIDIA       the compiler takes PTX
 *
 * The filter's options are arguments here: these kernels process few rows, and each variant takes
 * seconds to build. */
#include "kmeans.h"
#include "kmeans_half.h"

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF

#if !defined(GROUP) || !defined(SPAN)
#error "GROUP and SPAN must be given"
#endif

#if SPAN == 16
typedef float16 span;
#define LOAD_SPAN(p)     vload16(0, (p))
#define STORE_SPAN(v, p) vstore16((v), 0, (p))
#elif SPAN == 1
typedef float span;
#define LOAD_SPAN(p)     (*(p))
#define STORE_SPAN(v, p) (*(p) = (v))
#else
#error "SPAN is 1 or 16"
#endif

/* Independent chains, to hide latency. */
#define CHAINS 8

static double canonical(__global const float *x, __global const float *c,
                        uint stride)
{
    double16 sum = (double16)(0.0);
    for (uint j = 0; j < stride; j += KMEANS_LANES) {
        double16 t = convert_double16(vload16(0, x + j)) - convert_double16(vload16(0, c + j));
        sum = fma(t, t, sum);
    }
    /* Goes through memory: Oclgrind's check for uninitialised values fails on halved vectors. */
    double lane[KMEANS_LANES];
    vstore16(sum, 0, lane);
#pragma unroll
    for (int reach = KMEANS_LANES / 2; reach > 0; reach /= 2)
#pragma unroll
        for (int l = 0; l < reach; l++)
            lane[l] += lane[l + reach];
    return lane[0];
}

/* Scores a row against SPAN lanes like the filter, in another order, which the bound allows for. */
static span lane_scores(__global const float *row, float norm,
                        __global const float *centre, __global const float *lanes, uint width,
                        uint columns)
{
    span score = LOAD_SPAN(lanes);
    score = fma((span)(norm), LOAD_SPAN(lanes + (size_t)(columns + 1) * width), score);
    __global const float *factor = lanes + width;
    for (uint from = 0; from < columns; from += KMEANS_FILTER_COLUMNS) {
        const uint to = min(columns, from + KMEANS_FILTER_COLUMNS);
        span sum[CHAINS];
#pragma unroll
        for (int i = 0; i < CHAINS; i++)
            sum[i] = (span)(0.0f);
        /* Rows are zero-padded but panels are not: the tail goes one column at a time. */
        uint j = from;
        for (; j + CHAINS <= to; j += CHAINS)
#pragma unroll
            for (int i = 0; i < CHAINS; i++, factor += width) {
                float value = row[j + i] - centre[j + i];
                sum[i] = fma((span)(value), LOAD_SPAN(factor), sum[i]);
            }
        for (; j < to; j++, factor += width) {
            float value = row[j] - centre[j];
            sum[0] = fma((span)(value), LOAD_SPAN(factor), sum[0]);
        }
#pragma unroll
        for (int reach = CHAINS / 2; reach > 0; reach /= 2)
            for (int i = 0; i < reach; i++)
                sum[i] += sum[i + reach];
        score += sum[0];
    }
    return score;
}

/* Decides the rows that the filter left undecided, a group per row: evaluates every centroid whose
 * score does not exceed the row's limit; ties go to the lowest index. Such a row gets no bounds. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
assign_exact(__global const float *restrict x, __global const float *restrict panels,
             __global const int *restrict ids, __global const float *restrict centroids,
             __global const float *restrict norms, __global const float *restrict centre,
             __global const uint *restrict rows, __global int *labels, __global float *upper_bounds,
             __global const float *restrict upper, uint stride, uint columns, uint panel_count,
             uint width)
{
    __local double nearest[GROUP];
    __local int nearest_id[GROUP];
    const uint lid = (uint)get_local_id(0);
    const uint at = rows[get_group_id(0)];
    __global const float *row = x + (size_t)at * stride;
    const float norm = norms[at], limit = upper[at];
    double best = INFINITY;
    int best_id = INT_MAX;
    for (uint q = 0; q < panel_count; q++)
        for (uint l = lid * SPAN; l < width; l += GROUP * SPAN) {
            float t[SPAN];
            STORE_SPAN(lane_scores(row, norm, centre,
                                   panels + (size_t)q * (columns + 2) * width + l, width,
                                   columns),
                       t);
            for (uint i = 0; i < SPAN; i++) {
                int id = ids[q * width + l + i];
                if (t[i] > limit || id < 0)
                    continue;
                double distance = canonical(row, centroids + (size_t)id * stride, stride);
                if (distance < best || (distance == best && id < best_id)) {
                    best = distance;
                    best_id = id;
                }
            }
        }
    nearest[lid] = best;
    nearest_id[lid] = best_id;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid != 0)
        return;
    for (uint i = 1; i < GROUP; i++)
        if (nearest[i] < best || (nearest[i] == best && nearest_id[i] < best_id)) {
            best = nearest[i];
            best_id = nearest_id[i];
        }
    labels[at] = best_id;
    upper_bounds[at] = INFINITY;
}

#if GROUP > 1
#include "kmeans_lanes.h"

/* canonical() by KMEANS_LANES work-items; lanes[lid] of the first one becomes the distance. Every
 * work-item of the group calls it: those without a row repeat the last one. */
static void lane_distance(__local double *lanes, __global const float *x, __global const float *c,
                          uint stride, uint lid)
{
    fold_lanes(lanes, lane_sum(x, c, stride, lid % KMEANS_LANES), lid);
}
#endif

/* The canonical distance of each row to its centroid: a work-item per row on CPUs, per lane of a
 * row on GPUs, so that neighbours read neighbouring columns. */
#if GROUP == 1
__kernel void label_distances(__global const float *restrict x,
                              __global const float *restrict centroids,
                              __global const int *restrict labels, __global double *distances,
                              uint count, uint stride)
{
    const uint i = (uint)get_global_id(0);
    if (i < count)
        distances[i] =
            canonical(x + (size_t)i * stride, centroids + (size_t)labels[i] * stride, stride);
}
#else
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
label_distances(__global const float *restrict x, __global const float *restrict centroids,
                __global const int *restrict labels, __global double *distances, uint count,
                uint stride)
{
    __local double lanes[GROUP];
    const uint lid = (uint)get_local_id(0), lane = lid % KMEANS_LANES;
    const uint i = (uint)get_group_id(0) * (GROUP / KMEANS_LANES) + lid / KMEANS_LANES;
    const uint at = min(i, count - 1);
    lane_distance(lanes, x + (size_t)at * stride, centroids + (size_t)labels[at] * stride, stride,
                  lid);
    if (lane == 0 && i < count)
        distances[i] = lanes[lid];
}
#endif

/* The canonical distance of each row to the nearest centroid other than its own. */
#if GROUP == 1
__kernel void other_distances(__global const float *restrict x,
                              __global const float *restrict centroids,
                              __global const int *restrict labels, __global double *distances,
                              uint count, uint stride, uint k)
{
    const uint i = (uint)get_global_id(0);
    if (i < count) {
        double nearest = INFINITY;
        for (uint c = 0; c < k; c++)
            if (c != (uint)labels[i])
                nearest = fmin(nearest, canonical(x + (size_t)i * stride,
                                                  centroids + (size_t)c * stride, stride));
        distances[i] = nearest;
    }
}
#else
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
other_distances(__global const float *restrict x, __global const float *restrict centroids,
                __global const int *restrict labels, __global double *distances, uint count,
                uint stride, uint k)
{
    __local double lanes[GROUP];
    const uint lid = (uint)get_local_id(0), lane = lid % KMEANS_LANES;
    const uint i = (uint)get_group_id(0) * (GROUP / KMEANS_LANES) + lid / KMEANS_LANES;
    const uint at = min(i, count - 1), own = (uint)labels[at];
    __global const float *row = x + (size_t)at * stride;
    double nearest = INFINITY;
    for (uint c = 0; c < k; c++) {
        lane_distance(lanes, row, centroids + (size_t)c * stride, stride, lid);
        if (lane == 0 && c != own)
            nearest = fmin(nearest, lanes[lid]);
    }
    if (lane == 0 && i < count)
        distances[i] = nearest;
}
#endif

/* --- seeding --------------------------------------------------------------------------------- */

/* Rows of a block whose distances a group computes at once, and the work-item's lane of its row. */
#if GROUP == 1
#define AT_ONCE      1
#define LANE_OF(lid) ((lid) % 1u)
#define NEXT(count)  ((*(count))++)
#define CLEAR(at, b) (*(at) &= ~(b))
#else
#define AT_ONCE      (GROUP / KMEANS_LANES)
#define LANE_OF(lid) ((lid) % KMEANS_LANES)
#define NEXT(count)  atomic_inc(count)
#define CLEAR(at, b) atomic_and((at), ~(b))
#endif

/* canonical(), for every work-item that shares the row. */
static double shared_distance(__local double *lanes, __global const float *x,
                              __global const float *c, uint stride, uint lid)
{
#if GROUP == 1
    (void)lanes;
    (void)lid;
    return canonical(x, c, stride);
#else
    lane_distance(lanes, x, c, stride, lid);
    const double distance = lanes[lid - LANE_OF(lid)];
    barrier(CLK_LOCAL_MEM_FENCE);
    return distance;
#endif
}

/* The pairwise sums of TOGETHER blocks: value[c * KMEANS_BLOCK_ROWS] becomes that of block c, to
 * which EACH work-items belong. */
#define TOGETHER KMEANS_TOGETHER
#define EACH     (GROUP == 1 ? 1 : GROUP / TOGETHER)

static void sum_blocks(__local double *value, uint lid)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint reach = KMEANS_BLOCK_ROWS / 2; reach > 0; reach /= 2) {
        for (uint c = lid / EACH; c < TOGETHER; c += GROUP / EACH)
            for (uint i = lid % EACH; i < reach; i += EACH)
                value[c * KMEANS_BLOCK_ROWS + i] += value[c * KMEANS_BLOCK_ROWS + i + reach];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* The rows of a seeding, and the local memory of a group that works on a block of them. */
struct seed_rows {
    __global const float *x, *candidates;
    __global const double *weights; /* used if weighted */
    uint stride, weighted;
};
struct seed_room {
    __local double *value, *lanes; /* TOGETHER * KMEANS_BLOCK_ROWS; GROUP */
    __local ushort *listed;        /* TOGETHER * KMEANS_BLOCK_ROWS */
    __local uint *bits, *found;    /* KMEANS_BLOCK_ROWS: of each row, the candidates that may be nearer */
};

/* For TOGETHER candidates from `from` on, of which candidate c is row place[c] of rows->candidates: room.value
 * [c * KMEANS_BLOCK_ROWS] becomes the sum of weight[i] * min(distances[i], distance to the candidate) over the
 * block. Clears bits where the candidate is not nearer. */
static void evaluate_block(const struct seed_rows *rows, const struct seed_room room,
                           __global const double *distances, __local const uint *place, uint from,
                           uint first, uint count, uint lid)
{
    __local double *value = room.value;
    if (lid == 0)
        *room.found = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lid; i < KMEANS_BLOCK_ROWS; i += GROUP) {
        const double now = i < count ? distances[first + i] : 0.0;
        for (uint c = 0; c < TOGETHER; c++) {
            value[c * KMEANS_BLOCK_ROWS + i] = now;
            if (room.bits[i] >> (from + c) & 1)
                room.listed[NEXT(room.found)] = (ushort)(c * KMEANS_BLOCK_ROWS + i);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint total = *room.found;
    for (uint begin = 0; begin < total; begin += AT_ONCE) {
        const uint at = begin + lid * AT_ONCE / GROUP, entry = room.listed[min(at, total - 1)];
        const uint i = entry % KMEANS_BLOCK_ROWS, trial = from + entry / KMEANS_BLOCK_ROWS;
        const double other = shared_distance(
            room.lanes, rows->x + (size_t)(first + i) * rows->stride,
            rows->candidates + (size_t)place[trial] * rows->stride, rows->stride, lid);
        if (at < total && LANE_OF(lid) == 0) {
            if (other < value[entry])
                value[entry] = other;
            else
                CLEAR(&room.bits[i], 1u << trial);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lid; i < count && rows->weighted; i += GROUP)
        for (uint c = 0; c < TOGETHER; c++)
            value[c * KMEANS_BLOCK_ROWS + i] *= rows->weights[first + i];
    sum_blocks(value, lid);
}

/* Lists the rows of a block that candidate `taken` is nearer to, or all. */
static uint list_block(const struct seed_room room, uint taken, bool all, uint count, uint lid)
{
    if (lid == 0)
        *room.found = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lid; i < count; i += GROUP)
        if (all || (room.bits[i] >> taken & 1))
            room.listed[NEXT(room.found)] = (ushort)i;
    barrier(CLK_LOCAL_MEM_FENCE);
    return *room.found;
}

/* The rows of a list that a candidate is nearer to get its distance, and the threshold that the filter's scores
 * are compared with. */
static void commit_block(const struct seed_room room, __global const float *x, __global const float *seed,
                         __global const float *centre, __global double *distances,
                         __global float *thresholds, uint first, uint total, uint stride, bool all,
                         double scale, uint lid)
{
    for (uint from = 0; from < total; from += AT_ONCE) {
        const uint at = from + lid * AT_ONCE / GROUP, i = first + room.listed[min(at, total - 1)];
        __global const float *row = x + (size_t)i * stride;
        const double distance = shared_distance(room.lanes, row, seed, stride, lid);
        const double length = shared_distance(room.lanes, row, centre, stride, lid);
        if (at < total && LANE_OF(lid) == 0 && (all || distance < distances[i])) {
            distances[i] = distance;
            thresholds[i] = convert_float_rtp(
                scale * (distance * (1 + 0x1p-30) - length * (1 - 0x1p-30)) + 0x1p-100);
        }
    }
}

/* Takes candidate `trial`: rows that it is nearer to (all rows, if all) get its distance and threshold. A group
 * per block. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
seed_commit(__global const float *restrict x, __global const float *restrict candidates,
            __global const uint *restrict mask, __global const float *restrict centre,
            __global double *distances, __global float *thresholds, uint count, uint stride,
            uint trial, uint all, double scale)
{
    __local double lanes[GROUP];
    __local uint bits[KMEANS_BLOCK_ROWS], found;
    __local ushort listed[KMEANS_BLOCK_ROWS];
    const struct seed_room room = {0, lanes, listed, bits, &found};
    const uint lid = (uint)get_local_id(0);
    const uint first = (uint)get_group_id(0) * KMEANS_BLOCK_ROWS;
    const uint rows = min(count - first, (uint)KMEANS_BLOCK_ROWS);
    for (uint i = lid; i < rows && !all; i += GROUP)
        bits[i] = mask[first + i];
    const uint total = list_block(room, trial, all, rows, lid);
    commit_block(room, x, candidates + (size_t)trial * stride, centre, distances, thresholds, first,
                 total, stride, all, scale, lid);
}

#if GROUP > 1
/* What a work-item has written is visible to others that see a later atomic operation of its group:
 * by this instruction, on NVIDIA's devices with tensor cores. OpenCL 1.2 has nothing that orders
 * writes for other work-groups, not even mem_fence; that is used only by tests, which may choose
 * these kernels on CPUs. */
#ifdef NVIDIA
#define PUBLISH() __asm__ volatile("membar.gl;" ::: "memory")
#else
#define PUBLISH() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

/* The sums of blocks that a work-item loads ahead. */
#define AHEAD 8

/* One group: adds the blocks' sums in order, `upto` being the running ones, and chooses the candidate that
 * leaves the least, ties to the first, as the next centroid. totals: what it leaves. part: GROUP * AHEAD. */
static void fold_blocks(__local double *part, __local double *left, __local uint *best,
                        __global const double *sums, __global double *upto,
                        __global const float *candidates, __global float *centroids,
                        __global uint *state, __global double *totals, uint blocks, uint stride,
                        uint trials, uint lid)
{
    const size_t all = (size_t)blocks * KMEANS_TRIALS_MAX;
    const uint seed = state[KMEANS_SEEDS];
    const bool used = lid % KMEANS_TRIALS_MAX < trials;
    double next[AHEAD], total = 0.0;
#pragma unroll
    for (uint e = 0; e < AHEAD; e++)
        next[e] = used && e * GROUP + lid < all ? sums[e * GROUP + lid] : 0.0;
    for (size_t from = 0; from < all; from += GROUP * AHEAD) {
#pragma unroll
        for (uint e = 0; e < AHEAD; e++)
            part[e * GROUP + lid] = next[e];
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint e = 0; e < AHEAD; e++) {
            const size_t at = from + (AHEAD + e) * GROUP + lid;
            next[e] = used && at < all ? sums[at] : 0.0;
        }
        for (uint i = lid; i < GROUP * AHEAD && lid < KMEANS_TRIALS_MAX; i += GROUP) {
            double each[GROUP / KMEANS_TRIALS_MAX];
#pragma unroll
            for (uint e = 0; e < GROUP / KMEANS_TRIALS_MAX; e++)
                each[e] = part[i + e * KMEANS_TRIALS_MAX];
#pragma unroll
            for (uint e = 0; e < GROUP / KMEANS_TRIALS_MAX; e++)
                part[i + e * KMEANS_TRIALS_MAX] = total += each[e];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint e = 0; e < AHEAD; e++)
            if (from + e * GROUP + lid < all)
                upto[from + e * GROUP + lid] = part[e * GROUP + lid];
    }
    if (lid < trials)
        left[lid] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0) {
        *best = 0;
        for (uint t = 1; t < trials; t++)
            *best = left[t] < left[*best] ? t : *best;
        state[KMEANS_CHOSEN] = *best;
        state[KMEANS_SEEDS] = seed + 1;
        state[KMEANS_DONE] = 0;
        totals[seed % KMEANS_SEED_BATCH] = left[*best];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint j = lid; j < stride; j += GROUP)
        centroids[(size_t)seed * stride + j] = candidates[(size_t)*best * stride + j];
}
#endif

/* For each block of rows and each candidate, the sum of weights if that candidate were chosen:
 * weight[i] * min(distances[i], distance to the candidate). Clears bits of `mask` where the
 * candidate is not nearer. A group per block and KMEANS_TOGETHER candidates; first_block: where in
 * `sums` the first block is.
 *
 * groups: 0, or the groups of all launches of this round (one for each tile): the last one to end
 * folds the sums of all blocks (fold_blocks). */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
seed_exact(__global const float *x, __global const float *candidates, __global uint *mask,
           __global const double *distances, __global const double *weights, __global double *sums,
           __global double *upto, __global float *centroids, __global uint *state,
           __global double *totals, uint first_block, uint count, uint stride, uint trials,
           uint weighted, uint groups, uint blocks)
{
    __local double value[TOGETHER * KMEANS_BLOCK_ROWS], lanes[GROUP];
    __local uint bits[KMEANS_BLOCK_ROWS], found, place[KMEANS_TRIALS_MAX];
    __local ushort listed[TOGETHER * KMEANS_BLOCK_ROWS];
    const struct seed_rows all = {x, candidates, weights, stride, weighted};
    const struct seed_room room = {value, lanes, listed, bits, &found};
    const uint lid = (uint)get_local_id(0), passes = (trials + TOGETHER - 1) / TOGETHER;
    const uint block = (uint)get_group_id(0) / passes;
    const uint from = (uint)get_group_id(0) % passes * TOGETHER, own = 0xffu << from;
    const uint first = block * KMEANS_BLOCK_ROWS;
    const uint rows = min(count - first, (uint)KMEANS_BLOCK_ROWS);
    for (uint i = lid; i < KMEANS_BLOCK_ROWS; i += GROUP)
        bits[i] = i < rows ? mask[first + i] & own : 0;
    for (uint t = lid; t < KMEANS_TRIALS_MAX; t += GROUP)
        place[t] = t;
    evaluate_block(&all, room, distances, place, from, first, rows, lid);
    for (uint c = lid; c < TOGETHER && from + c < trials; c += GROUP)
        sums[(first_block + block) * KMEANS_TRIALS_MAX + from + c] = value[c * KMEANS_BLOCK_ROWS];
    /* Other groups clear the bits of other candidates. */
    for (uint i = lid; i < rows; i += GROUP)
        if ((mask[first + i] & own) != bits[i])
            atomic_and(mask + first + i, ~own | bits[i]);
#if GROUP > 1
    __local double left[KMEANS_TRIALS_MAX];
    __local uint best;
    if (groups == 0)
        return;
    PUBLISH();
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (lid == 0)
        found = atomic_inc(state + KMEANS_DONE) + 1;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    PUBLISH();
    if (found == groups)
        fold_blocks(value, left, &best, sums, upto, candidates, centroids, state, totals, blocks,
                    stride, trials, lid);
#endif
}

#if GROUP > 1
/* The first of `blocks` blocks up to which the sum exceeds the target; if rounding left none, the last one that
 * adds anything. below: blocks that do not exceed it; each: values from one block to the next. */
static uint block_of_target(__global const double *reached, uint below, uint blocks, uint each)
{
    uint block = min(below, blocks - 1);
    while (block > 0 && !(reached[(size_t)block * each] > reached[(size_t)(block - 1) * each]))
        block--;
    return block;
}

/* Values that row_of_target has in flight. */
#define AT_A_TIME 16

/* The row of a block, whose weighted distances are given, with which the sum exceeds the target. */
static uint row_of_target(__local const double *value, double sum, double target, uint rows)
{
    uint drawn = 0;
    bool reached = false;
    for (uint from = 0; from < rows && !reached; from += AT_A_TIME) {
        double each[AT_A_TIME];
#pragma unroll
        for (uint e = 0; e < AT_A_TIME; e++)
            each[e] = from + e < rows ? value[from + e] : 0.0;
#pragma unroll
        for (uint e = 0; e < AT_A_TIME; e++) {
            sum += each[e];
            drawn = each[e] > 0.0 && !reached ? from + e : drawn;
            reached = reached || (each[e] > 0.0 && sum > target);
        }
    }
    return drawn;
}

/* Between two rounds: rows get the distance to the centroid that the last one chose, a group per block of the
 * tile, and the candidates of the next are drawn, each with probability proportional to weighted distance, if
 * they lie in the tile, and laid out (lane_start), by the first `trials` groups. first_block: the tile's first;
 * blocks: of all tiles; random: KMEANS_TRIALS_MAX for each round, in [0, 1).
 *
 * A group that draws needs the distances of a block that another group writes: it computes the ones
 * that change itself, those of the rows that the chosen candidate is nearer to (only these have its
 * bit). */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
seed_take(__global const float *restrict x, __global const float *restrict centroids,
          __global const uint *restrict mask, __global const float *restrict centre,
          __global const uint *restrict state, __global const double *restrict upto,
          __global const double *restrict random, __global const double *weights,
          __global double *distances, __global float *thresholds, __global float *candidates,
          __global half *rounded, __global float2 *starts, uint blocks, uint first_block,
          uint count, uint stride, uint columns, uint trials, uint weighted, double scale,
          struct kmeans_half_terms terms)
{
    __local double value[KMEANS_BLOCK_ROWS], lanes[GROUP];
    __local uint bits[KMEANS_BLOCK_ROWS], found;
    __local ushort listed[KMEANS_BLOCK_ROWS];
    const struct seed_room room = {value, lanes, listed, bits, &found};
    const uint lid = (uint)get_local_id(0), trial = (uint)get_group_id(0);
    const uint seeds = state[KMEANS_SEEDS], chosen = state[KMEANS_CHOSEN];
    const bool draws = trial < trials, none = chosen == KMEANS_NONE;
    __global const double *reached = upto + (none ? 0 : chosen);
    __global const float *seed = centroids + (size_t)(seeds - 1) * stride;
    uint block = trial - trials;
    double target = 0.0;
    if (draws) {
        uint below = 0;
        target = random[seeds % KMEANS_SEED_BATCH * KMEANS_TRIALS_MAX + trial] *
                 reached[(size_t)(blocks - 1) * KMEANS_TRIALS_MAX];
        if (lid == 0)
            found = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint b = lid; b < blocks; b += GROUP)
            below += !(reached[(size_t)b * KMEANS_TRIALS_MAX] > target);
        atomic_add(&found, below);
        barrier(CLK_LOCAL_MEM_FENCE);
        block = block_of_target(reached, found, blocks, KMEANS_TRIALS_MAX);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (block < first_block || ((size_t)block - first_block) * KMEANS_BLOCK_ROWS >= count)
            return;
        block -= first_block;
    }
    const uint first = block * KMEANS_BLOCK_ROWS, taken = none ? 0 : chosen;
    const uint rows = min(count - first, (uint)KMEANS_BLOCK_ROWS);
    for (uint i = lid; i < rows; i += GROUP)
        bits[i] = none ? 0 : mask[first + i];
    const uint total = list_block(room, taken, false, rows, lid);
    if (!draws) {
        commit_block(room, x, seed, centre, distances, thresholds, first, total, stride, true, scale,
                     lid);
        return;
    }
    for (uint i = lid; i < KMEANS_BLOCK_ROWS; i += GROUP)
        if (i < rows && !(bits[i] >> taken & 1))
            value[i] = distances[first + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint from = 0; from < total; from += AT_ONCE) {
        const uint at = from + lid * AT_ONCE / GROUP, i = listed[min(at, total - 1)];
        const double distance =
            shared_distance(lanes, x + (size_t)(first + i) * stride, seed, stride, lid);
        if (at < total && LANE_OF(lid) == 0)
            value[i] = distance;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lid; i < rows && weighted; i += GROUP)
        value[i] *= weights[first + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0) {
        block += first_block;
        found = row_of_target(
            value, block > 0 ? reached[(size_t)(block - 1) * KMEANS_TRIALS_MAX] : 0.0, target, rows);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __global const float *row = x + (size_t)(first + found) * stride;
    double square = 0.0;
    for (uint j = lid; j < stride; j += GROUP) {
        const double shifted = (double)row[j] - (double)centre[j];
        candidates[(size_t)trial * stride + j] = row[j];
        square += shifted * shifted;
    }
    float8 sum = (float8)(0.0f), lost = (float8)(0.0f);
    for (uint j = lid * 8; j < columns; j += GROUP * 8)
        round_values(scaled_values(row, centre, stride, j, terms.scale, terms.scale_again),
                     rounded + (size_t)trial * columns + j, &sum, &lost);
    lanes[lid] = square;
    value[lid] = sum_of(lost);
    for (uint reach = GROUP / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < reach) {
            lanes[lid] += lanes[lid + reach];
            value[lid] += value[lid + reach];
        }
    }
    if (lid == 0)
        starts[trial] = lane_start(lanes[0], 0.0, (float)value[0], terms, 0, 0);
}

/* Rows that KMEANS_LANES work-items score at a time, and how many a group does. */
#define SCORED_EACH 4
#define SCORED      (SCORED_EACH * AT_ONCE)

/* room.bits of a block's rows: the candidates, rows place[] of rows->candidates, that may be nearer
 * than distances[]: all but those whose squared distance in float32, which is too large by less
 * than 2^-11 of itself for a stride up to KMEANS_PART_STRIDE, is at least that. A distance that
 * overflows or is near the smallest numbers proves nothing. */
static void mark_block(const struct seed_rows *rows, const struct seed_room room,
                       __global const double *distances, __local const uint *place, uint trials,
                       uint first, uint count, uint lid)
{
    __local float *score = (__local float *)room.value; /* SCORED_EACH * TOGETHER * GROUP */
    const uint lane = lid % KMEANS_LANES, stride = rows->stride;
    for (uint i = lid; i < KMEANS_BLOCK_ROWS; i += GROUP)
        room.bits[i] = 0;
    for (uint at = 0; at < count; at += SCORED)
        for (uint from = 0; from < trials; from += TOGETHER) {
            float sum[SCORED_EACH][TOGETHER];
#pragma unroll
            for (uint r = 0; r < SCORED_EACH; r++)
#pragma unroll
                for (uint c = 0; c < TOGETHER; c++)
                    sum[r][c] = 0.0f;
            for (uint j = 4 * lane; j < stride; j += 4 * KMEANS_LANES) {
                float4 value[SCORED_EACH];
#pragma unroll
                for (uint r = 0; r < SCORED_EACH; r++) {
                    const uint i = min(at + r * AT_ONCE + lid / KMEANS_LANES, count - 1);
                    value[r] = vload4(0, rows->x + (size_t)(first + i) * stride + j);
                }
#pragma unroll
                for (uint c = 0; c < TOGETHER; c++) {
                    const size_t row = place[min(from + c, trials - 1)];
                    const float4 other = vload4(0, rows->candidates + row * stride + j);
#pragma unroll
                    for (uint r = 0; r < SCORED_EACH; r++) {
                        const float4 t = value[r] - other;
                        sum[r][c] = fma(t.x, t.x, sum[r][c]);
                        sum[r][c] = fma(t.y, t.y, sum[r][c]);
                        sum[r][c] = fma(t.z, t.z, sum[r][c]);
                        sum[r][c] = fma(t.w, t.w, sum[r][c]);
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
            for (uint r = 0; r < SCORED_EACH; r++)
#pragma unroll
                for (uint c = 0; c < TOGETHER; c++)
                    score[(r * TOGETHER + c) * GROUP + lid] = sum[r][c];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint e = lid; e < SCORED * TOGETHER; e += GROUP) {
                const uint i = at + e / AT_ONCE / TOGETHER * AT_ONCE + e % AT_ONCE;
                const uint c = e / AT_ONCE % TOGETHER;
                float total = 0.0f;
                for (uint l = 0; l < KMEANS_LANES; l++)
                    total += score[(e / AT_ONCE) * GROUP + e % AT_ONCE * KMEANS_LANES +
                                   (l + lid) % KMEANS_LANES];
                if (i < count && from + c < trials &&
                    !(total > 0x1p-100f && total < INFINITY &&
                      (double)total * (1 - 0x1p-10) >= distances[first + i]))
                    atomic_or(&room.bits[i], 1u << (from + c));
            }
        }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Seeds `seed` to `seed` + rounds - 1 of many sets of rows, a group for each: what seed_take, a
 * filter and seed_exact do for one with a launch each. Part p has rows[2p + 1] rows from rows[2p]
 * on, at most KMEANS_PART_BLOCKS blocks. seeds: k of each part, of which the host gives the first;
 * in and out, like distances and mask (per row) and upto (per block, part p's from rows[2p] /
 * KMEANS_BLOCK_ROWS + p on). found_seeds: how many a part has; one less if there are fewer than k
 * and nothing remains, after which the part gets no more. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
seed_parts(__global const float *x, __global const uint *rows, __global const double *random,
           __global double *upto, __global double *distances, __global uint *mask,
           __global uint *seeds, __global uint *found_seeds, uint stride, uint k, uint trials,
           uint seed, uint rounds)
{
    __local double value[TOGETHER * KMEANS_BLOCK_ROWS], lanes[GROUP];
    __local double left[KMEANS_PART_BLOCKS * KMEANS_TRIALS_MAX];
    __local uint bits[KMEANS_BLOCK_ROWS], found, place[KMEANS_TRIALS_MAX];
    __local uint block[KMEANS_TRIALS_MAX], best;
    __local ushort listed[TOGETHER * KMEANS_BLOCK_ROWS];
    const uint lid = (uint)get_local_id(0), part = (uint)get_group_id(0);
    const uint begin = rows[2 * part], count = rows[2 * part + 1];
    const uint blocks = (count + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    const struct seed_rows all = {x + (size_t)begin * stride, x + (size_t)begin * stride, 0, stride, 0};
    const struct seed_room room = {value, lanes, listed, bits, &found};
    upto += begin / KMEANS_BLOCK_ROWS + part;
    distances += begin;
    mask += begin;
    seeds += (size_t)part * k;
    for (uint i = lid; i < count && seed == 0; i += GROUP)
        distances[i] = INFINITY;
    for (uint round = 0; round < rounds; round++) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (found_seeds[part] < seed + round)
            return;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        /* The first seed is given. */
        const bool given = seed + round == 0;
        const uint tried = given ? 1 : trials;
        if (given && lid == 0)
            place[0] = seeds[0];
        for (uint t = lid; t < trials && !given; t += GROUP) {
            const double target = random[round * KMEANS_TRIALS_MAX + t] * upto[blocks - 1];
            uint below = 0;
            for (uint b = 0; b < blocks; b++)
                below += !(upto[b] > target);
            block[t] = block_of_target(upto, below, blocks, 1);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint from = 0; from < trials && !given; from += TOGETHER) {
            for (uint e = lid; e < TOGETHER * KMEANS_BLOCK_ROWS; e += GROUP) {
                const uint i = block[min(from + e / KMEANS_BLOCK_ROWS, trials - 1)] * KMEANS_BLOCK_ROWS +
                               e % KMEANS_BLOCK_ROWS;
                value[e] = i < count ? distances[i] : 0.0;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint t = from + lid; t < min(trials, from + TOGETHER); t += GROUP) {
                const uint b = block[t], first = b * KMEANS_BLOCK_ROWS;
                place[t] =
                    first + row_of_target(value + (t - from) * KMEANS_BLOCK_ROWS,
                                          b > 0 ? upto[b - 1] : 0.0,
                                          random[round * KMEANS_TRIALS_MAX + t] * upto[blocks - 1],
                                          min(count - first, (uint)KMEANS_BLOCK_ROWS));
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        for (uint b = 0; b < blocks; b++) {
            const uint first = b * KMEANS_BLOCK_ROWS;
            const uint some = min(count - first, (uint)KMEANS_BLOCK_ROWS);
            mark_block(&all, room, distances, place, tried, first, some, lid);
            for (uint from = 0; from < tried; from += TOGETHER) {
                evaluate_block(&all, room, distances, place, from, first, some, lid);
                for (uint c = lid; c < TOGETHER && from + c < tried; c += GROUP)
                    left[b * KMEANS_TRIALS_MAX + from + c] = value[c * KMEANS_BLOCK_ROWS];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            for (uint i = lid; i < some; i += GROUP)
                mask[first + i] = bits[i];
        }
        for (uint t = lid; t < tried; t += GROUP) {
            double total = 0.0;
            for (uint b = 0; b < blocks; b++)
                left[b * KMEANS_TRIALS_MAX + t] = total += left[b * KMEANS_TRIALS_MAX + t];
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (lid == 0) {
            __local const double *total = left + (blocks - 1) * KMEANS_TRIALS_MAX;
            best = 0;
            for (uint t = 1; t < tried; t++)
                best = total[t] < total[best] ? t : best;
            seeds[seed + round] = place[best];
            found_seeds[part] = seed + round + (total[best] > 0.0 || seed + round + 1 == k ? 1 : 0);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint b = lid; b < blocks; b += GROUP)
            upto[b] = left[b * KMEANS_TRIALS_MAX + best];
        for (uint b = 0; b < blocks; b++) {
            const uint first = b * KMEANS_BLOCK_ROWS;
            const uint some = min(count - first, (uint)KMEANS_BLOCK_ROWS);
            for (uint i = lid; i < some; i += GROUP)
                bits[i] = mask[first + i];
            const uint total = list_block(room, best, false, some, lid);
            for (uint from = 0; from < total; from += AT_ONCE) {
                const uint at = from + lid * AT_ONCE / GROUP, i = first + listed[min(at, total - 1)];
                const double distance =
                    shared_distance(lanes, all.x + (size_t)i * stride,
                                    all.x + (size_t)place[best] * stride, stride, lid);
                if (at < total && LANE_OF(lid) == 0)
                    distances[i] = distance;
            }
        }
    }
}
#endif
