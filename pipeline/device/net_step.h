/* net_step.h: networks as a step: of integers (net/model.h), or by ONNX Runtime (net/runtime.h),
 * whose words are float32. */
#ifndef CLPIPE_DEVICE_NET_STEP_H
#define CLPIPE_DEVICE_NET_STEP_H

#include "device/step.h"

/* Node parameter for tests: tensor-core kernels with emulated instructions, by a program net_emulated,
 * on any device but a CPU. */
#define NET_STEP_EMULATED 1u

#endif
