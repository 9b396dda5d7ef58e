/* proof.h: a step's kernels are used once they were seen to compute what the C reference does, once
 * for each device, driver and program: what was right is remembered in the cache. */
#ifndef CLPIPE_STEPS_PROOF_H
#define CLPIPE_STEPS_PROOF_H

#include "ocl/ocl.h"

#define PROOF_PROGRAMS 2u /* of a step, at most */

struct proof {
    const char *program[PROOF_PROGRAMS]; /* NULL behind the last */
    const char *fault;                   /* how the sentence begins that tells what is wrong */
    const char *advice;                  /* how it ends */
    /* Compares bytes with the C reference's. */
    enum status (*self_test)(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                             struct error *err);
};

/* Runs the self-test unless all programs, built with `options`, are known to be right. */
enum status proof_check(const struct proof *proof, struct ocl_context *context,
                        const char *options, struct error *err);

#endif
