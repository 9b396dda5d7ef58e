/* entropy_step.h: Huffman decoding of JPEG images on the device: streams to DCT coefficients.
 *
 * Accepted streams give the result of stream_coefficients; if the kernel cannot verify a stream it
 * refuses it, and the host decodes the image. */
#ifndef CLPIPE_DEVICE_ENTROPY_STEP_H
#define CLPIPE_DEVICE_ENTROPY_STEP_H

#include "device/step.h"

/* The node's parameter: whether to use the step on every device that can run it. The last value is
 * for the self-test. */
enum entropy_step_parameter {
    ENTROPY_STEP_FASTER,
    ENTROPY_STEP_ALWAYS,
    ENTROPY_STEP_LARGE_GROUPS,
};

extern const struct step entropy_step;

#endif
