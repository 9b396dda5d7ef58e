/* selftest.h: proves the histogram kernels of a device against the C reference. */
#ifndef CLPIPE_DEVICE_SELFTEST_H
#define CLPIPE_DEVICE_SELFTEST_H

#include "device/histogram.h"

/* Counts pictures of awkward shapes and fills with one built pass and compares every counter with
 * the reference. `brief`, for simulators, uses two fills and no large picture. *wrong: the number
 * of counters that differ. */
enum status histogram_check_pass(uint64_t *compared, uint64_t *wrong, struct histogram *histogram,
                                 unsigned pass, bool brief, struct error *err);

/* Counts pictures of awkward shapes and fills (constant, two values, sorted, gradients, random)
 * with every variant that the device can run and every kind of feature, and compares every counter.
 * Calls line() with a result line for each variant. */
enum status histogram_self_test(struct ocl_context *context, bool brief,
                                void (*line)(const char *text, void *user), void *user,
                                uint64_t *wrong, struct error *err);

#endif
