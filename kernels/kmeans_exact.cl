/* kmeans_exact.cl: the canonical distance and the decisions based on it, on devices with float64.
 * pipeline/cluster/canonical.c gives the same bits.
 *
 * -D GROUP=n      work-items of a group (1 on CPUs, where a work-item's vectors do the work)
 * -D SPAN=1|16    lanes of a panel that a work-item scores at once
 *
 * What are options of the filter are arguments here: these kernels see few rows, and each variant
 * takes seconds to build. */
#include "kmeans.h"

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
    double sum = 0.0;
    for (uint j = lid % KMEANS_LANES; j < stride; j += KMEANS_LANES) {
        const double t = (double)x[j] - (double)c[j];
        sum = fma(t, t, sum);
    }
    fold_lanes(lanes, sum, lid);
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

/* Seeding: for each block of rows and each candidate, the sum of weights if that candidate were
 * chosen: weight[i] * min(distances[i], distance to the candidate). Clears bits of `mask` where the
 * candidate is not nearer. A group per block. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
seed_exact(__global const float *restrict x, __global const float *restrict candidates,
           __global uint *mask, __global const double *restrict distances,
           __global const double *restrict weights, __global double *sums, uint count, uint stride,
           uint trials, uint weighted)
{
    __local double value[KMEANS_BLOCK_ROWS];
    const uint lid = (uint)get_local_id(0);
    const uint first = (uint)get_group_id(0) * KMEANS_BLOCK_ROWS;
    const uint rows = min(count - first, (uint)KMEANS_BLOCK_ROWS);
    for (uint trial = 0; trial < trials; trial++) {
        for (uint i = lid; i < KMEANS_BLOCK_ROWS; i += GROUP) {
            double least = 0.0;
            if (i < rows) {
                least = distances[first + i];
                if (mask[first + i] >> trial & 1) {
                    double other = canonical(x + (size_t)(first + i) * stride,
                                             candidates + (size_t)trial * stride, stride);
                    if (other < least)
                        least = other;
                    else
                        mask[first + i] &= ~(1u << trial);
                }
                if (weighted)
                    least *= weights[first + i];
            }
            value[i] = least;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint reach = KMEANS_BLOCK_ROWS / 2; reach > 0; reach /= 2) {
            for (uint i = lid; i < reach; i += GROUP)
                value[i] += value[i + reach];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lid == 0)
            sums[(size_t)get_group_id(0) * KMEANS_TRIALS_MAX + trial] = value[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* Seeding: chooses one candidate. Rows that it is nearer to (all rows, if first) get its distance,
 * and the threshold that the filter's scores are compared with. */
__kernel void seed_commit(__global const float *restrict x,
                          __global const float *restrict candidates,
                          __global const uint *restrict mask, __global const float *restrict centre,
                          __global double *distances, __global float *thresholds, uint count,
                          uint stride, uint trial, uint all, double scale)
{
    const uint i = (uint)get_global_id(0);
    if (i >= count || !(all || (mask[i] >> trial & 1)))
        return;
    __global const float *row = x + (size_t)i * stride;
    double distance = canonical(row, candidates + (size_t)trial * stride, stride);
    if (!all && distance >= distances[i])
        return;
    double length = canonical(row, centre, stride);
    distances[i] = distance;
    thresholds[i] =
        convert_float_rtp(scale * (distance * (1 + 0x1p-30) - length * (1 - 0x1p-30)) + 0x1p-100);
}
