/* count_step.h: a step of staging that counts the histogram features of parts. */
#ifndef CLPIPE_DEVICE_COUNT_STEP_H
#define CLPIPE_DEVICE_COUNT_STEP_H

#include "device/histogram.h"
#include "device/step.h"

/* Config of the step's node; its border is the one that the features' own kernels need. */
struct count_config {
    const struct feature_set *features;
    struct feature_image image; /* only features of this image are counted */
    enum histogram_variant variant;
};

extern const struct step count_step;

#endif
