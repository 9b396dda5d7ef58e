/* describe_step.h: the steps that turn whole upright RGB images into descriptors
 * (features/descriptor.h): rows of bytes, one after another. */
#ifndef CLPIPE_STEPS_DESCRIBE_STEP_H
#define CLPIPE_STEPS_DESCRIBE_STEP_H

#include "features/descriptor.h"
#include "staging/step.h"

extern const struct step dct_step, sift_step, opsift_step, patch_step;

/* The step that makes them; NULL: there is none. */
const struct step *describe_step(const struct descriptor *descriptor);

#endif
