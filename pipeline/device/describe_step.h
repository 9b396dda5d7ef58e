/* describe_step.h: the steps that compute descriptors (features/descriptor.h) of whole upright RGB
 * images, as contiguous rows of bytes. */
#ifndef CLPIPE_DEVICE_DESCRIBE_STEP_H
#define CLPIPE_DEVICE_DESCRIBE_STEP_H

#include "device/step.h"
#include "features/descriptor.h"

extern const struct step dct_step, sift_step, opsift_step, patch_step;

/* The step for a kind of descriptor; NULL: none. */
const struct step *describe_step(const struct descriptor *descriptor);

#endif
