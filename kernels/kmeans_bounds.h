/* kmeans_bounds.h: bounds on a row's distances, from its scores. docs/clustering.md derives them.
 *
 * A distance here is a length in units of 2^R, R being the data's exponent: rows are less than 1 in
 * every column, so neither lengths nor their squares overflow, and what float32 loses of tiny ones
 * is covered by additions that are small in these units. */
#ifndef CLPIPE_KMEANS_BOUNDS_H
#define CLPIPE_KMEANS_BOUNDS_H

#include "kmeans.h"

/* Stands for every longer distance, so that shifts can be taken from it. */
#define FARTHEST 0x1p60f

/* What bounds need of data and filter:
 *   x  squared distances for one unit of a score
 *   y  a row's norm, squared, times this is not above the square of its length
 *   z  what rounding to zero can take from a square
 *   w  the same for a length */

/* An upper bound on the distance of a row, from an upper bound on its score. */
static inline float near_bound(float limit, float norm, float4 bounds)
{
    const float square = norm * norm;
    const float slack = fma(0x1p-20f, fma(fabs(limit), bounds.x, square), bounds.z);
    const float most = fma(limit, bounds.x, square) + slack;
    return most < INFINITY ? sqrt(fmax(most, 0.0f)) * (1.0f + 0x1p-19f) : INFINITY;
}

/* A lower bound on the distance of a row, from a lower bound on its score. */
static inline float far_bound(float score, float norm, float4 bounds)
{
    /* Lanes without a centroid. */
    if (!(score < 1e20f))
        return FARTHEST;
    const float square = norm * norm;
    const float slack = fma(0x1p-20f, fma(fabs(score), bounds.x, square), bounds.z);
    const float least = fma(score, bounds.x, square * bounds.y) - slack;
    return least > 0.0f ? fmin(sqrt(least) * (1.0f - 0x1p-19f), FARTHEST) : 0.0f;
}

/* A lower bound on the distance to any centroid but the own one, `label`, after a search among some:
 * centroid `id` has the least score, `best`, and `second` is the next; `far` is a lower bound for the
 * centroids that were not searched. */
static inline float far_among_some(float far, float best, float second, int id, int label,
                                   float norm, float4 bounds)
{
    const float rest = fmin(far, far_bound(second, norm, bounds));
    return id == label ? rest : fmin(rest, far_bound(best, norm, bounds));
}

/* A row's label after such a search; -1 where it is undecided. near is what length_bound found for
 * the own centroid, or less. near and far follow. */
static inline int label_among_some(float *near, float *far, float best, float second, int id,
                                   int label, float limit, float norm, float4 bounds)
{
    const float others = far_among_some(*far, best, second, id, label, norm, bounds);
    if (others > *near) {
        *far = others;
        return label;
    }
    if (id == label)
        return -1;
    const float rest = fmin(*far, far_bound(second, norm, bounds));
    const float reach = near_bound(limit, norm, bounds);
    const float left = fmin(rest, fma(*near, bounds.y, -2.0f * bounds.w));
    if (!(left > reach))
        return -1;
    *near = reach;
    *far = left;
    return id;
}

/* Not below the length of the difference whose float32 sum of squares, in these units, is `total`;
 * but for bounds.w, if both sides may have values that are rounded to zero. */
static inline float length_bound(float total, float growth, float tiny)
{
    return sqrt(fma(total, growth, tiny)) * (1.0f + 0x1p-19f);
}

/* One of KMEANS_LANES parts of the sum of squares of row - from, in these units: columns lane, lane +
 * KMEANS_LANES, ... */
static inline float difference_part(__global const float *row, __global const float *from,
                                    uint stride, uint lane, float half_scale)
{
    float sum = 0.0f;
    for (uint begin = 0; begin < stride; begin += KMEANS_FILTER_COLUMNS) {
        float part = 0.0f;
        for (uint j = begin + lane; j < min(stride, begin + KMEANS_FILTER_COLUMNS);
             j += KMEANS_LANES) {
            const float value = (row[j] - from[j]) * half_scale * half_scale;
            part = fma(value, value, part);
        }
        sum += part;
    }
    return sum;
}

/* The sum of squares of row - from, in these units. */
static inline float difference_squares(__global const float *row, __global const float *from,
                                       uint stride, float half_scale)
{
    float total = 0.0f;
    for (uint begin = 0; begin < stride; begin += KMEANS_FILTER_COLUMNS) {
        const uint end = min(stride, begin + KMEANS_FILTER_COLUMNS);
        float16 sum = (float16)(0.0f);
        for (uint j = begin; j < end; j += 16) {
            float16 value = vload16(0, row + j) - vload16(0, from + j);
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
    return total;
}

#endif
