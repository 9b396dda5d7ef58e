/* jpeg_step.c: table entries of images in a slot, and the two kernels that compute their pixels. */
#include "device/jpeg_step.h"

#include "base/random.h"
#include "decode/dct_synthetic.h"
#include "device/proof.h"
#include "jpeg_part.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPAN    8u /* pixels per work-item of jpeg_pixels */
#define OPTIONS "-cl-std=CL1.2"

_Static_assert(JPEG_TABLES == DCT_TABLE_BYTES, "kernels know where the blocks begin");

struct jpeg {
    struct ocl_context *context;
    cl_program program[2];
    cl_kernel kernel[2];
};

static const char *const programs[] = {"jpeg_idct", "jpeg_pixels", NULL};

/* Not on CPUs: the host's decoder is faster. */
static bool is_possible(const struct ocl_device *device, uint64_t parameter)
{
    return device->max_work_group >= JPEG_GROUP && device->max_work_item[0] >= JPEG_GROUP &&
           (parameter == JPEG_STEP_ALWAYS || !(device->type & CL_DEVICE_TYPE_CPU));
}

static enum status open_jpeg(void **out, struct step_needs *needs, struct ocl_context *context,
                             const struct step_node *node, uint64_t launch_bytes, struct error *err)
{
    (void)node;
    (void)launch_bytes;
    struct jpeg *jpeg = calloc(1, sizeof *jpeg);
    if (!jpeg)
        return error_memory(err, sizeof *jpeg, "the reconstruction of JPEG pictures");
    jpeg->context = context;
    *out = jpeg;
    *needs = (struct step_needs){.lists = 1, .counts = 3, .events = 2};
    return STATUS_OK;
}

static void close_jpeg(void **state)
{
    struct jpeg *jpeg = *state;
    for (unsigned i = 0; i < 2 && jpeg; i++) {
        if (jpeg->kernel[i])
            clReleaseKernel(jpeg->kernel[i]);
        if (jpeg->program[i])
            clReleaseProgram(jpeg->program[i]);
    }
    free(jpeg);
    *state = NULL;
}

static enum status build_jpeg(void *state, struct error *err)
{
    struct jpeg *jpeg = state;
    for (unsigned i = 0; i < 2; i++) {
        if (ocl_program_build(&jpeg->program[i], jpeg->context, programs[i], NULL, OPTIONS, err) !=
                STATUS_OK ||
            ocl_kernel(&jpeg->kernel[i], jpeg->program[i], programs[i], err) != STATUS_OK)
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

static enum status prove_jpeg(void *state, struct error *err)
{
    const struct jpeg *jpeg = state;
    return proof_check(&jpeg_step, programs, OPTIONS, jpeg->context, err);
}

static void describe_jpeg(const void *state, char *text, size_t size)
{
    (void)state;
    snprintf(text, size, " JPEG pixels,");
}

/* --- parts ----------------------------------------------------------------------------------- */

static void make_rgb(struct part_shape *shape, const struct step_node *node)
{
    (void)node;
    part_set_rgb(shape);
}

static uint32_t groups(uint64_t items)
{
    return (uint32_t)((items + JPEG_GROUP - 1) / JPEG_GROUP);
}

static uint32_t sixteens(const struct part_shape *pixels)
{
    return (uint32_t)((pixels->bytes + 15) / 16);
}

/* Counts an entry, groups of jpeg_idct, and groups of jpeg_pixels, which also copies parts that are
 * pixels. */
static void count_groups(uint32_t *count, const void *state, const struct part_shape *in)
{
    (void)state;
    count[0] = 1;
    count[1] = in->payload == PAYLOAD_DCT ? groups(dct_blocks(&in->dct)) : 0;
    count[2] =
        groups(in->payload == PAYLOAD_DCT ? (uint64_t)((in->width + SPAN - 1) / SPAN) * in->height
                                          : sixteens(in));
}

static void fill_entry(void *table, const void *state, uint32_t list_entries,
                       const struct step_entry *entry)
{
    static const uint32_t kinds[] = {
        [DCT_GREY] = JPEG_GREY, [DCT_YCC] = JPEG_YCC, [DCT_RGB] = JPEG_RGB};
    (void)state;
    (void)list_entries;
    const struct dct_layout *dct = &entry->in->dct;
    struct jpeg_part *part = (struct jpeg_part *)table + entry->first[0];
    assert(entry->in_offset % 128 == 0 && entry->out_offset % 128 == 0);
    *part = (struct jpeg_part){.offset = entry->in_offset,
                               .pixels = entry->out_offset,
                               .first_blocks = entry->first[1],
                               .first_pixels = entry->first[2]};
    if (entry->given_up)
        return; /* JPEG_NOTHING */
    if (entry->in->payload != PAYLOAD_DCT) {
        part->kind = JPEG_COPY;
        part->width = sixteens(entry->in);
        part->height = 1;
        return;
    }
    part->kind = kinds[dct->colour];
    part->width = dct->width;
    part->height = dct->height;
    part->across = dct->across;
    part->down = dct->down;
    memcpy(part->blocks_across, dct->blocks_across, sizeof part->blocks_across);
    memcpy(part->blocks_down, dct->blocks_down, sizeof part->blocks_down);
}

static enum status enqueue_jpeg(void *state, struct ocl_queue *queue, struct step_io *io,
                                struct error *err)
{
    const struct jpeg *jpeg = state;
    const size_t local = JPEG_GROUP;
    for (unsigned i = 0; i < 2; i++) {
        const size_t global = (size_t)io->counts[1 + i] * JPEG_GROUP;
        if (global == 0)
            continue;
        if (ocl_args(jpeg->kernel[i], err, sizeof io->in, &io->in, sizeof io->table, &io->table,
                     sizeof *io->counts, io->counts, sizeof io->scratch, &io->scratch,
                     i == 0 ? OCL_ARGS_END : sizeof io->out, &io->out, OCL_ARGS_END) != STATUS_OK ||
            ocl_enqueue_kernel(queue, programs[i], jpeg->kernel[i], 1, &global, &local, io->waits,
                               &io->events[i], err) != STATUS_OK)
            return STATUS_FAILED;
        io->last = &io->events[i];
    }
    return STATUS_OK;
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_PARTS 24u
#define TEST_BYTES (1u << 20)

struct test {
    struct proof_part part[TEST_PARTS];
    uint32_t count;
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
    dct_synthetic_blocks(&layout);
    return layout;
}

/* Coefficients as in photographs, and of any size; every sixth part is pixels. */
static void make_test(struct test *test)
{
    static const uint32_t largest[] = {32767, 1023, 30};
    uint32_t state = RANDOM_START, offset = 0;
    for (uint32_t i = 0; i < TEST_PARTS; i++) {
        struct proof_part *part = &test->part[i];
        struct part_shape *in = &part->in;
        in->dct = make_layout(i);
        in->width = in->rect.x1 = i % 6 == 5 ? 33 * i + 7 : in->dct.width;
        in->height = in->rect.y1 = i % 6 == 5 ? 1 : in->dct.height;
        part_set_rgb(in);
        if (i % 6 != 5) {
            in->payload = PAYLOAD_DCT;
            in->bytes = dct_bytes(&in->dct);
        }
        if (offset + in->bytes > TEST_BYTES / 2) /* grey pixels take more than their blocks */
            break;
        uint8_t *at = test->slot + offset;
        if (in->payload == PAYLOAD_DCT)
            dct_synthetic_coefficients(at, &in->dct, largest[i % 3], i % 5 == 0 ? 65535 : 32,
                                       &state);
        for (uint32_t b = 0; in->payload == PAYLOAD_RGB && b < in->bytes; b++)
            at[b] = (uint8_t)(random_next(&state) >> 8);
        part->in_offset = offset;
        offset += (uint32_t)((in->bytes + 127) / 128 * 128);
        test->count++;
    }
}

static enum status test_jpeg(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                             struct error *err)
{
    static const struct step_node node = {.step = &jpeg_step};
    *compared = *wrong = 0;
    if (!is_possible(ocl_context_device(context), JPEG_STEP_ALWAYS))
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
    const enum status status = proof_run(test->pixels, test->part, test->count, &node, context,
                                         test->slot, TEST_BYTES, err);
    for (uint32_t i = 0; i < test->count && status == STATUS_OK; i++) {
        const struct proof_part *part = &test->part[i];
        const uint8_t *in = test->slot + part->in_offset, *wanted = in;
        if (part->in.payload == PAYLOAD_DCT) {
            dct_pixels(test->wanted, test->samples, in, &part->in.dct);
            wanted = test->wanted;
        }
        for (uint64_t b = 0; b < part->out.bytes; b++)
            *wrong += test->pixels[part->out_offset + b] != wanted[b];
        *compared += part->out.bytes;
    }
    free(memory);
    free(test);
    return status;
}

const struct step jpeg_step = {
    .name = "jpeg",
    .takes = PAYLOAD_DCT,
    .gives = PAYLOAD_RGB,
    .arena_percent = 100,
    .scratch_percent = 50, /* for samples */
    .entry_bytes = sizeof(struct jpeg_part),
    .fault = "kernels jpeg_idct and jpeg_pixels are",
    .upload = "upload parts",
    .unmap = "unmap parts",
    .map = "map parts",
    .otherwise = "JPEG pixels are made on the host",
    .possible = is_possible,
    .open = open_jpeg,
    .close = close_jpeg,
    .build = build_jpeg,
    .prove = prove_jpeg,
    .output = make_rgb,
    .count = count_groups,
    .fill = fill_entry,
    .enqueue = enqueue_jpeg,
    .describe = describe_jpeg,
    .self_test_name = "JPEG pixels",
    .self_test = test_jpeg,
};
