/* jpeg_step.c: table entries of images in a slot, and the two kernels that compute their pixels. */
#include "device/plan.h"

#include "base/random.h"
#include "decode/dct_synthetic.h"
#include "device/proof.h"
#include "device/slot_kernel.h"
#include "jpeg_part.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define SPAN 8u /* pixels per work-item of jpeg_pixels */

_Static_assert(JPEG_TABLES == DCT_TABLE_BYTES, "kernels know where the blocks begin");

/* Not on CPUs: the host's decoder is faster. */
static bool is_possible(const struct ocl_device *device, uint64_t parameter)
{
    return device->max_work_group >= JPEG_GROUP && device->max_work_item[0] >= JPEG_GROUP &&
           (parameter == STEP_ALWAYS || !(device->type & CL_DEVICE_TYPE_CPU));
}

static enum status open_jpeg(void **out, struct step_needs *needs, struct ocl_context *context,
                             const struct step_node *node, uint64_t launch_bytes, struct error *err)
{
    if (slot_kernel_open(out, needs, context, node, launch_bytes, err) != STATUS_OK)
        return STATUS_FAILED;
    strcpy(((struct slot_kernel *)*out)->options, "-cl-std=CL1.2"); /* whole groups */
    return STATUS_OK;
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
    count[1] = groups(dct_blocks(&in->dct)); /* none for parts that are pixels */
    count[2] =
        groups(in->payload == PAYLOAD_DCT ? (uint64_t)((in->width + SPAN - 1) / SPAN) * in->height
                                          : sixteens(in));
}

static void fill_entry(void *table, const void *state, const struct step_entry *entry)
{
    static const uint32_t kinds[] = {
        [DCT_GREY] = JPEG_GREY, [DCT_YCC] = JPEG_YCC, [DCT_RGB] = JPEG_RGB};
    (void)state;
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
    const struct slot_kernel *jpeg = state;
    for (unsigned i = 0; i < 2; i++) {
        const size_t global = (size_t)io->counts[1 + i] * JPEG_GROUP;
        if (global == 0)
            continue;
        if (ocl_args(jpeg->kernel[i], err, OCL_ARG(io->in), OCL_ARG(io->table),
                     OCL_ARG(*io->counts), OCL_ARG(io->scratch),
                     i == 0 ? OCL_ARGS_END : sizeof io->out, &io->out, OCL_ARGS_END) != STATUS_OK ||
            slot_kernel_launch(jpeg, i, queue, io, global, JPEG_GROUP, err) != STATUS_OK)
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_PARTS 24u
#define TEST_BYTES (1u << 20)

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
static void add_parts(struct proof *proof)
{
    static const uint32_t largest[] = {32767, 1023, 30};
    uint32_t state = RANDOM_START;
    for (uint32_t i = 0; i < TEST_PARTS; i++) {
        uint8_t *at = proof->in + proof->used;
        struct part_shape *in = &proof->part[i].in;
        if (i % 6 == 5) {
            proof_add_rgb(proof, 33 * i + 7, 1);
            for (uint32_t b = 0; b < in->bytes; b++)
                at[b] = (uint8_t)(random_next(&state) >> 8);
            continue;
        }
        in->payload = PAYLOAD_DCT;
        in->dct = make_layout(i);
        in->width = in->rect.x1 = in->dct.width;
        in->height = in->rect.y1 = in->dct.height;
        in->bytes = dct_bytes(&in->dct);
        dct_synthetic_coefficients(at, &in->dct, largest[i % 3], i % 5 == 0 ? 65535 : 32, &state);
        proof_add(proof);
    }
}

static enum status test_jpeg(struct proof *proof, struct error *err)
{
    if (!is_possible(ocl_context_device(proof->context), STEP_ALWAYS))
        return STATUS_OK;
    if (proof_open(proof, TEST_BYTES, 128, err) != STATUS_OK)
        return STATUS_FAILED;
    add_parts(proof);
    if (proof_parts(proof, err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint32_t i = 0; i < proof->count; i++) {
        const struct proof_part *part = &proof->part[i];
        const uint8_t *in = proof->in + part->in_offset;
        const bool coded = part->in.payload == PAYLOAD_DCT;
        if (coded)
            dct_pixels(proof->wanted, proof->wanted + TEST_BYTES / 2, in, &part->in.dct);
        proof_compare(proof, part, coded ? proof->wanted : in);
    }
    return STATUS_OK;
}

static bool is_needed(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)feature;
    const enum plan_jpeg jpeg = plan->config.jpeg;
    node->parameter = jpeg == PLAN_JPEG_AUTO ? STEP_FASTER : STEP_ALWAYS;
    return jpeg != PLAN_JPEG_HOST;
}

const struct step jpeg_step = {
    .name = "jpeg",
    .needed = is_needed,
    .takes = PAYLOAD_DCT,
    .gives = PAYLOAD_RGB,
    .arena_percent = 100,
    .scratch_percent = 50, /* for samples */
    .entry_bytes = sizeof(struct jpeg_part),
    .fault = "kernels jpeg_idct and jpeg_pixels are",
    .kernels = {"jpeg_idct", "jpeg_pixels"},
    SLOT_KERNELS,
    .otherwise = "JPEG pixels are made on the host",
    .possible = is_possible,
    .open = open_jpeg,
    .build = slot_kernel_build,
    .output = make_rgb,
    .count = count_groups,
    .fill = fill_entry,
    .enqueue = enqueue_jpeg,
    .describe = describe_jpeg,
    .self_test_name = "JPEG pixels",
    .self_test = test_jpeg,
};
