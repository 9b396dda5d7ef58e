/* prove.h: kernels that are used are kernels that were seen to count right. */
#ifndef CLPIPE_HISTOGRAM_PROVE_H
#define CLPIPE_HISTOGRAM_PROVE_H

#include "histogram/blur.h"
#include "histogram/histogram.h"
#include "histogram/reconstruct.h"

/* Builds the kernels of all passes and has each count the self-test's pictures, once for each
 * device, driver and kernel: what was right is remembered in the cache. One that does not build or
 * counts wrong is passed over with a notice and another variant takes its pass, unless it was asked
 * for: then, and where no variant is left, STATUS_FAILED. STATUS_INTERRUPTED: histogram_abandon.
 * While it runs, other threads may be cutting tiles. */
enum status histogram_prepare(struct histogram *histogram, struct error *err);

/* The same for the blur, of which there is only one kernel. */
enum status blur_prepare(struct blur *blur, struct ocl_context *context, struct error *err);

/* And for the pixels of JPEG coefficients, which the host can make instead. */
enum status reconstruct_prepare(struct reconstruct *reconstruct, struct ocl_context *context,
                                struct error *err);

#endif
