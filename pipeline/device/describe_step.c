/* describe_step.c: the kernels of descriptors, proven against their C reference. */
#include "device/plan.h"

#include "base/random.h"
#include "descriptor_part.h"
#include "device/proof.h"
#include "device/slot_kernel.h"
#include "features/kind.h"
#include "ocl/ocl_ndrange.h"
#include "sift_shape.h"

#include <stdio.h>

/* A kind of descriptor and its kernels. */
static const struct method {
    const struct step *step;
    const struct descriptor *descriptor;
    uint32_t channels; /* of the gradients; 0: no gradients */
    const char *options;
} methods[] = {
    {&dct_step, &descriptor_dct, 0, ""},
    {&patch_step, &descriptor_patch, 0, ""},
    {&sift_step, &descriptor_sift, 1, "-DCHANNELS=1 -DSTEP=5 -DBINS=3,5,8,12 -DBIN_MOST=12"},
    {&opsift_step, &descriptor_opsift, 3, "-DCHANNELS=3 -DSTEP=7 -DBINS=6 -DBIN_MOST=6"},
};

static const struct method *method_of(const struct step *step)
{
    size_t i = 0;
    while (methods[i].step != step)
        i++;
    return &methods[i];
}

static bool is_needed(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    return feature && !feature->kind->count &&
           feature->kind->descriptor == method_of(node->step)->descriptor;
}

static enum status open_describer(void **state, struct step_needs *needs,
                                  struct ocl_context *context, const struct step_node *node,
                                  uint64_t launch_bytes, struct error *err)
{
    if (slot_kernel_open(state, needs, context, node, launch_bytes, err) != STATUS_OK)
        return STATUS_FAILED;
    struct slot_kernel *describer = *state;
    snprintf(describer->options, sizeof describer->options, "%s %s",
             ocl_range_option(ocl_context_device(context)), method_of(node->step)->options);
    return STATUS_OK;
}

/* --- parts ----------------------------------------------------------------------------------- */

/* Only whole upright images have descriptors, so parts that a scale step did not accept have
 * none. */
static uint32_t descriptors_of(const struct descriptor *descriptor, const struct part_shape *shape)
{
    return part_is_whole(shape) ? descriptor_number(descriptor, shape->width, shape->height) : 0;
}

static void make_descriptors(struct part_shape *shape, const struct step_node *node)
{
    const struct descriptor *descriptor = method_of(node->step)->descriptor;
    const uint32_t number = descriptors_of(descriptor, shape);
    shape->payload = PAYLOAD_DESCRIPTORS;
    shape->stride = descriptor->columns;
    shape->bytes = (uint64_t)number * shape->stride;
}

/* Counts an entry and the kernels' items: runs of gradients and work-groups, or descriptors. */
static void count_items(uint32_t *count, const void *state, const struct part_shape *in)
{
    const struct method *method = method_of(((const struct slot_kernel *)state)->node->step);
    const uint32_t number = descriptors_of(method->descriptor, in);
    count[0] = 1;
    count[1] = number;
    if (method->channels == 0)
        return;
    count[2] = 0;
    if (number == 0)
        return;
    count[1] = (in->width + GRADIENT_RUN - 1) / GRADIENT_RUN * in->height * method->channels;
    for (unsigned i = 0; i < DESCRIPTOR_SIDES && method->descriptor->side[i]; i++) {
        const struct descriptor_grid grid =
            descriptor_grid(method->descriptor, i, in->width, in->height);
        count[2] += (grid.columns + SIFT_TILE - 1) / SIFT_TILE * grid.rows;
    }
}

static void fill_entry(void *table, const void *state, const struct step_entry *entry)
{
    const bool two = ((const struct slot_kernel *)state)->count > 1;
    const struct part_shape *in = entry->in;
    const bool nothing = entry->given_up || !part_is_whole(in);
    ((struct descriptor_part *)table)[entry->first[0]] =
        (struct descriptor_part){.offset = entry->in_offset,
                                 .width = nothing ? 0 : in->width,
                                 .height = nothing ? 0 : in->height,
                                 .out = entry->out_offset,
                                 .scratch = entry->in_offset / 3,
                                 .first = {entry->first[1], two ? entry->first[2] : 0}};
}

static enum status enqueue_kernels(void *state, struct ocl_queue *queue, struct step_io *io,
                                   struct error *err)
{
    const struct slot_kernel *describer = state;
    const struct ocl_device *device = ocl_context_device(describer->context);
    for (unsigned i = 0; i < describer->count; i++) {
        const cl_uint count = io->counts[0], items = io->counts[1 + i];
        if (items == 0)
            continue;
        /* CPU drivers run a work-group's items sequentially, so one item does all of its work. */
        const size_t local = i == 1 && describer->cpu ? 1 : slot_kernel_group(device);
        const size_t global = i == 1 ? items * local : ocl_range_size(device, items, local);
        if (ocl_args(describer->kernel[i], err, OCL_ARG(io->in), OCL_ARG(io->table), OCL_ARG(count),
                     OCL_ARG(items), OCL_ARG(io->out),
                     describer->count > 1 ? sizeof io->scratch : OCL_ARGS_END, &io->scratch,
                     OCL_ARGS_END) != STATUS_OK ||
            slot_kernel_launch(describer, i, queue, io, global, local, err) != STATUS_OK)
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_BYTES (128u << 10)

/* Flat, random, smooth and striped images: too small for any descriptor, too small for some, and
 * with more descriptors per row than a work-group processes. */
static void add_images(struct proof *proof)
{
    static const uint16_t sizes[][2] = {{1, 1},   {1, 40},  {8, 8},    {37, 37},
                                        {23, 50}, {50, 23}, {71, 19},  {19, 71},
                                        {10, 12}, {33, 38}, {200, 21}, {6, 240}};
    uint32_t state = RANDOM_START;
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct proof_part *part = proof_add_rgb(proof, sizes[i][0], sizes[i][1]);
        for (uint32_t b = 0; b < part->in.bytes; b++) {
            const uint32_t x = b % part->in.stride, y = b / part->in.stride;
            random_next(&state);
            proof->in[part->in_offset + b] = i == 2       ? 200
                                             : i % 3 == 0 ? (uint8_t)(state >> 9)
                                             : i % 3 == 1
                                                 ? (uint8_t)(x * 5 + y * 3 + (state >> 30))
                                                 : (uint8_t)(0 - (state >> 20 & x / 9 & 1));
        }
    }
}

static enum status test_describer(struct proof *proof, struct error *err)
{
    const struct descriptor *descriptor = method_of(proof->node.step)->descriptor;
    if (proof_open(proof, 4 * (size_t)TEST_BYTES, 128, err) != STATUS_OK)
        return STATUS_FAILED;
    add_images(proof);
    if (proof_parts(proof, err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint32_t i = 0; i < proof->count; i++) {
        const struct proof_part *part = &proof->part[i];
        const struct descriptor_picture picture = {proof->in + part->in_offset, part->in.stride,
                                                   part->in.width, part->in.height};
        for (uint32_t d = 0; d < part->out.bytes / descriptor->columns; d++)
            descriptor_describe(proof->wanted + d * descriptor->columns, descriptor, &picture, d,
                                1);
        proof_compare(proof, part, proof->wanted);
    }
    return STATUS_OK;
}

/* arena: bytes of descriptors per 100 of pixels, halved because an image takes at most half of a
 * slot. scratch: 8 bytes per channel of a pixel. */
#define DESCRIBE_STEP(kind, arena, scratch, ...)                                                   \
    const struct step kind##_step = {                                                              \
        .name = #kind,                                                                             \
        .needed = is_needed,                                                                       \
        .takes = PAYLOAD_RGB,                                                                      \
        .gives = PAYLOAD_DESCRIPTORS,                                                              \
        .arena_percent = arena,                                                                    \
        .scratch_percent = scratch,                                                                \
        .entry_bytes = sizeof(struct descriptor_part),                                             \
        .fault = "the step '" #kind "' describes",                                                 \
        .kernels = {__VA_ARGS__},                                                                  \
        SLOT_KERNELS,                                                                              \
        .open = open_describer,                                                                    \
        .build = slot_kernel_build,                                                                \
        .output = make_descriptors,                                                                \
        .count = count_items,                                                                      \
        .fill = fill_entry,                                                                        \
        .enqueue = enqueue_kernels,                                                                \
        .self_test_name = "descriptors " #kind,                                                    \
        .self_test = test_describer,                                                               \
    }

DESCRIBE_STEP(dct, 9, 0, "dct_slot");
DESCRIBE_STEP(patch, 202, 0, "patch_slot");
DESCRIBE_STEP(sift, 345, 267, "sift_gradient", "sift_slot");
DESCRIBE_STEP(opsift, 132, 800, "sift_gradient", "sift_slot");
