/* quality_step.h: the words of the kind quality, as a step of staging. */
#ifndef CLPIPE_DEVICE_QUALITY_STEP_H
#define CLPIPE_DEVICE_QUALITY_STEP_H

#include "device/step.h"

/* Accepts whole pictures from the scale step. The node's parameter is the index of the
 * QUALITY_WORDS words in a picture's row of values. */
extern const struct step quality_step;

#endif
