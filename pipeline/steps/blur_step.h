/* blur_step.h: the 3x3 box blur that pictures may go through before they are counted.
 *
 * The blurred picture is the interior: of w x h pixels (w - 2) x (h - 2), each channel of each
 * pixel the sum of the nine around it divided by 9, rounded down. Less than three columns or rows
 * blur to no pixels at all.
 */
#ifndef CLPIPE_STEPS_BLUR_STEP_H
#define CLPIPE_STEPS_BLUR_STEP_H

#include "ocl/ocl_ndrange.h"
#include "staging/step.h"
#include <stdint.h>

/* The side of the box, and the columns and rows that a blurred picture has less. */
#define BLUR_SIZE   3u
#define BLUR_BORDER 2u

/* The plain C reference: width x height are those of the blurred picture, strides in bytes. */
void blur_reference(uint8_t *blurred, size_t blurred_stride, const uint8_t *pixels, size_t stride,
                    uint32_t width, uint32_t height);

/* The step: parts of RGB to their blurred interior. */
extern const struct step blur_step;

/* One picture without gaps on the device, a work-item a pixel, over a range as it is asked for:
 * range->global is the blurred picture's size. Waits for it. Not STATUS_OK: the driver does not
 * build the kernel or refuses the launch. */
enum status blur_picture(uint8_t *blurred, struct ocl_context *context, struct ocl_queue *queue,
                         const uint8_t *pixels, const struct ocl_ndrange *range, struct error *err);

#endif
