/* scale_step.h: the box filter of part/scale.h as a step. */
#ifndef CLPIPE_STEPS_SCALE_STEP_H
#define CLPIPE_STEPS_SCALE_STEP_H

#include "part/scale.h"
#include "staging/step.h"

/* Whole RGB images to scaled ones. The node's parameter is the side, at most SCALE_SIDE_MAX. */
extern const struct step scale_step;

#endif
