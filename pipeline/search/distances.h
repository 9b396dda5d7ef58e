/* distances.h: canonical distances of a few rows from a few others. */
#ifndef CLPIPE_SEARCH_DISTANCES_H
#define CLPIPE_SEARCH_DISTANCES_H

#include <stdint.h>

/* Rows on each side. */
#define DISTANCES_SIDE 4

/* out[i * DISTANCES_SIDE + j]: the squared distance of x[i] from y[j], to the bit that of
 * canonical_distance. Rows have `stride` values, a multiple of KMEANS_LANES; they may be the same. */
typedef void (*distances_function)(double out[DISTANCES_SIDE * DISTANCES_SIDE],
                                   const float *const x[DISTANCES_SIDE],
                                   const float *const y[DISTANCES_SIDE], uint32_t stride);

/* The fastest that this processor can run; name: NULL, or which one (tests: "avx512", "avx2",
 * "plain"). NULL: not here. */
distances_function distances_choose(const char *name);

#endif
