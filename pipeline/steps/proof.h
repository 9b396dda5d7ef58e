/* proof.h: a step's kernels are used once they were seen to compute what the C reference does, once
 * for each device, driver and program: what was right is remembered in the cache. Inside steps.
 */
#ifndef CLPIPE_STEPS_PROOF_H
#define CLPIPE_STEPS_PROOF_H

#include "staging/step.h"

struct proof {
    const char *const *programs; /* ended by NULL */
    const char *options;         /* of the compiler */
    const char *fault;           /* how the sentence begins that tells what is wrong */
    const char *advice;          /* how it ends */
};

/* Runs the step's self-test unless all its programs are known to be right. */
enum status proof_check(const struct proof *proof, const struct step *step,
                        struct ocl_context *context, struct error *err);

/* A part to be put through a step. */
struct proof_part {
    struct part_shape in, out; /* out: set by proof_run, like out_offset */
    uint32_t in_offset, out_offset;
    bool given_up;
};

/* Puts parts through one step, as staging does: `input` and `output` have `bytes` bytes; what the
 * step leaves of output stays as it is. */
enum status proof_run(uint8_t *output, struct proof_part *parts, uint32_t count,
                      const struct step_node *node, struct ocl_context *context,
                      const uint8_t *input, uint64_t bytes, struct error *err);

#endif
