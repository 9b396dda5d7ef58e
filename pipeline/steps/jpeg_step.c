/* jpeg_step.c: the entries of pictures in a slot, and the two kernels that make pixels of them.
 */
#include "steps/jpeg_step.h"

#include "part/dct_made.h"
#include "base/random.h"
#include "steps/proof.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SPAN 8u /* pixels of a work-item of jpeg_pixels */

_Static_assert(JPEG_TABLES == DCT_TABLE_BYTES, "kernels know where the blocks begin");

struct reconstruct {
    struct ocl_context *context;
    cl_mem samples, pixels;
    cl_program program[2];
    cl_kernel kernel[2]; /* jpeg_idct, jpeg_pixels */
};

#define OPTIONS "-cl-std=CL1.2"

static const char *const kernel_names[2] = {"jpeg_idct", "jpeg_pixels"};

bool reconstruct_possible(const struct ocl_device *device)
{
    return device->max_work_group >= JPEG_GROUP && device->max_work_item[0] >= JPEG_GROUP;
}

static uint32_t groups(uint64_t items)
{
    return (uint32_t)((items + JPEG_GROUP - 1) / JPEG_GROUP);
}

void reconstruct_part(struct jpeg_part *part, struct reconstruct_range *range, uint32_t offset,
                      const struct dct_layout *layout, uint64_t bytes)
{
    static const uint32_t kinds[] = {
        [DCT_GREY] = JPEG_GREY, [DCT_YCC] = JPEG_YCC, [DCT_RGB] = JPEG_RGB};
    assert(offset % 128 == 0);
    *part = (struct jpeg_part){
        .offset = offset, .first_blocks = range->blocks, .first_pixels = range->pixels};
    if (!layout) {
        part->kind = JPEG_COPY;
        part->width = (uint32_t)((bytes + 15) / 16);
        part->height = 1;
        range->pixels += groups(part->width);
        return;
    }
    part->kind = kinds[layout->colour];
    part->width = layout->width;
    part->height = layout->height;
    part->across = layout->across;
    part->down = layout->down;
    for (unsigned c = 0; c < DCT_COMPONENTS; c++) {
        part->blocks_across[c] = layout->blocks_across[c];
        part->blocks_down[c] = layout->blocks_down[c];
    }
    range->blocks += groups(dct_blocks(layout));
    range->pixels += groups((uint64_t)((layout->width + SPAN - 1) / SPAN) * layout->height);
}

enum status reconstruct_open(struct reconstruct **out, struct ocl_context *context,
                             uint64_t slot_bytes, struct error *err)
{
    *out = NULL;
    struct reconstruct *reconstruct = calloc(1, sizeof *reconstruct);
    if (!reconstruct)
        return error_memory(err, sizeof *reconstruct, "the reconstruction of JPEG pictures");
    reconstruct->context = context;
    enum status status = ocl_buffer(&reconstruct->samples, context, CL_MEM_READ_WRITE,
                                    (size_t)slot_bytes / 2, NULL, "a slot of samples", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&reconstruct->pixels, context, CL_MEM_READ_WRITE, (size_t)slot_bytes,
                            NULL, "a slot of reconstructed pixels", err);
    if (status != STATUS_OK)
        reconstruct_close(&reconstruct);
    *out = reconstruct;
    return status;
}

void reconstruct_close(struct reconstruct **reconstruct)
{
    if (!*reconstruct)
        return;
    for (unsigned i = 0; i < 2; i++) {
        if ((*reconstruct)->kernel[i])
            clReleaseKernel((*reconstruct)->kernel[i]);
        if ((*reconstruct)->program[i])
            clReleaseProgram((*reconstruct)->program[i]);
    }
    ocl_buffer_release(&(*reconstruct)->samples);
    ocl_buffer_release(&(*reconstruct)->pixels);
    free(*reconstruct);
    *reconstruct = NULL;
}

enum status reconstruct_build(struct reconstruct *reconstruct, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < 2 && status == STATUS_OK; i++) {
        status = ocl_program_build(&reconstruct->program[i], reconstruct->context, kernel_names[i],
                                   NULL, OPTIONS, err);
        if (status == STATUS_OK)
            status =
                ocl_kernel(&reconstruct->kernel[i], reconstruct->program[i], kernel_names[i], err);
    }
    return status;
}

enum status reconstruct_enqueue(struct reconstruct *reconstruct, struct ocl_queue *queue,
                                cl_mem slot, cl_mem parts, uint32_t count,
                                struct reconstruct_range range, struct ocl_waits waits,
                                cl_event events[2], struct error *err)
{
    const size_t local = JPEG_GROUP;
    const size_t blocks = (size_t)range.blocks * JPEG_GROUP;
    const size_t pixels = (size_t)range.pixels * JPEG_GROUP;
    enum status status = STATUS_OK;
    events[0] = events[1] = NULL;
    if (blocks > 0)
        status =
            ocl_args(reconstruct->kernel[0], err, sizeof slot, &slot, sizeof parts, &parts,
                     sizeof count, &count, sizeof(cl_mem), &reconstruct->samples, OCL_ARGS_END);
    if (status == STATUS_OK && blocks > 0)
        status = ocl_enqueue_kernel(queue, kernel_names[0], reconstruct->kernel[0], 1, &blocks,
                                    &local, waits, &events[1], err);
    if (status == STATUS_OK && pixels > 0)
        status = ocl_args(reconstruct->kernel[1], err, sizeof slot, &slot, sizeof parts, &parts,
                          sizeof count, &count, sizeof(cl_mem), &reconstruct->samples,
                          sizeof(cl_mem), &reconstruct->pixels, OCL_ARGS_END);
    if (status == STATUS_OK && pixels > 0)
        status = ocl_enqueue_kernel(queue, kernel_names[1], reconstruct->kernel[1], 1, &pixels,
                                    &local, waits, &events[0], err);
    return status;
}

cl_mem reconstruct_pixels(const struct reconstruct *reconstruct)
{
    return reconstruct->pixels;
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_PARTS 24u
#define TEST_BYTES (512u << 10)

struct test {
    struct jpeg_part part[TEST_PARTS];
    struct dct_layout layout[TEST_PARTS]; /* colour DCT_NONE: pixels */
    uint32_t bytes[TEST_PARTS];           /* of pixels */
    uint32_t count;
    struct reconstruct_range range;
    uint8_t *slot, *pixels, *wanted, *samples;
};

static struct dct_layout make_layout(uint32_t i)
{
    static const uint8_t across[] = {2, 2, 1, 1}, down[] = {2, 1, 1, 1};
    struct dct_layout layout = {.colour = i % 4 == 3   ? DCT_GREY
                                          : i % 8 == 4 ? DCT_RGB
                                                       : DCT_YCC,
                                .width = 5 + i * i % 97,
                                .height = 1 + i * 7 % 61,
                                .across = across[i % 4],
                                .down = down[i % 4]};
    dct_made_blocks(&layout);
    return layout;
}

/* Coefficients as photographs have them, and of any size. */
static void make_test(struct test *test)
{
    uint32_t state = RANDOM_START;
    uint64_t offset = 0;
    for (uint32_t i = 0; i < TEST_PARTS; i++) {
        struct dct_layout *layout = &test->layout[i];
        *layout = i % 6 == 5 ? (struct dct_layout){0} : make_layout(i);
        const bool blocks = layout->colour != DCT_NONE;
        test->bytes[i] = blocks ? 3 * layout->width * layout->height : 100 * i + 7;
        const uint64_t most =
            blocks && dct_bytes(layout) > test->bytes[i] ? dct_bytes(layout) : test->bytes[i];
        if (offset + most > TEST_BYTES)
            break;
        uint8_t *at = test->slot + offset;
        reconstruct_part(&test->part[i], &test->range, (uint32_t)offset, blocks ? layout : NULL,
                         test->bytes[i]);
        if (blocks) {
            dct_made_coefficients(at, layout,
                                  i % 3 == 0   ? 32767
                                  : i % 3 == 1 ? 1023
                                               : 30,
                                  i % 5 == 0 ? 65535 : 32, &state);
            dct_pixels(test->wanted + offset, test->samples, at, layout);
        } else {
            for (uint32_t b = 0; b < test->bytes[i]; b++)
                at[b] = (uint8_t)(random_next(&state) >> 8);
            memcpy(test->wanted + offset, at, test->bytes[i]);
        }
        test->count++;
        offset += (most + 127) / 128 * 128;
    }
}

static enum status run_test(struct test *test, struct ocl_context *context, struct error *err)
{
    struct reconstruct *reconstruct = NULL;
    struct ocl_queue *queue = NULL;
    cl_mem slot = NULL, parts = NULL;
    cl_event events[2] = {NULL, NULL};
    const cl_mem_flags copied = CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR;
    enum status status = ocl_queue_open(&queue, context, "self-test", err);
    if (status == STATUS_OK)
        status = reconstruct_open(&reconstruct, context, TEST_BYTES, err);
    if (status == STATUS_OK)
        status = reconstruct_build(reconstruct, err);
    if (status == STATUS_OK)
        status = ocl_buffer(&slot, context, copied, TEST_BYTES, test->slot, "coefficients", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&parts, context, copied, sizeof test->part, test->part, "parts", err);
    if (status == STATUS_OK)
        status = reconstruct_enqueue(reconstruct, queue, slot, parts, test->count, test->range,
                                     OCL_NO_WAITS, events, err);
    if (status == STATUS_OK)
        status = ocl_enqueue_read(queue, "read pixels", reconstruct->pixels, true, 0, TEST_BYTES,
                                  test->pixels, OCL_NO_WAITS, NULL, err);
    for (unsigned i = 0; i < 2; i++) {
        if (events[i])
            clReleaseEvent(events[i]);
    }
    ocl_buffer_release(&parts);
    ocl_buffer_release(&slot);
    reconstruct_close(&reconstruct);
    ocl_queue_close(&queue);
    return status;
}

enum status reconstruct_self_test(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                                  struct error *err)
{
    *compared = *wrong = 0;
    if (!reconstruct_possible(ocl_context_device(context)))
        return STATUS_OK;
    struct test *test = calloc(1, sizeof *test);
    uint8_t *memory = aligned_alloc(128, 4 * (size_t)TEST_BYTES);
    if (!test || !memory) {
        free(test);
        free(memory);
        return error_memory(err, 4 * (size_t)TEST_BYTES, "the self-test");
    }
    memset(memory, 0, 4 * (size_t)TEST_BYTES);
    test->slot = memory;
    test->pixels = memory + TEST_BYTES;
    test->wanted = test->pixels + TEST_BYTES;
    test->samples = test->wanted + TEST_BYTES;
    make_test(test);
    enum status status = run_test(test, context, err);
    for (uint32_t i = 0; i < test->count && status == STATUS_OK; i++) {
        const uint32_t offset = test->part[i].offset;
        for (uint32_t b = 0; b < test->bytes[i]; b++)
            *wrong += test->pixels[offset + b] != test->wanted[offset + b];
        *compared += test->bytes[i];
    }
    free(memory);
    free(test);
    return status;
}

enum status reconstruct_prepare(struct reconstruct *reconstruct, struct error *err)
{
    static const struct proof proof = {.program = {"jpeg_idct", "jpeg_pixels"},
                                       .fault = "kernels jpeg_idct and jpeg_pixels are",
                                       .advice = "",
                                       .self_test = reconstruct_self_test};
    if (reconstruct_build(reconstruct, err) != STATUS_OK)
        return STATUS_FAILED;
    return proof_check(&proof, reconstruct->context, OPTIONS, err);
}
