/* kmeans_bounds.h: bounds on a row's distances, derived from its scores (docs/clustering.md).
 *
 * Distances are lengths in units of 2^R, R being the exponent of the data: every value of a row is
 * below 1, so neither lengths nor their squares overflow, and small additive terms cover what
 * float32 loses of tiny ones. */
#ifndef CLPIPE_KMEANS_BOUNDS_H
#define CLPIPE_KMEANS_BOUNDS_H

#include "kmeans.h"

/* Stands for any longer distance, so that shifts can be subtracted from it. */
#define FARTHEST 0x1p60f

/* What the bounds need to know about data and filter:
 *   x  squared distance per unit of score
 *   y  a squared norm times this is at most the row's squared length
 *   z  the most that flushing to zero can take from a square
 *   w  the same for a length */

/* Upper bound on the distance of a row, given an upper bound on its score. */
static inline float near_bound(float limit, float norm, float4 bounds)
{
    const float square = norm * norm;
    const float slack = fma(0x1p-20f, fma(fabs(limit), bounds.x, square), bounds.z);
    const float most = fma(limit, bounds.x, square) + slack;
    return most < INFINITY ? sqrt(fmax(most, 0.0f)) * (1.0f + 0x1p-19f) : INFINITY;
}

/* Lower bound on the distance of a row, given a lower bound on its score. */
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

/* Lower bound on the distance to any centroid other than the row's own, `label`, after a search
 * among some: centroid `id` has the lowest score, `best`, and `second` is the next; `far` is a
 * lower bound for the centroids not searched. */
static inline float far_among_some(float far, float best, float second, int id, int label,
                                   float norm, float4 bounds)
{
    const float rest = fmin(far, far_bound(second, norm, bounds));
    return id == label ? rest : fmin(rest, far_bound(best, norm, bounds));
}

/* The row's label after such a search; -1 if undecided. *near is at most the result of length_bound
 * for the row's own centroid. Updates *near and *far. */
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

/* Upper bound on the length of a difference whose float32 sum of squares, in these units, is
 * `total`; up to bounds.w if both operands may have values flushed to zero. */
static inline float length_bound(float total, float growth, float tiny)
{
    return sqrt(fma(total, growth, tiny)) * (1.0f + 0x1p-19f);
}

/* One of KMEANS_LANES partial sums of the squares of row - from, in these units: columns lane, lane
 * + KMEANS_LANES, ... */
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
        /* Goes through memory, as in kmeans_exact.cl. */
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
