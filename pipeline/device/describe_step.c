/* describe_step.c: the kernels of descriptors, proven against their C reference. */
#include "device/describe_step.h"

#include "base/random.h"
#include "descriptor_part.h"
#include "device/proof.h"
#include "ocl/ocl_ndrange.h"
#include "sift_shape.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS    2u
#define GROUP_MOST 64u

/* A kind of descriptor and its kernels. */
static const struct method {
    const struct step *step;
    const struct descriptor *descriptor;
    uint32_t channels; /* of the gradients; 0: no gradients */
    const char *kernel[KERNELS + 1];
    const char *options;
} methods[] = {
    {&dct_step, &descriptor_dct, 0, {"dct_slot"}, ""},
    {&patch_step, &descriptor_patch, 0, {"patch_slot"}, ""},
    {&sift_step,
     &descriptor_sift,
     1,
     {"sift_gradient", "sift_slot"},
     "-DCHANNELS=1 -DSTEP=5 -DBINS=3,5,8,12 -DBIN_MOST=12"},
    {&opsift_step,
     &descriptor_opsift,
     3,
     {"sift_gradient", "sift_slot"},
     "-DCHANNELS=3 -DSTEP=7 -DBINS=6 -DBIN_MOST=6"},
};

struct describer {
    const struct method *method;
    struct ocl_context *context;
    char options[128];
    cl_program program[KERNELS];
    cl_kernel kernel[KERNELS];
};

const struct step *describe_step(const struct descriptor *descriptor)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].descriptor == descriptor)
            return methods[i].step;
    return NULL;
}

static const struct method *method_of(const struct step *step)
{
    size_t i = 0;
    while (methods[i].step != step)
        i++;
    return &methods[i];
}

/* --- the kernels ----------------------------------------------------------------------------- */

static enum status open_describer(void **state, struct step_needs *needs,
                                  struct ocl_context *context, const struct step_node *node,
                                  uint64_t launch_bytes, struct error *err)
{
    (void)launch_bytes;
    struct describer *describer = calloc(1, sizeof *describer);
    if (!describer)
        return error_memory(err, sizeof *describer, node->step->name);
    describer->method = method_of(node->step);
    describer->context = context;
    snprintf(describer->options, sizeof describer->options, "%s %s",
             ocl_range_option(ocl_context_device(context)), describer->method->options);
    *state = describer;
    *needs = (struct step_needs){.lists = 1, .counts = 1 + KERNELS, .events = KERNELS};
    return STATUS_OK;
}

static void close_describer(void **state)
{
    struct describer *describer = *state;
    for (unsigned i = 0; describer && i < KERNELS; i++) {
        if (describer->kernel[i])
            clReleaseKernel(describer->kernel[i]);
        if (describer->program[i])
            clReleaseProgram(describer->program[i]);
    }
    free(describer);
    *state = NULL;
}

static enum status build_describer(void *state, struct error *err)
{
    struct describer *describer = state;
    for (unsigned i = 0; describer->method->kernel[i]; i++) {
        const char *name = describer->method->kernel[i];
        if (ocl_program_build(&describer->program[i], describer->context, name, NULL,
                              describer->options, err) != STATUS_OK ||
            ocl_kernel(&describer->kernel[i], describer->program[i], name, err) != STATUS_OK)
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

static enum status prove_describer(void *state, struct error *err)
{
    const struct describer *describer = state;
    return proof_check(describer->method->step, describer->method->kernel, describer->options,
                       describer->context, err);
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
    const struct method *method = ((const struct describer *)state)->method;
    const uint32_t number = descriptors_of(method->descriptor, in);
    count[0] = 1;
    count[1] = count[2] = 0;
    if (method->channels == 0)
        count[1] = number;
    if (number == 0 || method->channels == 0)
        return;
    count[1] = (in->width + GRADIENT_RUN - 1) / GRADIENT_RUN * in->height * method->channels;
    for (unsigned i = 0; i < DESCRIPTOR_SIDES && method->descriptor->side[i]; i++) {
        const struct descriptor_grid grid =
            descriptor_grid(method->descriptor, i, in->width, in->height);
        count[2] += (grid.columns + SIFT_TILE - 1) / SIFT_TILE * grid.rows;
    }
}

static void fill_entry(void *table, const void *state, uint32_t list_entries,
                       const struct step_entry *entry)
{
    (void)state;
    (void)list_entries;
    const struct part_shape *in = entry->in;
    const bool nothing = entry->given_up || !part_is_whole(in);
    ((struct descriptor_part *)table)[entry->first[0]] =
        (struct descriptor_part){.offset = entry->in_offset,
                                 .width = nothing ? 0 : in->width,
                                 .height = nothing ? 0 : in->height,
                                 .out = entry->out_offset,
                                 .scratch = entry->in_offset / 3,
                                 .first = {entry->first[1], entry->first[2]}};
}

static enum status enqueue_kernels(void *state, struct ocl_queue *queue, struct step_io *io,
                                   struct error *err)
{
    const struct describer *describer = state;
    const struct ocl_device *device = ocl_context_device(describer->context);
    for (unsigned i = 0; describer->method->kernel[i]; i++) {
        const cl_uint count = io->counts[0], items = io->counts[1 + i];
        if (items == 0)
            continue;
        size_t local = GROUP_MOST;
        while (local > device->max_work_group || local > device->max_work_item[0])
            local /= 2;
        /* CPU drivers run a work-group's items sequentially, so one item does all of its work. */
        if (i == 1 && device->type == CL_DEVICE_TYPE_CPU)
            local = 1;
        const size_t global = i == 1 ? items * local : ocl_range_size(device, items, local);
        if (ocl_args(describer->kernel[i], err, sizeof io->in, &io->in, sizeof io->table,
                     &io->table, sizeof count, &count, sizeof items, &items, sizeof io->out,
                     &io->out, describer->method->channels ? sizeof io->scratch : OCL_ARGS_END,
                     &io->scratch, OCL_ARGS_END) != STATUS_OK ||
            ocl_enqueue_kernel(queue, describer->method->kernel[i], describer->kernel[i], 1,
                               &global, &local, io->waits, &io->events[i], err) != STATUS_OK)
            return STATUS_FAILED;
        io->last = &io->events[i];
    }
    return STATUS_OK;
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_PARTS 12u
#define TEST_BYTES (128u << 10)

/* Flat, random, smooth and striped images: too small for any descriptor, for some of them, and with
 * more descriptors per row than a work-group processes. */
static uint32_t make_images(struct proof_part *parts, uint8_t *pixels)
{
    static const uint16_t sizes[TEST_PARTS][2] = {{1, 1},   {1, 40},  {8, 8},   {37, 37},
                                                  {23, 50}, {50, 23}, {71, 19}, {19, 71},
                                                  {10, 12}, {33, 38}, {200, 21}, {6, 240}};
    uint32_t offset = 0, state = RANDOM_START;
    for (uint32_t i = 0; i < TEST_PARTS; i++) {
        struct part_shape *in = &parts[i].in;
        in->width = in->rect.x1 = sizes[i][0];
        in->height = in->rect.y1 = sizes[i][1];
        part_set_rgb(in);
        parts[i].in_offset = offset;
        for (uint32_t b = 0; b < in->bytes; b++) {
            const uint32_t x = b % in->stride, y = b / in->stride;
            random_next(&state);
            pixels[offset + b] = i == 2       ? 200
                                 : i % 3 == 0 ? (uint8_t)(state >> 9)
                                 : i % 3 == 1 ? (uint8_t)(x * 5 + y * 3 + (state >> 30))
                                              : (uint8_t)(0 - (state >> 20 & x / 9 & 1));
        }
        offset += (uint32_t)(in->bytes + 127) / 128 * 128;
    }
    return offset;
}

static enum status test_describer(uint64_t *compared, uint64_t *wrong,
                                  struct ocl_context *context, const struct step *step,
                                  struct error *err)
{
    const struct step_node node = {.step = step};
    const struct descriptor *descriptor = method_of(step)->descriptor;
    struct proof_part parts[TEST_PARTS] = {{.in_offset = 0}};
    const size_t most = TEST_BYTES;
    *compared = *wrong = 0;
    uint8_t *pixels = calloc(9, TEST_BYTES);
    if (!pixels)
        return error_memory(err, 9 * most, "the self-test");
    uint8_t *got = pixels + 4 * most, *wanted = got + 4 * most;
    const uint32_t bytes = make_images(parts, pixels);
    assert(bytes <= most);
    (void)bytes;
    const enum status status =
        proof_run(got, parts, TEST_PARTS, &node, context, pixels, 4 * most, err);
    for (uint32_t i = 0; i < TEST_PARTS && status == STATUS_OK; i++) {
        const struct part_shape *in = &parts[i].in;
        const struct descriptor_picture picture = {pixels + parts[i].in_offset, in->stride,
                                                   in->width, in->height};
        const uint32_t number = descriptor_number(descriptor, picture.width, picture.height);
        for (uint32_t d = 0; d < number; d++) {
            descriptor_describe(wanted, descriptor, &picture, d, 1);
            for (uint32_t b = 0; b < descriptor->columns; b++)
                *wrong +=
                    got[parts[i].out_offset + d * descriptor->columns + b] != wanted[b];
        }
        *compared += parts[i].out.bytes;
    }
    free(pixels);
    return status;
}

/* arena: bytes of descriptors per 100 of pixels, halved because an image takes at most half of a
 * slot. scratch: 8 bytes per channel of a pixel. */
#define DESCRIBE_STEP(kind, arena, scratch)                                                        \
    static enum status test_##kind(uint64_t *compared, uint64_t *wrong,                            \
                                   struct ocl_context *context, struct error *err)                 \
    {                                                                                              \
        return test_describer(compared, wrong, context, &kind##_step, err);                        \
    }                                                                                              \
    const struct step kind##_step = {                                                              \
        .name = #kind,                                                                             \
        .takes = PAYLOAD_RGB,                                                                      \
        .gives = PAYLOAD_DESCRIPTORS,                                                              \
        .arena_percent = arena,                                                                    \
        .scratch_percent = scratch,                                                                \
        .entry_bytes = sizeof(struct descriptor_part),                                             \
        .fault = "the step '" #kind "' describes",                                                 \
        .upload = "upload parts",                                                                  \
        .unmap = "unmap parts",                                                                    \
        .map = "map parts",                                                                        \
        .open = open_describer,                                                                    \
        .close = close_describer,                                                                  \
        .build = build_describer,                                                                  \
        .prove = prove_describer,                                                                  \
        .output = make_descriptors,                                                                \
        .count = count_items,                                                                      \
        .fill = fill_entry,                                                                        \
        .enqueue = enqueue_kernels,                                                                \
        .self_test_name = "descriptors " #kind,                                                    \
        .self_test = test_##kind,                                                                  \
    }

DESCRIBE_STEP(dct, 9, 0);
DESCRIBE_STEP(patch, 202, 0);
DESCRIBE_STEP(sift, 345, 267);
DESCRIBE_STEP(opsift, 132, 800);
