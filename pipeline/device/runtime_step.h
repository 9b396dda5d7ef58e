/* runtime_step.h: networks run by ONNX Runtime (net/runtime.h) as a step: pictures are mapped on
 * the host, and the words are float32. The node's config is a feature of an ONNX file. */
#ifndef CLPIPE_DEVICE_RUNTIME_STEP_H
#define CLPIPE_DEVICE_RUNTIME_STEP_H

#include "device/step.h"
#include "features/feature.h"

extern const struct step runtime_step;

#endif
