/* prove.h: proves kernels before they are used. */
#ifndef CLPIPE_DEVICE_PROVE_H
#define CLPIPE_DEVICE_PROVE_H

#include "device/histogram.h"

/* Builds the kernels of all passes and compares each with the reference on the self-test's
 * pictures, once per device, driver and kernel (results are cached). If one does not build or
 * miscounts, a notice is logged and another variant replaces it. STATUS_FAILED: the variant was
 * requested, or none is left. STATUS_INTERRUPTED: histogram_abandon was called. Other threads may
 * cut tiles meanwhile. */
enum status histogram_prepare(struct histogram *histogram, struct error *err);

#endif
