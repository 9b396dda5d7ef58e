/* scale_step.h: the box filter of part/scale.h as a step. */
#ifndef CLPIPE_STEPS_SCALE_STEP_H
#define CLPIPE_STEPS_SCALE_STEP_H

#include "part/scale.h"
#include "staging/step.h"

/* Scales whole RGB images. The node's parameter is the goal (part/scale.h). */
extern const struct step scale_step;

#endif
