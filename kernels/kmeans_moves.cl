/* kmeans_moves.cl: exact sums of the rows of each cluster, in 64-bit fixed point, on devices with
 * 64-bit atomics. Rows that changed their cluster are counted by cluster, given places by a scan,
 * put in order, and added to the new cluster and subtracted from the old one.
 *
 * Atomic additions are of integers, so their order does not matter. A work-item keeps the sum of
 * one column while entries belong to one cluster: the number of atomic additions is about that of
 * clusters and spans of entries, not that of rows.
 *
 * Counting and placing save atomics, too: a work-group has a table of the clusters in local memory
 * and adds to global memory one sum for each cluster that its rows join or leave, neighbouring
 * clusters together. If there are more clusters than a group has rows, or than local memory holds,
 * the table has no bins and every row counts in global memory.
 *
 * -D WEIGHTED=0|1  whether a row's values are multiplied by its weight; rows of weight 0 change no
 *                  sum and no count
 * -D DOUBLES=0|1   see kmeans_fixed.h */
#include "kmeans.h"

#include "kmeans_fixed.h"

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

/* Index of a work-item's j-th row of `each` (a multiple of KMEANS_MOVES_STEP, at most
 * KMEANS_MOVES_EACH). */
static uint row_of(uint j, uint each)
{
    const uint size = (uint)get_local_size(0);
    return ((uint)get_group_id(0) * each + j) * size + (uint)get_local_id(0);
}

/* Counts the group's rows whose cluster changed, comparing labels with `kept`, in a table of `bins`
 * (k, or 0 for none): the lower half of a bin counts joins, the upper half leaves. Returns a bit
 * for each such row of the work-item. PoCL 3.1 needs it inlined: see kernels/histogram_bins.h. */
static inline __attribute__((always_inline)) uint find_moves(__global const int *labels,
                                                             __global const int *kept,
                                                             __global const float *weights,
                                                             uint rows, uint each, uint bins,
                                                             __local uint *table)
{
    uint moved = 0;
    for (uint c = (uint)get_local_id(0); c < bins; c += (uint)get_local_size(0))
        table[c] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint j = 0; j < each; j += KMEANS_MOVES_STEP) {
        int to[KMEANS_MOVES_STEP], from[KMEANS_MOVES_STEP];
#pragma unroll
        for (uint i = 0; i < KMEANS_MOVES_STEP; i++) {
            const uint row = row_of(j + i, each);
            to[i] = row < rows ? labels[row] : -1;
            from[i] = row < rows ? kept[row] : -1;
#if WEIGHTED
            if (row < rows && weights[row] == 0.0f)
                from[i] = to[i];
#endif
        }
#pragma unroll
        for (uint i = 0; i < KMEANS_MOVES_STEP; i++) {
            if (to[i] == from[i])
                continue;
            moved |= 1u << (j + i);
            if (bins > 0)
                atomic_inc(&table[to[i]]);
            if (bins > 0 && from[i] >= 0)
                atomic_add(&table[from[i]], 0x10000u);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return moved;
}

/* Counts the rows of the tile that join and leave each cluster. */
__kernel void count_moves(__global const int *restrict labels, __global const int *restrict kept,
                          __global const float *restrict weights, __global uint *joins, __global uint *leaves,
                          __global const uint *restrict left_counts, uint unless, uint rows,
                          uint each, uint bins, __local uint *table)
{
    const uint now = rows_now(rows, left_counts, unless);
    uint moved = find_moves(labels, kept, weights, now, each, bins, table);
    for (uint c = (uint)get_local_id(0); c < bins; c += (uint)get_local_size(0)) {
        const uint joined = table[c] & 0xffff, left = table[c] >> 16;
        if (joined > 0)
            atomic_add(&joins[c], joined);
        if (left > 0)
            atomic_add(&leaves[c], left);
    }
    while (bins == 0 && moved != 0) {
        const uint j = 31 - clz(moved), row = row_of(j, each);
        const int to = labels[row], from = kept[row];
        moved ^= 1u << j;
        atomic_inc(&joins[to]);
        if (from >= 0)
            atomic_inc(&leaves[from]);
    }
}

/* One group: cursors[c] becomes where cluster c's entries begin and counts[k] their total, which is
 * added to counts[k + 1]; updates the cluster sizes counts[c] and counts[k + 2], the number of
 * empty clusters; clears joins and leaves. */
__kernel __attribute__((reqd_work_group_size(KMEANS_SCAN_ITEMS, 1, 1))) void
scan_moves(__global uint *joins, __global uint *leaves, __global uint *cursors,
           __global long *counts, uint k)
{
    __local uint sums[KMEANS_SCAN_ITEMS];
    __local uint empty;
    const uint lid = (uint)get_local_id(0);
    const uint each = (k + KMEANS_SCAN_ITEMS - 1) / KMEANS_SCAN_ITEMS;
    const uint from = min(k, lid * each), to = min(k, from + each);
    uint sum = 0, without = 0;
    for (uint c = from; c < to; c++)
        sum += joins[c] + leaves[c];
    if (lid == 0)
        empty = 0;
    scan_sums(sums, lid, sum);
    uint begin = sums[lid] - sum;
    for (uint c = from; c < to; c++) {
        cursors[c] = begin;
        begin += joins[c] + leaves[c];
        const long count = counts[c] + (long)joins[c] - (long)leaves[c];
        counts[c] = count;
        without += count == 0;
        joins[c] = leaves[c] = 0;
    }
    if (without > 0)
        atomic_add(&empty, without);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == KMEANS_SCAN_ITEMS - 1) {
        counts[k] = sums[lid];
        counts[k + 1] += sums[lid];
        counts[k + 2] = empty;
    }
}

/* Puts the entries in order of clusters; owners[i] is the cluster of entry i. Updates `kept`. A bin
 * reserves places in its cluster for all that it has counted, then holds the next place. */
__kernel void place_moves(__global const int *restrict labels, __global int *kept,
                          __global const float *restrict weights, __global uint *cursors, __global uint *entries, __global int *owners,
                          __global const uint *restrict left_counts, uint unless, uint rows,
                          uint each, uint bins, __local uint *table)
{
    const uint now = rows_now(rows, left_counts, unless);
    uint moved = find_moves(labels, kept, weights, now, each, bins, table);
    for (uint c = (uint)get_local_id(0); c < bins; c += (uint)get_local_size(0)) {
        const uint counted = (table[c] & 0xffff) + (table[c] >> 16);
        if (counted > 0)
            table[c] = atomic_add(&cursors[c], counted);
    }
#if WEIGHTED
    for (uint j = 0; j < each; j++) {
        const uint row = row_of(j, each);
        if (row < now && weights[row] == 0.0f)
            kept[row] = labels[row];
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    while (moved != 0) {
        const uint j = 31 - clz(moved), row = row_of(j, each);
        const int to = labels[row], from = kept[row];
        moved ^= 1u << j;
        uint at = bins > 0 ? atomic_inc(&table[to]) : atomic_inc(&cursors[to]);
        entries[at] = row;
        owners[at] = to;
        if (from >= 0) {
            at = bins > 0 ? atomic_inc(&table[from]) : atomic_inc(&cursors[from]);
            entries[at] = row | KMEANS_ENTRY_LEAVES;
            owners[at] = from;
        }
        kept[row] = to;
    }
}

/* Values in flight at a time. */
#define FLIGHT 8

/* Adds the entries' rows to their clusters: dimension 0 is columns, dimension 1 strides over spans
 * of entries. WEIGHTED: the weights are one more column, of ones. */
__kernel void sum_moves(__global const int *restrict x, __global const int *restrict scales,
                        __global const uint *restrict entries, __global const int *restrict owners,
                        __global const int *restrict row_weights,
                        __global const long *restrict counts, __global long *totals,
                        __global long *weights, uint stride, uint k)
{
    const uint column = (uint)get_global_id(0);
    if (column >= stride + WEIGHTED)
        return;
    const bool ones = WEIGHTED && column == stride;
    __global long *sums = ones ? weights : totals + column;
    const size_t step_of_cluster = ones ? 1 : stride;
    const uint total = (uint)counts[k], step = (uint)get_global_size(1) * KMEANS_MOVES_SPAN;
    const int scale = scales[column];
#if DOUBLES
    const double unit = unit_of(scale);
#endif
    for (uint from = (uint)get_global_id(1) * KMEANS_MOVES_SPAN; from < total; from += step) {
        const uint to = min(total, from + KMEANS_MOVES_SPAN);
        int owner = owners[from];
        long sum = 0;
        for (uint e = from; e < to; e += FLIGHT) {
            uint entry[FLIGHT];
            int owner_of[FLIGHT], bits[FLIGHT];
#pragma unroll
            for (uint i = 0; i < FLIGHT; i++) {
                entry[i] = entries[min(e + i, to - 1)];
                owner_of[i] = owners[min(e + i, to - 1)];
            }
#pragma unroll
            for (uint i = 0; i < FLIGHT; i++)
                bits[i] = ones ? as_int(1.0f)
                               : x[(size_t)(entry[i] & ~KMEANS_ENTRY_LEAVES) * stride + column];
#pragma unroll
            for (uint i = 0; i < FLIGHT; i++) {
                if (e + i >= to)
                    break;
                if (owner_of[i] != owner) {
                    atom_add(&sums[owner * step_of_cluster], sum);
                    owner = owner_of[i];
                    sum = 0;
                }
                const long leaves = entry[i] & KMEANS_ENTRY_LEAVES ? -1 : 0;
#if WEIGHTED
                const long value = fixed_point_weighted(
                    bits[i], row_weights[entry[i] & ~KMEANS_ENTRY_LEAVES], scale);
#elif DOUBLES
                const long value = fixed_point_double(bits[i], unit);
#else
                const long value = fixed_point(bits[i], scale);
#endif
                sum += (value ^ leaves) - leaves;
            }
        }
        atom_add(&sums[owner * step_of_cluster], sum);
    }
}

/* sums[i] becomes own[i] plus the value that arrived from another device, for `count` values
 * starting at `from`. */
__kernel void add_sums(__global long *sums, __global const long *own,
                       __global const long *restrict arrived, ulong from, ulong count)
{
    const size_t i = get_global_id(0);
    if (i < count)
        sums[from + i] = own[from + i] + arrived[i];
}
