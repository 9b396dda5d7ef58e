/* proof.h: kernels are used only after a comparison with the C reference, once per device, driver
 * and program: the cache records success. Internal to steps. */
#ifndef CLPIPE_DEVICE_PROOF_H
#define CLPIPE_DEVICE_PROOF_H

#include "device/step.h"

/* Runs the step's self-test unless all its programs, built with `options`, are recorded as proven.
 * programs: ends with NULL. */
enum status proof_check(const struct step *step, const char *const *programs, const char *options,
                        struct ocl_context *context, struct error *err);

/* The same with another test, which gets `subject`. */
enum status proof_check_by(const struct step *step, const char *const *programs,
                           const char *options, struct ocl_context *context,
                           enum status (*test)(uint64_t *compared, uint64_t *wrong,
                                               struct ocl_context *context, const void *subject,
                                               struct error *err),
                           const void *subject, struct error *err);

/* A part to run through a step. */
struct proof_part {
    struct part_shape in, out; /* out and out_offset: set by proof_run */
    uint32_t in_offset, out_offset;
    uint32_t values; /* for steps that produce values: index of the first word of the part's row */
    bool given_up;
    bool refused; /* set by proof_run if the step may refuse */
};

/* Runs parts through one step as staging does. `input` and `output` have `bytes` bytes; output
 * bytes that the step does not write keep their values. For steps that produce values, `output`
 * receives the words. */
enum status proof_run(uint8_t *output, struct proof_part *parts, uint32_t count,
                      const struct step_node *node, struct ocl_context *context,
                      const uint8_t *input, uint64_t bytes, struct error *err);

#endif
