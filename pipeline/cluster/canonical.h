/* canonical.h: the arithmetic that defines the answer, in plain C.
 *
 * The kernels of kernels/kmeans_exact.cl give the same bits; devices without float64 have these
 * functions called for them on the host. docs/clustering.md says why they are as they are. */
#ifndef CLPIPE_CLUSTER_CANONICAL_H
#define CLPIPE_CLUSTER_CANONICAL_H

#include "kmeans.h"
#include <stdint.h>

/* The squared distance of two rows of `stride` values, a multiple of KMEANS_LANES:
 * with t_j = (double)x_j - (double)c_j, lane l is the chain s = fma(t_j, t_j, s) over j = l, l +
 * 16,
 * ...; then lane l takes lane l + 8, l + 4, l + 2, l + 1. */
double canonical_distance(const float *x, const float *c, uint32_t stride);

/* The sum of up to KMEANS_BLOCK_ROWS values, which are overwritten: missing ones are zero, then
 * value i takes value i + 128, i + 64, ... i + 1. */
double canonical_block_sum(double values[KMEANS_BLOCK_ROWS], uint32_t count);

/* Adds `count` values, a block sum for each KMEANS_BLOCK_ROWS of them, to *sum. */
void canonical_add_blocks(double *sum, const double *values, uint64_t count);

/* A number in [0, 1), a multiple of 2^-53, for each (seed, stream, counter): Philox4x32-10. */
double canonical_random(uint64_t seed, uint32_t stream, uint64_t counter);

/* The least index of the least of the distances to k centroids; *distance is that. */
uint32_t canonical_nearest(double *distance, const float *x, const float *centroids, uint32_t k,
                           uint32_t stride);

/* Adds KMEANS_LANES lanes as the canonical distance does; they are overwritten. */
double canonical_lane_sum(double lanes[KMEANS_LANES]);

/* x times a weight from 0 to 1 as a fixed-point number with 2^scale units to 1: the nearest to the exact
 * product, halves away from zero. The caller chose scale so that |x| < 2^(62 - scale). */
int64_t canonical_fixed(float x, float weight, int scale);

#endif
