/* selftest.h: proves the histogram kernels of a device against the C reference. */
#ifndef CLPIPE_DEVICE_SELFTEST_H
#define CLPIPE_DEVICE_SELFTEST_H

#include "device/histogram.h"

/* Builds the kernels of all passes and compares each with the reference on the self-test's
 * pictures, once per device, driver and kernel (results are cached). If one does not build or
 * miscounts, a notice is logged and another variant replaces it. STATUS_FAILED: the variant was
 * requested, or none is left. STATUS_INTERRUPTED: it was abandoned. Other threads may
 * cut tiles meanwhile. */
enum status histogram_prepare(struct histogram *histogram, struct error *err);

/* Counts pictures of awkward shapes and fills (constant, two values, sorted, gradients, random)
 * with every variant that the device can run and every kind of feature, and compares every counter.
 * Calls line() with a result line for each variant. */
enum status histogram_self_test(struct ocl_context *context, bool brief,
                                void (*line)(const char *text, void *user), void *user,
                                uint64_t *wrong, struct error *err);

#endif
