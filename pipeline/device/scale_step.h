/* scale_step.h: the box filter of decode/scale.h as a step. */
#ifndef CLPIPE_DEVICE_SCALE_STEP_H
#define CLPIPE_DEVICE_SCALE_STEP_H

#include "decode/scale.h"
#include "device/step.h"

/* Scales whole RGB images. The node's parameter is the goal (decode/scale.h). */
extern const struct step scale_step;

#endif
