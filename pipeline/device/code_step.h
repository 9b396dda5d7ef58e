/* code_step.h: the words of the perceptual codes, as a step of staging. */
#ifndef CLPIPE_DEVICE_CODE_STEP_H
#define CLPIPE_DEVICE_CODE_STEP_H

#include "device/step.h"
#include "features/code.h"

/* The node's parameter is the index of the CODE_WORDS words in a picture's row of values. */
extern const struct step code_step;

#endif
