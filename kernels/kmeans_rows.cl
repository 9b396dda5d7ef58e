/* kmeans_rows.cl: per-row work outside the distance kernels, without float64: norms, and what the
 * bounds of a tile's rows say about the current centroids.
 *
 * -D TILED=0|1   1: groups have many work-items and share counters in local memory; 0: groups of
 *                one */
#include "kmeans_bounds.h"

#pragma OPENCL FP_CONTRACT OFF

#if !defined(TILED)
#error "TILED must be given"
#endif

#if TILED
#define SPLIT_ROWS        KMEANS_SPLIT_TILED
#define SHARED            __local
#define SHARED_ADD(at, n) atomic_add((at), (n))
#define SHARED_BARRIER()  barrier(CLK_LOCAL_MEM_FENCE)
#else
#define SPLIT_ROWS        KMEANS_SPLIT_CPU
#define SHARED
#define SHARED_ADD(at, n) ((*(at) += (n)) - (n))
#define SHARED_BARRIER()
#endif

/* A lower bound on distances bounded by `lower` before the centroids moved by up to `most`. */
static float lower_after(float lower, float most)
{
    return most > 0.0f ? fma(lower, 1.0f - 0x1p-22f, -most - 0x1p-100f) : lower;
}

/* True if a row is to be searched in full: by these bounds another centroid may be nearer even if
 * the distance to its own has not grown since its bound was `upper`. A heuristic that never changes
 * labels. */
static bool search_in_full(float lower, float upper, float threshold)
{
    return !(lower - upper > threshold);
}

/* norms[i] is an upper bound on the length of row i less the centre, times half_scale squared, a
 * power of two that brings the data's largest value below 1. */
__kernel void row_norms(__global const float *restrict x, __global const float *restrict centre,
                        __global float *norms, uint count, uint stride, float half_scale,
                        float growth, float tiny)
{
    const uint i = (uint)get_global_id(0);
    if (i < count)
        norms[i] = length_bound(
            difference_squares(x + (size_t)i * stride, centre, stride, half_scale), growth, tiny);
}

/* Copies the listed rows of x, in order, to `out` starting at row `to`: dimension 0 is 16 columns
 * each, dimension 1 is the list. */
__kernel void gather_rows(__global const float *restrict x, __global const uint *restrict rows,
                          __global float *restrict out, uint to, uint stride)
{
    const uint column = (uint)get_global_id(0) * 16;
    const uint i = (uint)get_global_id(1);
    vstore16(vload16(0, x + (size_t)rows[i] * stride + column), 0,
             out + (size_t)(to + i) * stride + column);
}

#if TILED
/* Plans a pass from shifts on the device: threshold j is the shift of rank ranks[j] (0: the
 * largest; rank k and beyond: 0); clears the counts of shift_bounds. A group ranks KMEANS_RANKED of
 * the k shifts among all of them, each work-item comparing with a share of them. Shifts are not
 * negative. */
__kernel __attribute__((reqd_work_group_size(KMEANS_SCAN_ITEMS, 1, 1))) void
rank_shifts(__global const float *restrict shift, __global uint *plan, uint k, uint candidates,
            uint16 ranks)
{
    __local float ranked[KMEANS_RANKED];
    __local uint above[(KMEANS_RANKED + 1) * KMEANS_SCAN_ITEMS];
    __local uint rank_of[KMEANS_CANDIDATES];
    const uint lid = (uint)get_local_id(0), group = (uint)get_group_id(0);
    const uint first = group * KMEANS_RANKED;
    if (lid < KMEANS_RANKED)
        ranked[lid] = shift[min(first + lid, k - 1)];
    if (lid == 0)
        vstore16(ranks, 0, rank_of);
    barrier(CLK_LOCAL_MEM_FENCE);
    uint before[KMEANS_RANKED], moved = 0;
#pragma unroll
    for (uint t = 0; t < KMEANS_RANKED; t++)
        before[t] = 0;
    for (uint i = lid; i < k; i += KMEANS_SCAN_ITEMS) {
        const float other = shift[i];
        moved += other > 0.0f;
#pragma unroll
        for (uint t = 0; t < KMEANS_RANKED; t++)
            before[t] += other > ranked[t] || (other == ranked[t] && i < first + t);
    }
#pragma unroll
    for (uint t = 0; t < KMEANS_RANKED; t++)
        above[t * KMEANS_SCAN_ITEMS + lid] = before[t];
    above[KMEANS_RANKED * KMEANS_SCAN_ITEMS + lid] = moved;
    for (uint reach = KMEANS_SCAN_ITEMS / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint t = 0; t <= KMEANS_RANKED && lid < reach; t++)
            above[t * KMEANS_SCAN_ITEMS + lid] += above[t * KMEANS_SCAN_ITEMS + lid + reach];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint j = 0; j < candidates && lid < KMEANS_RANKED && first + lid < k; j++)
        if (rank_of[j] == above[lid * KMEANS_SCAN_ITEMS])
            plan[j] = as_uint(ranked[lid]);
    if (group > 0)
        return;
    if (lid < candidates && rank_of[lid] >= k)
        plan[lid] = 0;
    if (lid == 0)
        plan[KMEANS_PLAN_MOVED] = above[KMEANS_RANKED * KMEANS_SCAN_ITEMS];
    if (lid < KMEANS_CANDIDATES + 2)
        plan[KMEANS_PLAN_FOUND + lid] = 0;
}

/* One group: lists the ids of the k centroids that have moved by more than `threshold`, ascending,
 * and fills the rest of `room` places with -1. */
__kernel __attribute__((reqd_work_group_size(KMEANS_SCAN_ITEMS, 1, 1))) void
list_moved(__global const float *restrict shift, __global int *ids, uint k, uint room,
            float threshold)
{
    __local uint sums[KMEANS_SCAN_ITEMS];
    const uint lid = (uint)get_local_id(0);
    const uint each = (k + KMEANS_SCAN_ITEMS - 1) / KMEANS_SCAN_ITEMS;
    const uint from = min(k, lid * each), to = min(k, from + each);
    uint listed = 0;
    for (uint c = from; c < to; c++)
        listed += shift[c] > threshold;
    scan_sums(sums, lid, listed);
    uint at = sums[lid] - listed;
    for (uint c = from; c < to; c++)
        if (shift[c] > threshold)
            ids[at++] = (int)c;
    for (uint i = sums[KMEANS_SCAN_ITEMS - 1] + lid; i < room; i += KMEANS_SCAN_ITEMS)
        ids[i] = -1;
}
#endif

/* A row keeps two bounds on its distances: `upper` for its own centroid, `lower` for all others.
 * Centroids have moved by at most shift[]. Updates `upper`, and adds to found[j] the rows for which
 * threshold j of the plan (ascending: the largest shift of a centroid that is not scored one by
 * one) is the first that requires a full search; to found[candidates] the rows for which none does,
 * and to found[candidates + 1] those of them that the last one leaves undecided until their own
 * distance is known. `found` is that part of the plan. A group takes SPLIT_ROWS rows per work-item;
 * neighbouring work-items take neighbouring rows. */
__kernel void shift_bounds(__global const int *restrict labels, __global float *upper,
                         __global const float *restrict lower, __global const float *restrict shift,
                         __global const uint *restrict left_counts, uint unless,
                         __global uint *plan, uint rows, uint candidates)
{
    SHARED uint found[KMEANS_CANDIDATES + 2];
    SHARED float thresholds[KMEANS_CANDIDATES];
    const uint lid = (uint)get_local_id(0), items = (uint)get_local_size(0);
    const uint first = (uint)get_group_id(0) * items * SPLIT_ROWS;
    const uint count = rows_now(rows, left_counts, unless);
    for (uint j = lid; j < KMEANS_CANDIDATES + 2; j += items)
        found[j] = 0;
    for (uint j = lid; j < candidates; j += items)
        thresholds[j] = as_float(plan[j]);
    SHARED_BARRIER();
    for (uint r = 0, i = first + lid; r < SPLIT_ROWS && i < count; r++, i += items) {
        const float moved = shift[labels[i]], before = upper[i], others = lower[i];
        const float now = moved > 0.0f ? (before + moved + 0x1p-100f) * (1.0f + 0x1p-22f) : before;
        upper[i] = now;
        uint j = 0;
        while (j < candidates && !search_in_full(others, before, thresholds[j]))
            j++;
        SHARED_ADD(&found[j], 1);
        if (j == candidates && !(lower_after(others, thresholds[candidates - 1]) > now))
            SHARED_ADD(&found[candidates + 1], 1);
    }
    SHARED_BARRIER();
    for (uint j = lid; j < candidates + 2; j += items)
        if (found[j] > 0)
            atomic_add(&plan[KMEANS_PLAN_FOUND + j], found[j]);
}

/* Splits rows by what is left to do: a search among all centroids (list full), a search among those
 * that moved by more than `threshold` (list partial; if there are none, only the distance to the
 * own centroid, if that may be enough), or nothing. `most` is the largest shift. The order within
 * the lists does not matter. */
__kernel void split_rows(__global const int *restrict labels, __global const float *restrict upper,
                         __global float *lower, __global const float *restrict shift,
                         __global uint *full, __global uint *partial, __global uint *counts,
                         uint count, float threshold, float most)
{
    SHARED uint wanted[2], at[2];
    const uint lid = (uint)get_local_id(0), items = (uint)get_local_size(0);
    const uint first = (uint)get_group_id(0) * items * SPLIT_ROWS;
    uint is_full = 0, is_partial = 0;
    if (lid == 0)
        wanted[0] = wanted[1] = 0;
    SHARED_BARRIER();
    for (uint r = 0, i = first + lid; r < SPLIT_ROWS && i < count; r++, i += items) {
        const float others = lower[i], now = upper[i];
        if (lower_after(others, most) > now) {
            lower[i] = lower_after(others, most);
        } else if (search_in_full(others, now - shift[labels[i]], threshold)) {
            is_full |= 1u << r;
        } else {
            lower[i] = lower_after(others, threshold);
            is_partial |= 1u << r;
        }
    }
    const uint full_rows = popcount(is_full), partial_rows = popcount(is_partial);
    const uint full_from = full_rows > 0 ? SHARED_ADD(&wanted[0], full_rows) : 0;
    const uint partial_from = partial_rows > 0 ? SHARED_ADD(&wanted[1], partial_rows) : 0;
    SHARED_BARRIER();
    if (lid == 0)
        for (uint l = 0; l < 2; l++)
            at[l] = wanted[l] > 0 ? atomic_add(&counts[l], wanted[l]) : 0;
    SHARED_BARRIER();
    uint at_full = at[0] + full_from, at_partial = at[1] + partial_from;
    for (uint r = 0, i = first + lid; r < SPLIT_ROWS && i < count; r++, i += items) {
        if (is_full >> r & 1)
            full[at_full++] = i;
        if (is_partial >> r & 1)
            partial[at_partial++] = i;
    }
}

/* Lowers `upper` to the current distance to the own centroid for the counts[1] rows listed:
 * KMEANS_LANES work-items per row. */
__kernel __attribute__((reqd_work_group_size(KMEANS_OWN_ITEMS, 1, 1))) void
own_lengths(__global const float *restrict x, __global const float *restrict centroids,
            __global const int *restrict labels, __global float *upper,
            __global const uint *restrict rows, __global const uint *restrict counts, uint stride,
            float half_scale, float growth, float tiny, float4 bounds)
{
    __local float lanes[KMEANS_OWN_ITEMS];
    const uint lid = (uint)get_local_id(0), lane = lid % KMEANS_LANES;
    const uint i = (uint)(get_global_id(0) / KMEANS_LANES), count = counts[1];
    const uint at = i < count ? rows[i] : 0;
    float sum = 0.0f;
    if (i < count)
        sum = difference_part(x + (size_t)at * stride, centroids + (size_t)labels[at] * stride,
                              stride, lane, half_scale);
    lanes[lid] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i >= count || lane > 0)
        return;
    for (uint l = 1; l < KMEANS_LANES; l++)
        sum += lanes[lid + l];
    upper[at] = fmin(upper[at], length_bound(sum, growth, tiny) + bounds.w);
}
