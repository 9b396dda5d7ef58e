/* tuning.h: what was measured to be the fastest way to count on a device, kept beside the program
 * cache until its driver or clpipe's kernels are others.
 *
 * Features are told apart by what decides how they are best counted: their kind, and whether their
 * table is small or large. A tuning changes speed and never results: whatever it names is proven
 * before it is used (prove.h).
 */
#ifndef CLPIPE_HISTOGRAM_TUNING_H
#define CLPIPE_HISTOGRAM_TUNING_H

#include "histogram/variant.h"

#define TUNING_CLASSES 6u

/* The class of a feature; TUNING_CLASSES: its kind is not measured. */
unsigned tuning_class_of(const struct feature *feature);
/* "rgb", "joint", "joint-large", ... */
const char *tuning_class_name(unsigned class);
/* The feature that is measured for it. */
const char *tuning_class_spec(unsigned class);

struct tuning {
    struct {
        enum histogram_variant variant; /* HISTOGRAM_AUTO: not measured */
        struct histogram_shape shape;
        uint32_t gain; /* its speed in thousandths of the usual choice's */
    } entry[TUNING_CLASSES];
};

/* What is kept for the device, nothing measured where there is none; a notice where it is damaged.
 * Any thread. */
void tuning_load(struct tuning *out, const struct ocl_device *device);
/* Keeps it; of several processes at a time the last one's stays. STATUS_FAILED: it cannot be
 * kept, and why. */
enum status tuning_save(const struct tuning *tuning, const struct ocl_device *device,
                        struct error *err);
/* *found: there was one. */
enum status tuning_forget(bool *found, const struct ocl_device *device, struct error *err);

/* How a feature is to be counted: as measured for its class, where the device can, else as usual.
 */
struct histogram_choice tuning_choice(const struct tuning *tuning, const struct feature *feature,
                                      const struct ocl_device *device);

#endif
