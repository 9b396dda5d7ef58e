/* jpeg_step.h: pixels of JPEG pictures, made on the device from their DCT coefficients.
 *
 * A slot may hold coefficients (part/dct.h) instead of pixels, picture by picture. Two kernels make
 * samples and then pixels of them, in a buffer of the same layout as the slot: pixels lie at the
 * offset of their coefficients. Pixels that the slot holds are copied there. Every byte is that of
 * dct_pixels.
 */
#ifndef CLPIPE_STEPS_JPEG_STEP_H
#define CLPIPE_STEPS_JPEG_STEP_H

#include "part/dct.h"
#include "jpeg_part.h"
#include "ocl/ocl.h"

/* Can the device run the kernels? */
bool reconstruct_possible(const struct ocl_device *device);

/* The groups of both kernels that the parts of a slot have so far. */
struct reconstruct_range {
    uint32_t blocks, pixels;
};

/* Makes the entry of a picture at `offset` of the slot and adds its groups to the range: of one
 * with coefficients, or of `bytes` of pixels (layout NULL). */
void reconstruct_part(struct jpeg_part *part, struct reconstruct_range *range, uint32_t offset,
                      const struct dct_layout *layout, uint64_t bytes);

/* The kernels and buffers of a lane. One slot must have been counted before the next is
 * reconstructed, as in an in-order queue. The context must outlive it. */
struct reconstruct;
enum status reconstruct_open(struct reconstruct **out, struct ocl_context *context,
                             uint64_t slot_bytes, struct error *err);
void reconstruct_close(struct reconstruct **reconstruct);
/* Builds the kernels. */
enum status reconstruct_build(struct reconstruct *reconstruct, struct error *err);
/* Builds and proves them. */
enum status reconstruct_prepare(struct reconstruct *reconstruct, struct error *err);
/* Makes the pixels of parts[0..count) of `slot`. events: room for two, the last command's first;
 * either may be NULL afterwards. */
enum status reconstruct_enqueue(struct reconstruct *reconstruct, struct ocl_queue *queue,
                                cl_mem slot, cl_mem parts, uint32_t count,
                                struct reconstruct_range range, struct ocl_waits waits,
                                cl_event events[2], struct error *err);
/* The buffer of pixels. */
cl_mem reconstruct_pixels(const struct reconstruct *reconstruct);

/* Made pictures of every kind and of awkward sizes, with coefficients of any size, in one slot:
 * compares every byte with the reference. */
enum status reconstruct_self_test(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                                  struct error *err);

#endif
