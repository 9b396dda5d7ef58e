/* words_step.h: aggregates an image's descriptors with a codebook: counts the descriptors nearest
 * to each word (words=K), or sums around the words (fisher=K). */
#ifndef CLPIPE_DEVICE_WORDS_STEP_H
#define CLPIPE_DEVICE_WORDS_STEP_H

#include "device/step.h"
#include "features/feature.h"

/* Adds descriptors to the words of a row. The node's config is the struct feature, which must have
 * a codebook when the step is opened. */
extern const struct step words_step;

#endif
