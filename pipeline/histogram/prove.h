/* prove.h: kernels that are used are kernels that were seen to count right. */
#ifndef CLPIPE_HISTOGRAM_PROVE_H
#define CLPIPE_HISTOGRAM_PROVE_H

#include "histogram/histogram.h"

/* Builds the kernels of all passes and has each count the self-test's pictures, once for each
 * device, driver and kernel: what was right is remembered in the cache. One that does not build or
 * counts wrong is passed over with a notice and another variant takes its pass, unless it was asked
 * for: then, and where no variant is left, STATUS_FAILED. STATUS_INTERRUPTED: histogram_abandon.
 * While it runs, other threads may be cutting tiles. */
enum status histogram_prepare(struct histogram *histogram, struct error *err);

#endif
