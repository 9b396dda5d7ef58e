/* histogram_bins.h: how the host describes the features of a pass to the histogram kernels.
 *
 * The host prepends a prologue with the header of each feature kind (see histogram_bins_rgb.h) and
 * a list of the features:
 *
 *   #include "histogram_bins_rgb.h"
 *   #include "histogram_bins_hsv.h"
 *   #define PASS_BINS 896
 *   #define FEATURES(X) X(0, RGB, 256, 0, 0, 768, 0, 0) X(1, HSV, 8, 4, 4, 128, 768, 768)
 *
 * X(i, KIND, B0, B1, B2, CELL_BINS, OUT, TABLE): CELL_BINS counters per grid cell; OUT: offset of
 * cell 0 in the picture's counters; TABLE: offset of the feature in the table of the pass.
 * PASS_BINS is the sum of all CELL_BINS. */
#ifndef CLPIPE_KERNELS_HISTOGRAM_BINS_H
#define CLPIPE_KERNELS_HISTOGRAM_BINS_H

#include "histogram_tile.h"

#ifndef FEATURES
#error "the host defines FEATURES"
#endif
#ifndef PASS_BINS
#error "the host defines PASS_BINS"
#endif

/* For every function that takes a pointer to a table in local memory. If PoCL 3.1 does not inline
 * such a function but specialises it for the table's address, it gives it a different table from
 * the kernel's, and the counts are lost. */
#define INLINE static inline __attribute__((always_inline))

/* Adds a finished counter to the picture's. A tile that covers its whole cell stores it. */
INLINE void merge(__global uint *out, uint sum, bool whole_cell)
{
    if (whole_cell)
        *out = sum;
    else if (sum)
        atomic_add(out, sum);
}

/* CAT(COUNT_, FORM_RGB) expands to COUNT_CHANNELS. */
#define CAT_(a, b) a##b
#define CAT(a, b)  CAT_(a, b)

#endif
