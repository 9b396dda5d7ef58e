/* kmeans_rows.cl: what is done to each row outside the distance kernels, without float64: norms, and
 * what the bounds of a tile's rows say about the centroids of now. */
#include "kmeans_bounds.h"

#pragma OPENCL FP_CONTRACT OFF

/* True where a row is to be searched in full: others may be nearer by these bounds, even if its own
 * distance has not grown since it was `near`. A guess: whatever it says, labels are the same. */
static bool hopeless(float far, float near, float threshold)
{
    return !(far - near > threshold);
}

/* norms[i] is an upper bound on the length of row i less the centre, times half * half, which is a
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

/* Rows of x, in the order of the list, from row `to` of `out` on: dimension 0 is 16 columns each,
 * dimension 1 is the list. */
__kernel void gather_rows(__global const float *restrict x, __global const uint *restrict rows,
                          __global float *restrict out, uint to, uint stride)
{
    const uint column = (uint)get_global_id(0) * 16;
    const uint i = (uint)get_global_id(1);
    vstore16(vload16(0, x + (size_t)rows[i] * stride + column), 0,
             out + (size_t)(to + i) * stride + column);
}

/* A row keeps two bounds on its distances: `near` is not below that to its own centroid, `far` not
 * above that to any other. Centroids have moved by at most drift[]: near follows here, and counts[j]
 * becomes how many rows would have to be searched in full first at thresholds[j] (ascending: how far
 * the centroids may have moved that are not scored one by one). counts[candidates] is of rows that
 * none does it to, counts[candidates + 1] those of them that the last one leaves in doubt until their
 * own distance is known. Each work-item does KMEANS_SPLIT_ROWS of them. */
__kernel void drift_rows(__global const int *restrict labels, __global float *near,
                         __global const float *restrict far, __global const float *restrict drift,
                         __global const float *restrict thresholds, __global uint *counts,
                         uint count, uint candidates)
{
    const uint from = (uint)get_global_id(0) * KMEANS_SPLIT_ROWS;
    uint found[KMEANS_CANDIDATES + 2];
    for (uint j = 0; j < KMEANS_CANDIDATES + 2; j++)
        found[j] = 0;
    for (uint i = from; i < min(count, from + KMEANS_SPLIT_ROWS); i++) {
        const float moved = drift[labels[i]], before = near[i];
        const float now = moved > 0.0f ? (before + moved + 0x1p-100f) * (1.0f + 0x1p-22f) : before;
        near[i] = now;
        uint j = 0;
        while (j < candidates && !hopeless(far[i], before, thresholds[j]))
            j++;
        found[j]++;
        if (j == candidates && !(far[i] - now > thresholds[candidates - 1]))
            found[candidates + 1]++;
    }
    for (uint j = 0; j < candidates + 2; j++)
        if (found[j] > 0)
            atomic_add(&counts[j], found[j]);
}

/* Splits rows by what is left to do: a search among all centroids (list full), a search among those
 * that moved by more than `threshold` (list partial; or, where there are none, only the distance to
 * the own centroid, if that may be enough), or nothing. The order within the lists does not
 * matter. */
__kernel void split_rows(__global const int *restrict labels, __global const float *restrict near,
                         __global float *far, __global const float *restrict drift,
                         __global uint *full, __global uint *partial, __global uint *counts,
                         uint count, float threshold, uint movers)
{
    const uint from = (uint)get_global_id(0) * KMEANS_SPLIT_ROWS;
    if (from >= count)
        return;
    const uint to = min(count, from + KMEANS_SPLIT_ROWS);
    uint is_full[KMEANS_SPLIT_ROWS / 32] = {0}, is_partial[KMEANS_SPLIT_ROWS / 32] = {0};
    uint wanted_full = 0, wanted_partial = 0;
    for (uint i = from; i < to; i++) {
        const uint word = (i - from) / 32, bit = 1u << (i - from) % 32;
        if (hopeless(far[i], near[i] - drift[labels[i]], threshold)) {
            is_full[word] |= bit;
            wanted_full++;
            continue;
        }
        if (threshold > 0.0f)
            far[i] = fma(far[i], 1.0f - 0x1p-22f, -threshold - 0x1p-100f);
        if (movers || !(far[i] > near[i])) {
            is_partial[word] |= bit;
            wanted_partial++;
        }
    }
    uint at_full = wanted_full > 0 ? atomic_add(&counts[0], wanted_full) : 0;
    uint at_partial = wanted_partial > 0 ? atomic_add(&counts[1], wanted_partial) : 0;
    for (uint i = from; i < to; i++) {
        const uint word = (i - from) / 32, bit = 1u << (i - from) % 32;
        if (is_full[word] & bit)
            full[at_full++] = i;
        if (is_partial[word] & bit)
            partial[at_partial++] = i;
    }
}

/* Brings `near` down to what the distance to the own centroid is now, for the counts[1] rows listed:
 * KMEANS_LANES work-items to each. */
__kernel __attribute__((reqd_work_group_size(KMEANS_OWN_ITEMS, 1, 1))) void
own_lengths(__global const float *restrict x, __global const float *restrict centroids,
            __global const int *restrict labels, __global float *near,
            __global const uint *restrict rows, __global const uint *restrict counts, uint stride, float half_scale, float growth,
            float tiny, float4 bounds)
{
    __local float lanes[KMEANS_OWN_ITEMS];
    const uint lid = (uint)get_local_id(0), lane = lid % KMEANS_LANES;
    const uint i = (uint)(get_global_id(0) / KMEANS_LANES), count = counts[1];
    const uint at = i < count ? rows[i] : 0;
    float sum = 0.0f;
    if (i < count) {
        __global const float *row = x + (size_t)at * stride;
        __global const float *own = centroids + (size_t)labels[at] * stride;
        for (uint begin = 0; begin < stride; begin += KMEANS_FILTER_COLUMNS) {
            float part = 0.0f;
            for (uint j = begin + lane; j < min(stride, begin + KMEANS_FILTER_COLUMNS);
                 j += KMEANS_LANES) {
                const float value = (row[j] - own[j]) * half_scale * half_scale;
                part = fma(value, value, part);
            }
            sum += part;
        }
    }
    lanes[lid] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i >= count || lane > 0)
        return;
    for (uint l = 1; l < KMEANS_LANES; l++)
        sum += lanes[lid + l];
    near[at] = fmin(near[at], length_bound(sum, growth, tiny) + bounds.w);
}
