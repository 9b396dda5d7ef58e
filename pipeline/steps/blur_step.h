/* blur_step.h: the 3x3 box blur that pictures may go through before they are counted.
 *
 * The blurred picture is the interior: of w x h pixels (w - 2) x (h - 2), each channel of each
 * pixel the sum of the nine around it divided by 9, rounded down. Less than three columns or rows
 * blur to no pixels at all.
 */
#ifndef CLPIPE_STEPS_BLUR_STEP_H
#define CLPIPE_STEPS_BLUR_STEP_H

#include "blur_part.h"
#include "ocl/ocl_ndrange.h"
#include <stdint.h>

/* The side of the box, and the columns and rows that a blurred picture has less. */
#define BLUR_SIZE   3u
#define BLUR_BORDER 2u

/* The plain C reference: width x height are those of the blurred picture, strides in bytes. */
void blur_reference(uint8_t *blurred, size_t blurred_stride, const uint8_t *pixels, size_t stride,
                    uint32_t width, uint32_t height);

/* The blur of a lane's slots: a kernel, and one buffer for the blurred pixels of whichever slot is
 * being computed. One slot's histograms must have been counted before the next is blurred, as in an
 * in-order queue. The context must outlive it. */
struct blur;
enum status blur_open(struct blur **out, struct ocl_context *context, uint64_t slot_bytes,
                      struct error *err);
void blur_close(struct blur **blur);
/* Builds the kernel. */
enum status blur_build(struct blur *blur, struct error *err);
/* Builds and proves it. */
enum status blur_prepare(struct blur *blur, struct error *err);
/* Blocks of a part of so many blurred columns and rows. */
uint32_t blur_blocks(uint32_t width, uint32_t rows);
/* Blurs parts[0..count) of `pixels`, which have `blocks` blocks together. */
enum status blur_enqueue(struct blur *blur, struct ocl_queue *queue, cl_mem pixels, cl_mem parts,
                         uint32_t count, uint32_t blocks, struct ocl_waits waits, cl_event *event,
                         struct error *err);
/* The buffer of blurred pixels. */
cl_mem blur_pixels(const struct blur *blur);

/* Blurs made pictures of awkward sizes in one slot and compares every byte with the reference. */
enum status blur_self_test(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                           struct error *err);

/* One picture without gaps on the device, a work-item a pixel, over a range as it is asked for:
 * range->global is the blurred picture's size. Waits for it. Not STATUS_OK: the driver does not
 * build the kernel or refuses the launch. */
enum status blur_picture(uint8_t *blurred, struct ocl_context *context, struct ocl_queue *queue,
                         const uint8_t *pixels, const struct ocl_ndrange *range, struct error *err);

#endif
