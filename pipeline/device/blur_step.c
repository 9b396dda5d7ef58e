/* blur_step.c: the C reference of the box blur, and its kernels. */
#include "device/blur_step.h"

#include "blur_part.h"
#include "device/plan.h"
#include "device/proof.h"
#include "device/slot_kernel.h"

#include <stdlib.h>

void blur_reference(uint8_t *blurred, size_t blurred_stride, const uint8_t *pixels, size_t stride,
                    uint32_t width, uint32_t height)
{
    for (uint32_t y = 0; y < height; y++) {
        for (size_t x = 0; x < 3 * (size_t)width; x++) {
            unsigned sum = 0;
            for (uint32_t row = y; row < y + 3; row++)
                for (size_t column = x; column < x + 9; column += 3)
                    sum += pixels[row * stride + column];
            blurred[y * blurred_stride + x] = (uint8_t)(sum / 9);
        }
    }
}

enum status blur_picture(uint8_t *blurred, struct ocl_context *context, struct ocl_queue *queue,
                         const uint8_t *pixels, const struct ocl_ndrange *range, struct error *err)
{
    const cl_uint width = (cl_uint)range->global[0], height = (cl_uint)range->global[1];
    const size_t in_bytes = ((size_t)width + BLUR_BORDER) * ((size_t)height + BLUR_BORDER) * 3;
    const size_t out_bytes = (size_t)width * height * 3;
    cl_kernel kernel = NULL;
    cl_mem in = NULL, out = NULL;
    enum status status = STATUS_FAILED;
    if (ocl_context_kernel(&kernel, context, "blur_picture", "blur_picture",
                           ocl_ndrange_option(range), err) != STATUS_OK)
        goto out;
    if (ocl_buffer(&in, context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, in_bytes,
                   (void *)(uintptr_t)pixels, "a picture", err) != STATUS_OK ||
        ocl_buffer(&out, context, CL_MEM_READ_WRITE, out_bytes, NULL, "a blurred picture", err) !=
            STATUS_OK)
        goto out;
    if (ocl_args(kernel, err, sizeof in, &in, sizeof out, &out, sizeof width, &width, sizeof height,
                 &height, OCL_ARGS_END) != STATUS_OK)
        goto out;
    if (ocl_enqueue_kernel(queue, "blur_picture", kernel, 2, range->global,
                           range->local[0] ? range->local : NULL, OCL_NO_WAITS, NULL,
                           err) != STATUS_OK)
        goto out;
    status = ocl_enqueue_read(queue, "read picture", out, true, 0, out_bytes, blurred, OCL_NO_WAITS,
                              NULL, err);
out:
    ocl_buffer_release(&out);
    ocl_buffer_release(&in);
    if (kernel)
        clReleaseKernel(kernel);
    return status;
}

/* --- the step -------------------------------------------------------------------------------- */

static void shrink(struct part_shape *shape, const struct step_node *node)
{
    (void)node;
    part_shrink(shape, BLUR_BORDER);
    part_set_rgb(shape);
}

/* Counts an entry and its blocks. */
static void count_blocks(uint32_t *count, const void *state, const struct part_shape *in)
{
    (void)state;
    struct part_shape out = *in;
    shrink(&out, NULL);
    const uint32_t rows = out.rect.y1 - out.rect.y0;
    count[0] = 1;
    count[1] = (out.stride + BLUR_BLOCK_BYTES - 1) / BLUR_BLOCK_BYTES *
               ((rows + BLUR_BLOCK_ROWS - 1) / BLUR_BLOCK_ROWS);
}

static void fill_entry(void *table, const void *state, const struct step_entry *entry)
{
    (void)state;
    const struct cell_rect *rect = &entry->out->rect;
    ((struct blur_part *)table)[entry->first[0]] =
        (struct blur_part){.offset = entry->in_offset,
                           .blurred = entry->out_offset,
                           .width = rect->x1 - rect->x0,
                           .rows = entry->given_up ? 0 : rect->y1 - rect->y0,
                           .first = entry->first[1]};
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_PARTS 40u
#define TEST_BYTES (128u << 10)

static enum status test_blur(struct proof *proof, struct error *err)
{
    if (proof_open_random(proof, 2 * (size_t)TEST_BYTES, err) != STATUS_OK)
        return STATUS_FAILED;
    /* Parts of growing widths and heights. */
    while (proof->count < TEST_PARTS && proof->used < TEST_BYTES)
        proof_add_rgb(proof, 1 + proof->count * proof->count / 4 + BLUR_BORDER,
                      1 + proof->count * 7 % 37 + BLUR_BORDER);
    if (proof_parts(proof, err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint32_t i = 0; i < proof->count; i++) {
        const struct proof_part *part = &proof->part[i];
        blur_reference(proof->wanted, part->out.stride, proof->in + part->in_offset,
                       part->in.stride, part->out.width, part->out.height);
        proof_compare(proof, part, proof->wanted);
    }
    return STATUS_OK;
}

static bool is_needed(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    node->border = BLUR_BORDER;
    return feature && feature->image.blur != 0;
}

const struct step blur_step = {
    .name = "blur",
    .needed = is_needed,
    .takes = PAYLOAD_RGB,
    .gives = PAYLOAD_RGB,
    .arena_percent = 100,
    .entry_bytes = sizeof(struct blur_part),
    .fault = "kernel blur_slot blurs",
    .kernels = {"blur_slot"},
    SLOT_KERNEL,
    .output = shrink,
    .count = count_blocks,
    .fill = fill_entry,
    .self_test_name = "blur 3x3",
    .self_test = test_blur,
};
