/* runtime_step.h: rows of networks that ONNX Runtime computes (net/runtime.h): pictures come to the host, and
 * their words are float32. Configured by a feature of an ONNX file. */
#ifndef CLPIPE_STEPS_RUNTIME_STEP_H
#define CLPIPE_STEPS_RUNTIME_STEP_H

#include "features/feature.h"
#include "staging/step.h"

extern const struct step runtime_step;

#endif
