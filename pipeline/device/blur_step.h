/* blur_step.h: the 3x3 box blur, an optional step before counting.
 *
 * The blurred image is the interior: (w - 2) x (h - 2) of w x h pixels. Each channel of a pixel is
 * the sum over the surrounding 3x3 pixels divided by 9, rounded down. Images with fewer than three
 * columns or rows yield no pixels. */
#ifndef CLPIPE_DEVICE_BLUR_STEP_H
#define CLPIPE_DEVICE_BLUR_STEP_H

#include "ocl/ocl_ndrange.h"
#include <stdint.h>

/* Side of the box; columns and rows by which the blurred image is smaller. */
#define BLUR_SIZE   3u
#define BLUR_BORDER 2u

/* The plain C reference; width x height: size of the blurred image; strides in bytes. */
void blur_reference(uint8_t *blurred, size_t blurred_stride, const uint8_t *pixels, size_t stride,
                    uint32_t width, uint32_t height);

/* Blurs one image with packed rows on the device, one work-item per pixel; range->global is set to
 * the size of the blurred image. Waits for completion. Fails if the driver does not build the
 * kernel or refuses the launch. */
enum status blur_picture(uint8_t *blurred, struct ocl_context *context, struct ocl_queue *queue,
                         const uint8_t *pixels, const struct ocl_ndrange *range, struct error *err);

#endif
