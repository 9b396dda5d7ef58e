/* kmeans_lanes.h: sums KMEANS_LANES float64 lanes held by neighbouring work-items. */
#ifndef CLPIPE_KMEANS_LANES_H
#define CLPIPE_KMEANS_LANES_H

#include "kmeans.h"

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

#endif
