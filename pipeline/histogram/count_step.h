/* count_step.h: features of the parts that reach it, as a step of staging. */
#ifndef CLPIPE_HISTOGRAM_COUNT_STEP_H
#define CLPIPE_HISTOGRAM_COUNT_STEP_H

#include "histogram/histogram.h"
#include "staging/step.h"

/* The node's config; its border is what the features' own kernels take off. */
struct count_config {
    const struct feature_set *features;
    struct feature_image image; /* only the features of this image are counted */
    enum histogram_variant variant;
};

extern const struct step count_step;

#endif
