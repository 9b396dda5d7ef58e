/* kmeans_lists.cl: rounds of greedy k-means++ that look only at the rows a candidate can bring nearer.
 *
 * Rows only get nearer to the seeds, so once some seeds are chosen, the rows that are nearer to a candidate than
 * to any seed remain among those that are nearer to it now. list_lengths, lay_out and list_half
 * (kmeans_filter_half.cl) list these for every row as a candidate, list_distances evaluates their distances, and
 * one work-group then chooses one seed after another without a launch for each. */
#include "kmeans_lanes.h"

#pragma OPENCL FP_CONTRACT OFF

/* What list_half needs to list the rows that each row, as a candidate, may be nearer to than their distances: as
 * a centroid a row has its squared length less the centre; as a candidate, the score that it must not exceed
 * (docs/clustering.md). A row at distance 0 is never a candidate. KMEANS_LANES work-items per row. */
__kernel __attribute__((reqd_work_group_size(KMEANS_OWN_ITEMS, 1, 1))) void
list_lengths(__global const float *restrict x, __global const float *restrict centre,
             __global const double *restrict distances, __global double *restrict squares,
             __global float *restrict limits, __global int *restrict ids, uint count, uint stride,
             double scale)
{
    __local double lanes[KMEANS_OWN_ITEMS];
    const uint lid = (uint)get_local_id(0), lane = lid % KMEANS_LANES;
    const uint row = (uint)get_global_id(0) / KMEANS_LANES;
    fold_lanes(lanes, lane_sum(x + (size_t)min(row, count - 1) * stride, centre, stride, lane), lid);
    if (row >= count || lane > 0)
        return;
    squares[row] = lanes[lid];
    limits[row] = distances[row] > 0.0
                      ? convert_float_rtp(0x1p-100 - scale * lanes[lid] * (1 - 0x1p-30))
                      : -INFINITY;
    ids[row] = (int)row;
}

/* Where the entries of a candidate begin, given where each list ends. */
static uint begin_of_list(__global const uint *ends, uint candidate)
{
    return candidate > 0 ? ends[candidate - 1] : 0;
}

/* apart[e]: the canonical distance of row listed[e] to the candidate of its list. Candidate c has the entries
 * from begin_of_list to below ends[c]. A group per candidate. */
__kernel __attribute__((reqd_work_group_size(KMEANS_OWN_ITEMS, 1, 1))) void
list_distances(__global const float *restrict x, __global const uint *restrict ends,
               __global const uint *restrict listed, __global double *restrict apart, uint stride)
{
    __local double lanes[KMEANS_OWN_ITEMS];
    const uint lid = (uint)get_local_id(0), lane = lid % KMEANS_LANES;
    const uint candidate = (uint)get_group_id(0), end = ends[candidate];
    __global const float *row = x + (size_t)candidate * stride;
    for (uint from = begin_of_list(ends, candidate); from < end;
         from += KMEANS_OWN_ITEMS / KMEANS_LANES) {
        const uint e = from + lid / KMEANS_LANES;
        const uint other = listed[min(e, end - 1)];
        fold_lanes(lanes, lane_sum(x + (size_t)other * stride, row, stride, lane), lid);
        if (e < end && lane == 0)
            apart[e] = lanes[lid];
    }
}

#define ITEMS KMEANS_LISTED_ITEMS
/* Work-items for a candidate, and entries of its list that each has in flight. */
#define EACH    (ITEMS / KMEANS_TRIALS_MAX)
#define AT_ONCE 4
/* Work-items that draw a row, and rows of its block that each adds up. */
#define DRAWING 16
#define ROWS    (KMEANS_BLOCK_ROWS / DRAWING)
/* Values that one work-item adds up; a gap between such groups puts them into different banks. */
#define TOGETHER     8
#define PLACE(value) ((value) + (value) / TOGETHER)
#define NEIGHBOURS   16
/* Work-items that add up a block, and blocks at a time. */
#define LANES  32
#define SUMMED 64
#define ROOM   (SUMMED * (LANES + 1))

struct listed_rows {
    __global const double *weights; /* used if weighted */
    __global const uint *listed;
    __global const double *apart;
    __global double *distances;
    uint count, blocks, weighted;
};

struct listed_room {
    __local double *values;  /* ROOM */
    __local double *sums;    /* KMEANS_LISTED_BLOCKS: of each block, weighted */
    __local double *reached; /* KMEANS_LISTED_BLOCKS: of each block and all earlier ones, nearly */
    __local ushort *changed; /* KMEANS_LISTED_BLOCKS: blocks whose rows have changed, */
    __local uint *bits;      /* KMEANS_LISTED_BLOCKS / 32: which they are, */
    __local uint *found;     /* and how many; both are zero unless a function says otherwise */
};

static double weighted_distance(const struct listed_rows *rows, uint i)
{
    if (i >= rows->count)
        return 0.0;
    return rows->weighted ? rows->distances[i] * rows->weights[i] : rows->distances[i];
}

/* Adds up the blocks that have changed, pairwise: room.sums. */
static void sum_changed(const struct listed_rows *rows, const struct listed_room room, uint lid)
{
    const uint found = *room.found;
    uint from = 0;
    do {
        const uint some = min(found - from, (uint)SUMMED);
        for (uint b = lid / LANES; b < some; b += ITEMS / LANES) {
            const uint first = room.changed[from + b] * KMEANS_BLOCK_ROWS + lid % LANES;
            double value[KMEANS_BLOCK_ROWS / LANES];
#pragma unroll
            for (uint i = 0; i < KMEANS_BLOCK_ROWS / LANES; i++)
                value[i] = weighted_distance(rows, first + i * LANES);
#pragma unroll
            for (uint reach = KMEANS_BLOCK_ROWS / LANES / 2; reach > 0; reach /= 2)
#pragma unroll
                for (uint i = 0; i < reach; i++)
                    value[i] += value[i + reach];
            room.values[b * (LANES + 1) + lid % LANES] = value[0];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        __local double *of_block = room.values + lid / TOGETHER * (LANES + 1) + lid % TOGETHER;
        if (lid < some * TOGETHER)
            *of_block = (of_block[0] + of_block[16]) + (of_block[8] + of_block[24]);
        barrier(CLK_LOCAL_MEM_FENCE);
        of_block = room.values + lid * (LANES + 1);
        if (lid < some)
            room.sums[room.changed[from + lid]] =
                ((of_block[0] + of_block[4]) + (of_block[2] + of_block[6])) +
                ((of_block[1] + of_block[5]) + (of_block[3] + of_block[7]));
        barrier(CLK_LOCAL_MEM_FENCE);
        from += SUMMED;
    } while (from < found);
}

static void clear_changed(const struct listed_room room, uint lid)
{
    for (uint i = lid; i < KMEANS_LISTED_BLOCKS / 32; i += ITEMS)
        room.bits[i] = 0;
    if (lid == 0)
        *room.found = 0;
}

/* Adds up the blocks in groups of NEIGHBOURS: room.reached. */
static void run_up(const struct listed_room room, uint blocks, uint lid)
{
    const uint groups = (blocks + NEIGHBOURS - 1) / NEIGHBOURS;
    __local const double *own = room.sums + lid * NEIGHBOURS;
    if (lid < groups) {
        double sum[4] = {0.0, 0.0, 0.0, 0.0};
#pragma unroll
        for (uint i = 0; i < NEIGHBOURS; i++)
            sum[i % 4] += own[i];
        room.values[lid] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < groups) {
        double sum = 0.0;
        for (uint group = 0; group < lid; group++)
            sum += room.values[group];
#pragma unroll
        for (uint i = 0; i < NEIGHBOURS; i++)
            room.reached[lid * NEIGHBOURS + i] = sum += own[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* The first block that reaches the target, or the last one. */
static uint block_of_target(__local const double *reached, uint blocks, double target)
{
    uint low = 0, high = blocks - 1;
    while (low < high) {
        const uint middle = (low + high) / 2;
        if (reached[middle] > target)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Takes the candidate with entries `begin` to `end`. */
static void take_candidate(const struct listed_rows *rows, const struct listed_room room, uint begin,
                           uint end, uint lid)
{
    for (uint e = begin + lid; e < end; e += ITEMS) {
        const uint row = rows->listed[e], block = row / KMEANS_BLOCK_ROWS, bit = 1u << block % 32;
        if (!(rows->apart[e] < rows->distances[row]))
            continue;
        rows->distances[row] = rows->apart[e];
        if (!(atomic_or(&room.bits[block / 32], bit) & bit))
            room.changed[atomic_inc(room.found)] = (ushort)block;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    sum_changed(rows, room, lid);
    clear_changed(room, lid);
    run_up(room, rows->blocks, lid);
}

/* The sum of TOGETHER values, `apart` places apart. */
static double sum_together(__local const double *values, uint apart)
{
    double sum = values[0];
#pragma unroll
    for (uint i = 1; i < TOGETHER; i++)
        sum += values[i * apart];
    return sum;
}

/* Whether trial `lid` may be the one that leaves the least, by how much each takes away, 0 for trials that do not
 * exist. The definition adds in another order: slack is how much both sums may be off. A row that was
 * drawn twice counts once. */
static bool likely_trial(__local const double *gains, __local const uint *place, double slack, uint lid)
{
    ulong most = 0; /* the bits of a number that is not negative compare as it does */
    bool first = true;
#pragma unroll
    for (uint t = 0; t < KMEANS_TRIALS_MAX; t++) {
        most = max(most, as_ulong(gains[t]));
        first = first && (t >= lid || place[t] != place[lid]);
    }
    return first && gains[lid] >= as_double(most) - slack;
}

/* Chooses seeds `seed` to `seed` + rounds - 1, one after another: what seed_take, seed_half and seed_exact do by
 * three launches for each. They draw rows and choose among candidates by sums in a defined order; sums in another
 * order, which take less time, choose the same where they are not too close to a limit (docs/clustering.md). The
 * first round where they are ends this, and `state` and `upto` are what seed_take needs to do that round. seeds
 * and totals: the row of each seed, and about what it leaves, modulo the batch. One group; count: at most
 * KMEANS_LISTED_BLOCKS blocks. */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
seed_listed(__global const double *restrict random, __global const double *weights,
            __global const uint *restrict ends, __global const uint *restrict listed,
            __global const double *restrict apart, __global double *distances,
            __global double *restrict upto, __global double *restrict totals, __global uint *restrict seeds,
            __global uint *restrict state, uint count, uint trials, uint weighted, uint seed, uint rounds)
{
    __local double values[ROOM], sums[KMEANS_LISTED_BLOCKS], reached[KMEANS_LISTED_BLOCKS];
    __local ushort changed[KMEANS_LISTED_BLOCKS];
    __local uint bits[KMEANS_LISTED_BLOCKS / 32], found;
    __local double gains[KMEANS_TRIALS_MAX];
    __local uint place[KMEANS_TRIALS_MAX], likely;
    const uint lid = (uint)get_local_id(0), trial = lid / EACH, own = lid % EACH;
    const uint draw = lid / DRAWING, part = lid % DRAWING;
    const uint blocks = (count + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    const struct listed_rows rows = {weights, listed, apart, distances, count, blocks, weighted};
    const struct listed_room room = {values, sums, reached, changed, bits, &found};
    /* Sums of blocks, and what candidates take away, are off by less than so much of what remains. */
    const double off_draw = 4 * (double)(blocks + KMEANS_BLOCK_ROWS + 64) * 0x1p-53;
    const double off_gain = 4 * (double)(blocks + count + 32) * 0x1p-53;
    for (uint b = lid; b < KMEANS_LISTED_BLOCKS; b += ITEMS) {
        changed[b] = (ushort)b;
        sums[b] = 0.0;
    }
    if (lid == 0)
        found = blocks;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_changed(&rows, room, lid);
    clear_changed(room, lid);
    run_up(room, blocks, lid);
    double next = random[seed % KMEANS_SEED_BATCH * KMEANS_TRIALS_MAX + draw % KMEANS_TRIALS_MAX];
    uint round = 0;
    bool certain;
    do {
        /* What each trial draws: the block, */
        const double total = reached[blocks - 1], target = next * total, off = off_draw * total;
        next = random[(seed + round + 1) % KMEANS_SEED_BATCH * KMEANS_TRIALS_MAX + draw % KMEANS_TRIALS_MAX];
        uint drawn = 0, first = 0;
        double sum = 0.0;
        if (draw < trials) {
            drawn = block_of_target(reached, blocks, target);
            first = drawn * KMEANS_BLOCK_ROWS + part * ROWS;
#pragma unroll 4
            for (uint i = 0; i < ROWS; i++)
                sum += weighted_distance(&rows, first + i);
            values[lid] = sum;
        }
        if (lid < KMEANS_TRIALS_MAX)
            place[lid] = KMEANS_NONE;
        if (lid == 0)
            likely = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        /* and the row, */
        if (draw < trials) {
            double upto = drawn > 0 ? reached[drawn - 1] : 0.0;
#pragma unroll
            for (uint i = 0; i < DRAWING - 1; i++)
                upto += i < part ? values[lid - part + i] : 0.0;
            if (upto <= target - off && upto + sum > target + off)
                for (uint i = 0; i < ROWS; i++) {
                    const double before = upto;
                    upto += weighted_distance(&rows, first + i);
                    if (before <= target - off && upto > target + off)
                        place[draw] = first + i;
                }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        /* what each candidate takes away, */
        double gain = 0.0;
        if (trial < trials && place[trial] != KMEANS_NONE) {
            const uint candidate = place[trial], end = ends[candidate];
            for (uint from = begin_of_list(ends, candidate) + own; from < end; from += EACH * AT_ONCE) {
                uint row[AT_ONCE];
                double less[AT_ONCE];
#pragma unroll
                for (uint i = 0; i < AT_ONCE; i++)
                    row[i] = listed[min(from + i * EACH, end - 1)];
#pragma unroll
                for (uint i = 0; i < AT_ONCE; i++)
                    less[i] = distances[row[i]] - apart[min(from + i * EACH, end - 1)];
#pragma unroll
                for (uint i = 0; i < AT_ONCE; i++)
                    if (from + i * EACH < end && less[i] > 0.0)
                        gain += weighted ? less[i] * weights[row[i]] : less[i];
            }
        }
        values[PLACE(lid)] = gain;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < ITEMS / TOGETHER)
            values[PLACE(lid * TOGETHER)] = sum_together(values + PLACE(lid * TOGETHER), 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < KMEANS_TRIALS_MAX)
            gains[lid] = sum_together(values + PLACE(lid * EACH), TOGETHER + 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        /* and the one that leaves least, if all rows are certain, and this is. */
        if (lid < trials && (place[lid] == KMEANS_NONE || likely_trial(gains, place, off_gain * total, lid)))
            atomic_or(&likely, place[lid] == KMEANS_NONE ? ~0u : 1u << lid);
        barrier(CLK_LOCAL_MEM_FENCE);
        certain = !(likely & (likely - 1));
        const uint chosen = certain ? place[31 - clz(likely)] : 0;
        take_candidate(&rows, room, begin_of_list(ends, chosen), certain ? ends[chosen] : 0, lid);
        if (lid == 0 && certain) {
            totals[(seed + round) % KMEANS_SEED_BATCH] = reached[blocks - 1];
            seeds[(seed + round) % KMEANS_SEED_BATCH] = chosen;
        }
        round += certain;
    } while (certain && round < rounds);
    if (lid == 0) {
        double sum = 0.0;
        for (uint b = 0; b < blocks && !certain; b++)
            upto[(size_t)b * KMEANS_TRIALS_MAX] = sum += sums[b];
        state[KMEANS_CHOSEN] = KMEANS_NONE;
        state[KMEANS_SEEDS] = seed + round;
    }
}

/* Copies the rows of those seeds that seed_listed has chosen, from `seed` on, to their centroids; a group for
 * each. */
__kernel __attribute__((reqd_work_group_size(KMEANS_OWN_ITEMS, 1, 1))) void
copy_seeds(__global const float *restrict x, __global const uint *restrict seeds,
           __global const uint *restrict state, __global float *restrict centroids, uint stride,
           uint seed)
{
    const uint own = seed + (uint)get_group_id(0);
    if (own >= state[KMEANS_SEEDS])
        return;
    const size_t row = seeds[own % KMEANS_SEED_BATCH];
    for (uint j = (uint)get_local_id(0); j < stride; j += KMEANS_OWN_ITEMS)
        centroids[(size_t)own * stride + j] = x[row * stride + j];
}
