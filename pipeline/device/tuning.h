/* tuning.h: the fastest variants and shapes measured on a device, kept beside the program cache
 * until the driver or clpipe's kernels change.
 *
 * Features are classified by kind and by table size, small or large. A tuning affects only speed:
 * every kernel is proven before it is used (selftest.h). */
#ifndef CLPIPE_DEVICE_TUNING_H
#define CLPIPE_DEVICE_TUNING_H

#include "device/variant.h"

#define TUNING_CLASSES 6u

/* The class of a feature; TUNING_CLASSES if its kind is not measured. */
unsigned tuning_class_of(const struct feature *feature);
/* "rgb", "joint", "joint-large", ... */
const char *tuning_class_name(unsigned class);
/* The SPEC of the feature measured for the class. */
const char *tuning_class_spec(unsigned class);

struct tuning {
    struct {
        enum histogram_variant variant; /* HISTOGRAM_AUTO: not measured */
        struct histogram_shape shape;
        uint32_t gain; /* speed relative to the default choice, in thousandths */
    } entry[TUNING_CLASSES];
};

/* Loads the tuning of the device; without one all entries are HISTOGRAM_AUTO. Logs a notice if it is
 * damaged. Any thread. */
void tuning_load(struct tuning *out, const struct ocl_device *device);
/* Stores it; the last of several processes wins. STATUS_FAILED: it cannot be stored. */
enum status tuning_save(const struct tuning *tuning, const struct ocl_device *device,
                        struct error *err);
/* Removes it; *found: whether it existed. */
enum status tuning_forget(bool *found, const struct ocl_device *device, struct error *err);

/* The choice for a feature: as measured for its class if the device can run it, else the
 * default. */
struct histogram_choice tuning_choice(const struct tuning *tuning, const struct feature *feature,
                                      const struct ocl_device *device);

#endif
