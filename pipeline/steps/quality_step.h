/* quality_step.h: the words of the kind quality, as a step of staging. */
#ifndef CLPIPE_STEPS_QUALITY_STEP_H
#define CLPIPE_STEPS_QUALITY_STEP_H

#include "staging/step.h"

/* Takes whole pictures that the scale step has made. The node's parameter is the place of the
 * QUALITY_WORDS words in a picture's row of values. */
extern const struct step quality_step;

#endif
