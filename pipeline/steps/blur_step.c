/* blur_step.c: the C reference of the box blur, and its kernels. */
#include "steps/blur_step.h"

#include "base/random.h"
#include "steps/proof.h"

#include <stdlib.h>

#define GROUP_MOST 64u

struct blur {
    struct ocl_context *context;
    cl_mem blurred;
    cl_program program;
    cl_kernel kernel;
};

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
    cl_program program = NULL;
    cl_kernel kernel = NULL;
    cl_mem in = NULL, out = NULL;
    enum status status =
        ocl_program_build(&program, context, "blur_picture", NULL, ocl_ndrange_option(range), err);
    if (status == STATUS_OK)
        status = ocl_kernel(&kernel, program, "blur_picture", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&in, context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, in_bytes,
                            (void *)(uintptr_t)pixels, "a picture", err);
    if (status == STATUS_OK)
        status =
            ocl_buffer(&out, context, CL_MEM_READ_WRITE, out_bytes, NULL, "a blurred picture", err);
    if (status == STATUS_OK)
        status = ocl_args(kernel, err, sizeof in, &in, sizeof out, &out, sizeof width, &width,
                          sizeof height, &height, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = ocl_enqueue_kernel(queue, "blur_picture", kernel, 2, range->global,
                                    range->local[0] ? range->local : NULL, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK)
        status = ocl_enqueue_read(queue, "read picture", out, true, 0, out_bytes, blurred,
                                  OCL_NO_WAITS, NULL, err);
    ocl_buffer_release(&out);
    ocl_buffer_release(&in);
    if (kernel)
        clReleaseKernel(kernel);
    if (program)
        clReleaseProgram(program);
    return status;
}

/* --- slots ----------------------------------------------------------------------------------- */

enum status blur_open(struct blur **out, struct ocl_context *context, uint64_t slot_bytes,
                      struct error *err)
{
    *out = NULL;
    struct blur *blur = calloc(1, sizeof *blur);
    if (!blur)
        return error_memory(err, sizeof *blur, "the blur");
    blur->context = context;
    enum status status = ocl_buffer(&blur->blurred, context, CL_MEM_READ_WRITE, (size_t)slot_bytes,
                                    NULL, "a slot of blurred pixels", err);
    if (status != STATUS_OK)
        blur_close(&blur);
    *out = blur;
    return status;
}

void blur_close(struct blur **blur)
{
    if (!*blur)
        return;
    if ((*blur)->kernel)
        clReleaseKernel((*blur)->kernel);
    if ((*blur)->program)
        clReleaseProgram((*blur)->program);
    ocl_buffer_release(&(*blur)->blurred);
    free(*blur);
    *blur = NULL;
}

enum status blur_build(struct blur *blur, struct error *err)
{
    const char *options = ocl_range_option(ocl_context_device(blur->context));
    enum status status =
        ocl_program_build(&blur->program, blur->context, "blur_slot", NULL, options, err);
    if (status == STATUS_OK)
        status = ocl_kernel(&blur->kernel, blur->program, "blur_slot", err);
    return status;
}

uint32_t blur_blocks(uint32_t width, uint32_t rows)
{
    return (3 * width + BLUR_BLOCK_BYTES - 1) / BLUR_BLOCK_BYTES *
           ((rows + BLUR_BLOCK_ROWS - 1) / BLUR_BLOCK_ROWS);
}

enum status blur_enqueue(struct blur *blur, struct ocl_queue *queue, cl_mem pixels, cl_mem parts,
                         uint32_t count, uint32_t blocks, struct ocl_waits waits, cl_event *event,
                         struct error *err)
{
    const struct ocl_device *device = ocl_context_device(blur->context);
    enum status status = ocl_args(blur->kernel, err, sizeof pixels, &pixels, sizeof parts, &parts,
                                  sizeof count, &count, sizeof blocks, &blocks,
                                  sizeof blur->blurred, &blur->blurred, OCL_ARGS_END);
    if (status != STATUS_OK)
        return status;
    size_t local = GROUP_MOST;
    while (local > device->max_work_group || local > device->max_work_item[0])
        local /= 2;
    const size_t global = ocl_range_size(device, blocks, local);
    return ocl_enqueue_kernel(queue, "blur_slot", blur->kernel, 1, &global, &local, waits, event,
                              err);
}

cl_mem blur_pixels(const struct blur *blur)
{
    return blur->blurred;
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_PARTS 40u
#define TEST_BYTES (128u << 10)

/* Parts of growing widths and heights behind each other, up to TEST_BYTES; returns how many. */
static uint32_t make_parts(struct blur_part *parts, uint32_t *blocks)
{
    uint32_t count = 0, offset = 0;
    *blocks = 0;
    for (; count < TEST_PARTS; count++) {
        const uint32_t width = 1 + count * count / 4, rows = 1 + count * 7 % 37;
        const uint32_t bytes = (width + BLUR_BORDER) * (rows + BLUR_BORDER) * 3;
        if (offset + bytes > TEST_BYTES)
            break;
        parts[count] = (struct blur_part){offset, width, rows, *blocks};
        *blocks += blur_blocks(width, rows);
        offset += bytes;
    }
    return count;
}

/* Random bytes, white ones in between: the largest sum. */
static void make_pixels(uint8_t *pixels)
{
    uint32_t state = RANDOM_START;
    for (uint32_t i = 0; i < TEST_BYTES; i++) {
        random_next(&state);
        pixels[i] = i >> 9 & 1 ? 255 : (uint8_t)(state >> 9);
    }
}

enum status blur_self_test(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                           struct error *err)
{
    struct blur_part parts[TEST_PARTS] = {{0}};
    struct blur *blur = NULL;
    struct ocl_queue *queue = NULL;
    cl_mem in = NULL, table = NULL;
    uint32_t blocks;
    const uint32_t count = make_parts(parts, &blocks);
    *compared = *wrong = 0;
    uint8_t *pixels = calloc(3, TEST_BYTES);
    if (!pixels)
        return error_memory(err, 3 * (size_t)TEST_BYTES, "the self-test");
    uint8_t *blurred = pixels + TEST_BYTES, *wanted = blurred + TEST_BYTES;
    const cl_mem_flags copied = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
    make_pixels(pixels);
    enum status status = ocl_queue_open(&queue, context, "self-test", err);
    if (status == STATUS_OK)
        status = blur_open(&blur, context, TEST_BYTES, err);
    if (status == STATUS_OK)
        status = blur_build(blur, err);
    if (status == STATUS_OK)
        status = ocl_buffer(&in, context, copied, TEST_BYTES, pixels, "pixels", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&table, context, copied, sizeof parts, parts, "parts", err);
    if (status == STATUS_OK)
        status = blur_enqueue(blur, queue, in, table, count, blocks, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK)
        status = ocl_enqueue_read(queue, "read blurred", blur->blurred, true, 0, TEST_BYTES,
                                  blurred, OCL_NO_WAITS, NULL, err);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        const size_t stride = 3 * (size_t)parts[i].width, bytes = stride * parts[i].rows;
        blur_reference(wanted, stride, pixels + parts[i].offset, stride + 3 * BLUR_BORDER,
                       parts[i].width, parts[i].rows);
        for (size_t b = 0; b < bytes; b++)
            *wrong += blurred[parts[i].offset + b] != wanted[b];
        *compared += bytes;
    }
    ocl_buffer_release(&table);
    ocl_buffer_release(&in);
    blur_close(&blur);
    ocl_queue_close(&queue);
    free(pixels);
    return status;
}

enum status blur_prepare(struct blur *blur, struct error *err)
{
    static const struct proof proof = {.program = {"blur_slot"},
                                       .fault = "kernel blur_slot blurs",
                                       .advice = "; choose another device with --device",
                                       .self_test = blur_self_test};
    const char *options = ocl_range_option(ocl_context_device(blur->context));
    if (blur_build(blur, err) != STATUS_OK)
        return STATUS_FAILED;
    return proof_check(&proof, blur->context, options, err);
}
