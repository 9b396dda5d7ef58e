/* kmeans_rows.cl: what is done to each row outside the distance kernels, without float64: norms,
 * and the split of a tile's rows by whether their centroid moved. */
#include "kmeans.h"

#pragma OPENCL FP_CONTRACT OFF

/* norms[i] is an upper bound on the length of row i less the centre, times half * half, which is a
 * power of two that brings the data's largest value below 1. */
__kernel void row_norms(__global const float *restrict x, __global const float *restrict centre,
                        __global float *norms, uint count, uint stride, float half_scale,
                        float growth, float tiny)
{
    const uint i = (uint)get_global_id(0);
    if (i >= count)
        return;
    __global const float *row = x + (size_t)i * stride;
    float total = 0.0f;
    for (uint from = 0; from < stride; from += KMEANS_FILTER_COLUMNS) {
        const uint to = min(stride, from + KMEANS_FILTER_COLUMNS);
        float16 sum = (float16)(0.0f);
        for (uint j = from; j < to; j += 16) {
            float16 value = vload16(0, row + j) - vload16(0, centre + j);
            value = value * half_scale * half_scale;
            sum = fma(value, value, sum);
        }
        /* By way of memory, as in kmeans_exact.cl. */
        float lane[16];
        vstore16(sum, 0, lane);
        float part = 0.0f;
        for (int l = 0; l < 16; l++)
            part += lane[l];
        total += part;
    }
    norms[i] = sqrt(fma(total, growth, tiny)) * (1.0f + 0x1p-19f);
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

/* Splits rows into those that need a full search (their centroid moved, or their score is not
 * known) and those for which only moved centroids can be nearer than their own. Each work-item does
 * KMEANS_SPLIT_ROWS of them. The order within the lists does not matter. */
__kernel void split_rows(__global const int *restrict labels, __global const float *restrict scores,
                         __global const uchar *restrict moved, __global uint *full,
                         __global uint *partial, __global uint *counts, uint count)
{
    const uint from = (uint)get_global_id(0) * KMEANS_SPLIT_ROWS;
    if (from >= count)
        return;
    const uint to = min(count, from + KMEANS_SPLIT_ROWS);
    uint wanted = 0;
    for (uint i = from; i < to; i++)
        wanted += moved[labels[i]] || isnan(scores[i]) ? 1 : 0;
    uint at_full = atomic_add(&counts[0], wanted);
    uint at_partial = atomic_add(&counts[1], to - from - wanted);
    for (uint i = from; i < to; i++) {
        if (moved[labels[i]] || isnan(scores[i]))
            full[at_full++] = i;
        else
            partial[at_partial++] = i;
    }
}
