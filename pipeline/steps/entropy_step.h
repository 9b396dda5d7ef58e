/* entropy_step.h: Huffman decoding of JPEG images on the device: streams to DCT coefficients.
 *
 * What the kernel accepts equals stream_coefficients; what it cannot prove it refuses, and the host
 * decodes the image.
 */
#ifndef CLPIPE_STEPS_ENTROPY_STEP_H
#define CLPIPE_STEPS_ENTROPY_STEP_H

#include "staging/step.h"

/* The node's parameter: whether to use the step on every device that can run it. The last one is the
 * self-test's. */
enum entropy_step_parameter {
    ENTROPY_STEP_FASTER,
    ENTROPY_STEP_ALWAYS,
    ENTROPY_STEP_LARGE_GROUPS,
};

extern const struct step entropy_step;

#endif
