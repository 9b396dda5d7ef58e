/* net_step.h: a network of integers (net/model.h) as a step: pictures of its size to the words of a row. */
#ifndef CLPIPE_STEPS_NET_STEP_H
#define CLPIPE_STEPS_NET_STEP_H

#include "features/feature.h"
#include "staging/step.h"

/* Upright RGB images of the network's size, which the scale step makes, to the values of its output. The
 * node's config is the struct feature, to which a model is bound when the step is opened. */
extern const struct step net_step;

/* A node's parameter, for tests: kernels of tensor cores without their instructions, on any device but a
 * CPU. */
#define NET_STEP_EMULATED 1u

/* The step's self-test of such a node. */
enum status net_step_test_emulated(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                                   struct error *err);

#endif
