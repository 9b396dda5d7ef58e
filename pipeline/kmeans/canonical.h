/* canonical.h: the arithmetic that defines the result, in plain C.
 *
 * The kernels of kernels/kmeans_exact.cl give the same bits; for devices without float64 these
 * functions run on the host. docs/clustering.md gives the reasons. All functions are
 * thread-safe. */
#ifndef CLPIPE_KMEANS_CANONICAL_H
#define CLPIPE_KMEANS_CANONICAL_H

#include "kmeans.h"
#include <stdint.h>

/* The squared distance of two rows of `stride` values, a multiple of KMEANS_LANES: with t_j =
 * (double)x_j - (double)c_j, lane l is the chain s = fma(t_j, t_j, s) over j = l, l + 16, ...; then
 * lane l adds lane l + 8, l + 4, l + 2, l + 1. */
double canonical_distance(const float *x, const float *c, uint32_t stride);

/* The sum of up to KMEANS_BLOCK_ROWS values, which it overwrites: missing ones are zero, then value
 * i adds value i + 128, i + 64, ... i + 1. */
double canonical_block_sum(double values[KMEANS_BLOCK_ROWS], uint32_t count);

/* Adds `count` values to *sum, one block sum per KMEANS_BLOCK_ROWS of them. */
void canonical_add_blocks(double *sum, const double *values, uint64_t count);

/* A multiple of 2^-53 in [0, 1) for each (seed, stream, counter): Philox4x32-10. */
double canonical_random(uint64_t seed, uint32_t stream, uint64_t counter);

/* The index of the nearest of k centroids (ties: the lowest); *distance: its squared distance. */
uint32_t canonical_nearest(double *distance, const float *x, const float *centroids, uint32_t k,
                           uint32_t stride);

/* Adds KMEANS_LANES lanes as the canonical distance does; overwrites them. */
double canonical_lane_sum(double lanes[KMEANS_LANES]);

/* x times a weight from 0 to 1 as a fixed-point number with 2^scale units per 1: the exact product
 * rounded to nearest, halves away from zero. Requires |x| < 2^(62 - scale). */
int64_t canonical_fixed(float x, float weight, int scale);

#endif
