/* jpeg_step.h: pixels of JPEG images, computed on the device from their DCT coefficients.
 *
 * Two kernels compute samples and then pixels, identical to those of dct_pixels. */
#ifndef CLPIPE_DEVICE_JPEG_STEP_H
#define CLPIPE_DEVICE_JPEG_STEP_H

#include "device/step.h"

/* The node's parameter: whether to use the step on CPU devices too. */
enum jpeg_step_parameter { JPEG_STEP_FASTER, JPEG_STEP_ALWAYS };

extern const struct step jpeg_step;

#endif
