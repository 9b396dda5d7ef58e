/* kmeans_lanes.h: sums KMEANS_LANES float64 lanes held by neighbouring work-items. */
#ifndef CLPIPE_KMEANS_LANES_H
#define CLPIPE_KMEANS_LANES_H

#include "kmeans.h"

#pragma OPENCL EXTENSION cl_khr_fp64 : enable

/* Adds lanes[lid] of each KMEANS_LANES work-items in the order of the canonical distance and leaves
 * the sum with the first of them. Every work-item of the group calls it. */
static void fold_lanes(__local double *lanes, double mine, uint lid)
{
    const uint lane = lid % KMEANS_LANES;
    lanes[lid] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint reach = KMEANS_LANES / 2; reach > 0; reach /= 2) {
        if (lane < reach)
            lanes[lid] += lanes[lid + reach];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Columns in flight at a time. */
#define KMEANS_FLIGHT 8

/* One lane of the canonical distance. */
static inline double lane_sum(__global const float *row, __global const float *centroid,
                              uint stride, uint lane)
{
    double sum = 0.0;
    for (uint from = lane; from < stride; from += KMEANS_FLIGHT * KMEANS_LANES) {
        float values[KMEANS_FLIGHT], others[KMEANS_FLIGHT];
#pragma unroll
        for (uint i = 0; i < KMEANS_FLIGHT; i++) {
            const uint j = min(from + i * KMEANS_LANES, stride - KMEANS_LANES + lane);
            values[i] = row[j];
            others[i] = centroid[j];
        }
#pragma unroll
        for (uint i = 0; i < KMEANS_FLIGHT; i++) {
            const double t = (double)values[i] - (double)others[i];
            sum = from + i * KMEANS_LANES < stride ? fma(t, t, sum) : sum;
        }
    }
    return sum;
}

#endif
