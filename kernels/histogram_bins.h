/* histogram_bins.h: what the host tells all histogram kernels of the features of a pass.
 *
 * It puts a prologue before the kernel, with the header of each kind of feature (histogram_bins_rgb.h says what
 * is in it) and a list of the features:
 *
 *   #include "histogram_bins_rgb.h"
 *   #include "histogram_bins_hsv.h"
 *   #define PASS_BINS 896
 *   #define FEATURES(X) X(0, RGB, 256, 0, 0, 768, 0, 0) X(1, HSV, 8, 4, 4, 128, 768, 768)
 *
 * X(i, KIND, B0, B1, B2, CELL_BINS, OUT, TABLE): CELL_BINS counters a grid cell; OUT is where cell 0
 * begins in a picture's counters; TABLE where the feature begins in the table of the pass.
 * PASS_BINS is the sum of the CELL_BINS.
 */
#ifndef CLPIPE_KERNELS_HISTOGRAM_BINS_H
#define CLPIPE_KERNELS_HISTOGRAM_BINS_H

#include "histogram_tile.h"

#ifndef FEATURES
#error "the host defines FEATURES"
#endif
#ifndef PASS_BINS
#error "the host defines PASS_BINS"
#endif

/* For whatever is handed a pointer to a table in local memory. PoCL 3.1 gives a function that its
 * compiler leaves out of line, and has put the table's address into, another table than the kernel's:
 * what is counted there is lost. */
#define INLINE static inline __attribute__((always_inline))

/* CAT(COUNT_, FORM_RGB) is COUNT_CHANNELS. */
#define CAT_(a, b) a##b
#define CAT(a, b)  CAT_(a, b)

#endif
