/* kmeans_lists.cl: rounds of greedy k-means++ that look only at the rows a candidate can bring nearer.
 *
 * Rows only get nearer to the seeds, so once some seeds are chosen, the rows that are nearer to a candidate than
 * to any seed remain among those that are nearer to it now. list_lengths, lay_out and list_half
 * (kmeans_filter_half.cl) list these for every row as a candidate, list_distances evaluates their distances, and
 * one work-group then chooses one seed after another without a launch for each. */
#include "kmeans_draw.h"
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
#define LANES KMEANS_LISTED_LANES
/* Values from one block to the next in local memory, chosen such that LANES + 1 of them do not
 * share a bank either. */
#define ROOM_EACH (KMEANS_BLOCK_ROWS + 1)
#define ROOM      (KMEANS_TRIALS_MAX * ROOM_EACH)
/* Blocks added up at a time. */
#define SUMMED (ROOM / (LANES + 1))
/* Work-items for the list of a candidate. */
#define EACH (ITEMS / KMEANS_TRIALS_MAX)

struct listed_rows {
    __global const double *weights; /* used if weighted */
    __global const uint *listed;
    __global const double *apart;
    __global double *distances;
    __global double *sums; /* of each block, weighted */
    __global double *kept; /* what a tried candidate replaced */
    uint count, blocks, weighted;
};

struct listed_room {
    __local double *values;  /* ROOM */
    __local double *upto;    /* KMEANS_LISTED_BLOCKS: what remains in each block and all earlier ones */
    __local ushort *changed; /* KMEANS_LISTED_BLOCKS: blocks whose rows have changed, */
    __local uint *bits;      /* KMEANS_LISTED_BLOCKS / 32: which they are, */
    __local uint *found;     /* and how many */
};

static double weighted_distance(const struct listed_rows *rows, uint i)
{
    if (i >= rows->count)
        return 0.0;
    return rows->weighted ? rows->distances[i] * rows->weights[i] : rows->distances[i];
}

/* Adds up the blocks that have changed, pairwise. */
static void sum_changed(const struct listed_rows *rows, const struct listed_room room, uint lid)
{
    const uint found = *room.found;
    for (uint from = 0; from < found; from += SUMMED) {
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
        for (uint b = lid; b < some; b += ITEMS) {
            double value[LANES];
#pragma unroll
            for (uint i = 0; i < LANES; i++)
                value[i] = room.values[b * (LANES + 1) + i];
#pragma unroll
            for (uint reach = LANES / 2; reach > 0; reach /= 2)
#pragma unroll
                for (uint i = 0; i < reach; i++)
                    value[i] += value[i + reach];
            rows->sums[room.changed[from + b]] = value[0];
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

/* Values that fold_sums has in flight. */
#define AHEAD 16

/* Adds the blocks' sums in order. */
static void fold_sums(const struct listed_rows *rows, const struct listed_room room, uint lid)
{
    for (uint b = lid; b < KMEANS_LISTED_BLOCKS; b += ITEMS)
        room.upto[b] = b < rows->blocks ? rows->sums[b] : 0.0;
    barrier(CLK_LOCAL_MEM_FENCE);
    double total = 0.0;
    for (uint from = 0; from < rows->blocks && lid == 0; from += AHEAD) {
        double each[AHEAD];
#pragma unroll
        for (uint e = 0; e < AHEAD; e++)
            each[e] = room.upto[from + e];
#pragma unroll
        for (uint e = 0; e < AHEAD; e++)
            room.upto[from + e] = total += each[e];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Takes the candidate with entries `begin` to `end`. keep: what it replaces goes to rows->kept. */
static void take_candidate(const struct listed_rows *rows, const struct listed_room room, uint begin,
                           uint end, bool keep, uint lid)
{
    for (uint i = lid; i < KMEANS_LISTED_BLOCKS / 32; i += ITEMS)
        room.bits[i] = 0;
    if (lid == 0)
        *room.found = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint e = begin + lid; e < end; e += ITEMS) {
        const uint row = rows->listed[e], block = row / KMEANS_BLOCK_ROWS, bit = 1u << block % 32;
        const double now = rows->distances[row];
        if (keep)
            rows->kept[e - begin] = now;
        if (!(rows->apart[e] < now))
            continue;
        rows->distances[row] = rows->apart[e];
        if (!(atomic_or(&room.bits[block / 32], bit) & bit))
            room.changed[atomic_inc(room.found)] = (ushort)block;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    sum_changed(rows, room, lid);
    fold_sums(rows, room, lid);
}

/* Undoes take_candidate, but for room.upto. */
static void put_back(const struct listed_rows *rows, const struct listed_room room, uint begin, uint end,
                     uint lid)
{
    for (uint e = begin + lid; e < end; e += ITEMS)
        rows->distances[rows->listed[e]] = rows->kept[e - begin];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    sum_changed(rows, room, lid);
}

/* Whether trial `lid` may be the one that leaves the least, by how much each takes away (gains, EACH values apart;
 * 0 for trials that do not exist). The definition adds in another order: both sums are within
 * blocks + count + 32 roundings of their true values, relative to `total`, what remains now. A row
 * that was drawn twice counts once. */
static bool likely_trial(__local const double *gains, __local const uint *place, double total,
                         uint blocks, uint count, uint lid)
{
    double most = 0.0;
    bool first = true;
#pragma unroll
    for (uint t = 0; t < KMEANS_TRIALS_MAX; t++) {
        most = fmax(most, gains[t * EACH]);
        first = first && (t >= lid || place[t] != place[lid]);
    }
    return first && gains[lid * EACH] >= most - 2 * total * (blocks + count + 32) * 0x1p-52;
}

/* Chooses seeds `seed` to `seed` + rounds - 1, one after another: what seed_take, seed_half and seed_exact do by
 * three launches for each, the same operations in the same order as far as the choice depends on them. seeds and
 * totals: the row of each seed, and what it leaves, modulo the batch. One group; count: at most
 * KMEANS_LISTED_BLOCKS blocks. */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void
seed_listed(__global const double *restrict random, __global const double *weights, __global const uint *restrict ends,
            __global const uint *restrict listed, __global const double *restrict apart,
            __global double *distances, __global double *sums, __global double *kept,
            __global double *restrict totals, __global uint *restrict seeds, uint count, uint trials,
            uint weighted, uint seed, uint rounds)
{
    __local double values[ROOM], upto[KMEANS_LISTED_BLOCKS];
    __local ushort changed[KMEANS_LISTED_BLOCKS];
    __local uint bits[KMEANS_LISTED_BLOCKS / 32], found;
    __local uint block[KMEANS_TRIALS_MAX], place[KMEANS_TRIALS_MAX], likely;
    const uint lid = (uint)get_local_id(0), trial = lid / EACH;
    const uint blocks = (count + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    const struct listed_rows rows = {weights, listed, apart, distances, sums, kept, count, blocks, weighted};
    const struct listed_room room = {values, upto, changed, bits, &found};
    for (uint b = lid; b < blocks; b += ITEMS)
        changed[b] = (ushort)b;
    if (lid == 0)
        found = blocks;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_changed(&rows, room, lid);
    fold_sums(&rows, room, lid);
    const uint own = lid % KMEANS_TRIALS_MAX;
    double next = random[seed % KMEANS_SEED_BATCH * KMEANS_TRIALS_MAX + own];
    for (uint round = 0; round < rounds; round++) {
        const double total = upto[blocks - 1], target = next * total;
        next = random[(seed + round + 1) % KMEANS_SEED_BATCH * KMEANS_TRIALS_MAX + own];
        if (lid < trials) {
            uint low = 0, high = blocks - 1;
            while (low < high) {
                const uint middle = (low + high) / 2;
                if (upto[middle] > target)
                    high = middle;
                else
                    low = middle + 1;
            }
            /* If rounding left none, the last block that adds anything. */
            while (low > 0 && !(upto[low] > upto[low - 1]))
                low--;
            block[lid] = low;
        }
        if (lid == 0)
            likely = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint e = lid; e < trials * KMEANS_BLOCK_ROWS; e += ITEMS) {
            const uint t = e / KMEANS_BLOCK_ROWS, i = e % KMEANS_BLOCK_ROWS;
            values[t * ROOM_EACH + i] = weighted_distance(&rows, block[t] * KMEANS_BLOCK_ROWS + i);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < trials) {
            const uint b = block[lid], first = b * KMEANS_BLOCK_ROWS;
            place[lid] = first + row_of_target(values + lid * ROOM_EACH, b > 0 ? upto[b - 1] : 0.0, target,
                                               min(count - first, (uint)KMEANS_BLOCK_ROWS));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        double gain = 0.0;
        if (trial < trials) {
            const uint candidate = place[trial], end = ends[candidate];
            for (uint e = begin_of_list(ends, candidate) + lid % EACH; e < end; e += EACH) {
                const uint row = listed[e];
                const double less = distances[row] - apart[e];
                if (less > 0.0)
                    gain += weighted ? less * weights[row] : less;
            }
        }
        values[lid] = gain;
        for (uint reach = EACH / 2; reach > 0; reach /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (lid % EACH < reach)
                values[lid] += values[lid + reach];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lid < trials && likely_trial(values, place, total, blocks, count, lid))
            atomic_or(&likely, 1u << lid);
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint tried = likely;
        uint best = 31 - clz(tried & -tried);
        double least = INFINITY;
        for (uint left = tried & (tried - 1) ? tried : 0; left > 0; left &= left - 1) {
            const uint t = 31 - clz(left & -left), candidate = place[t];
            const uint begin = begin_of_list(ends, candidate);
            take_candidate(&rows, room, begin, ends[candidate], true, lid);
            if (upto[blocks - 1] < least) {
                least = upto[blocks - 1];
                best = t;
            }
            put_back(&rows, room, begin, ends[candidate], lid);
        }
        const uint candidate = place[best];
        take_candidate(&rows, room, begin_of_list(ends, candidate), ends[candidate], false, lid);
        if (lid == 0) {
            totals[(seed + round) % KMEANS_SEED_BATCH] = upto[blocks - 1];
            seeds[(seed + round) % KMEANS_SEED_BATCH] = candidate;
        }
    }
}

/* Copies the rows of seeds `seed` and on to their centroids, a group for each. */
__kernel __attribute__((reqd_work_group_size(KMEANS_OWN_ITEMS, 1, 1))) void
copy_seeds(__global const float *restrict x, __global const uint *restrict seeds,
           __global float *restrict centroids, uint stride, uint seed)
{
    const uint own = seed + (uint)get_group_id(0);
    const size_t row = seeds[own % KMEANS_SEED_BATCH];
    for (uint j = (uint)get_local_id(0); j < stride; j += KMEANS_OWN_ITEMS)
        centroids[(size_t)own * stride + j] = x[row * stride + j];
}
