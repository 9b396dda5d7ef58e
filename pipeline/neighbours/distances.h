/* distances.h: canonical distances between a few rows and a few others. */
#ifndef CLPIPE_NEIGHBOURS_DISTANCES_H
#define CLPIPE_NEIGHBOURS_DISTANCES_H

#include <stdint.h>

/* Rows on each side. */
#define DISTANCES_SIDE 4

/* out[i * DISTANCES_SIDE + j]: the squared distance of x[i] and y[j], bit-identical to
 * canonical_distance. Rows have `stride` values, a multiple of KMEANS_LANES; rows may repeat.
 * Thread-safe. */
typedef void (*distances_function)(double out[DISTANCES_SIDE * DISTANCES_SIDE],
                                   const float *const x[DISTANCES_SIDE],
                                   const float *const y[DISTANCES_SIDE], uint32_t stride);

/* The fastest version for this processor; name: NULL, or a version (tests: "avx512", "avx2",
 * "plain"). NULL: this processor does not support it. */
distances_function distances_choose(const char *name);

#endif
