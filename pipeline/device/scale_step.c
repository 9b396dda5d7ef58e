/* scale_step.c: launches the kernel of the box filter. */
#include "device/scale_step.h"

#include "base/random.h"
#include "device/proof.h"
#include "device/slot_kernel.h"
#include "scale_part.h"

#include <stdlib.h>
#include <string.h>

/* --- the step -------------------------------------------------------------------------------- */

/* The upright scaled shape. Empty for parts of a picture, and for parts scaled for another step. */
static void scale_shape(struct part_shape *shape, const struct step_node *node)
{
    const bool takes =
        part_is_whole(shape) && (shape->scaled == 0 || shape->scaled == node->parameter);
    const struct scale_window window =
        scale_window(shape->width, shape->height, shape->orientation, node->parameter);
    const bool swapped = shape->orientation >= 5;
    shape->width = swapped ? window.height : window.width;
    shape->height = swapped ? window.width : window.height;
    shape->orientation = 1;
    shape->rect = (struct cell_rect){0, 0, takes ? shape->width : 0, takes ? shape->height : 0};
    shape->scaled = 0;
    shape->overlap = 0;
    part_set_rgb(shape);
}

/* Counts an entry and its scaled pixels, on CPUs pairs of rows as stored. */
static void count_items(uint32_t *count, const void *state, const struct part_shape *in)
{
    struct part_shape out = *in;
    scale_shape(&out, slot_kernel_node(state));
    count[0] = 1;
    if (slot_kernel_on_cpu(state))
        count[1] = out.bytes == 0 ? 0 : ((in->orientation >= 5 ? out.width : out.height) + 1) / 2;
    else
        count[1] = (uint32_t)(out.bytes / 3);
}

static void fill_entry(void *table, const void *state, uint32_t list_entries,
                       const struct step_entry *entry)
{
    (void)list_entries;
    const struct part_shape *in = entry->in, *out = entry->out;
    const struct scale_window window =
        scale_window(in->width, in->height, in->orientation, slot_kernel_node(state)->parameter);
    const struct scale_turn turn = scale_turn(window.width, window.height, in->orientation);
    ((struct scale_part *)table)[entry->first[0]] =
        (struct scale_part){.offset = entry->in_offset,
                            .scaled = entry->out_offset + turn.first,
                            .column = turn.column,
                            .row = turn.row,
                            .width = in->width,
                            .height = in->height,
                            .full_width = window.full_width,
                            .full_height = window.full_height,
                            .left = window.left,
                            .top = window.top,
                            .scaled_width = window.width,
                            .scaled_height = entry->given_up || out->bytes == 0 ? 0 : window.height,
                            .first = entry->first[1]};
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_SIDE  13u
#define TEST_BYTES (128u << 10)

static enum status test_goal(uint64_t *compared, uint64_t *wrong, uint8_t *pixels,
                             struct ocl_context *context, scale_goal goal, struct error *err)
{
    /* Not larger than the goal; larger by one, by factors of two, three and a prime; single rows
     * and columns. */
    static const uint32_t sizes[][2] = {{1, 1},   {13, 13}, {14, 14}, {26, 13}, {39, 26}, {97, 89},
                                        {101, 1}, {1, 101}, {12, 7},  {64, 48}, {27, 2},  {3, 200}};
    enum { PARTS = sizeof sizes / sizeof *sizes };
    const struct step_node node = {.step = &scale_step, .parameter = goal};
    struct proof_part parts[PARTS] = {{.in_offset = 0}};
    uint8_t *scaled = pixels + TEST_BYTES, *wanted = scaled + TEST_BYTES;
    for (uint32_t i = 0, offset = 0; i < PARTS; i++) {
        struct part_shape *in = &parts[i].in;
        in->width = in->rect.x1 = sizes[i][0];
        in->height = in->rect.y1 = sizes[i][1];
        in->orientation = (uint8_t)(i % 9); /* 0 is upright, too */
        part_set_rgb(in);
        parts[i].in_offset = offset;
        offset += (uint32_t)in->bytes;
    }
    const enum status status =
        proof_run(scaled, parts, PARTS, &node, context, pixels, TEST_BYTES, err);
    for (uint32_t i = 0; i < PARTS && status == STATUS_OK; i++) {
        const struct part_shape *in = &parts[i].in, *out = &parts[i].out;
        const struct scale_window window =
            scale_window(in->width, in->height, in->orientation, goal);
        scale_reference(wanted, &window, pixels + parts[i].in_offset, in->stride, in->width,
                        in->height, in->orientation);
        for (size_t b = 0; b < out->bytes; b++)
            *wrong += scaled[parts[i].out_offset + b] != wanted[b];
        *compared += out->bytes;
    }
    return status;
}

static enum status test_scale(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                              struct error *err)
{
    const scale_goal goals[] = {TEST_SIDE, scale_to(13, 13, 0), scale_to(14, 9, 875)};
    enum status status = STATUS_OK;
    *compared = *wrong = 0;
    uint8_t *pixels = calloc(3, TEST_BYTES);
    if (!pixels)
        return error_memory(err, 3 * (size_t)TEST_BYTES, "the self-test");
    /* Random bytes with runs of white and black: the largest and the smallest sums. */
    uint32_t state = RANDOM_START;
    for (uint32_t i = 0; i < TEST_BYTES; i++) {
        random_next(&state);
        pixels[i] = i >> 9 & 1 ? (uint8_t)(0 - (i >> 10 & 1)) : (uint8_t)(state >> 9);
    }
    for (size_t g = 0; g < sizeof goals / sizeof *goals && status == STATUS_OK; g++)
        status = test_goal(compared, wrong, pixels, context, goals[g], err);
    free(pixels);
    return status;
}

const struct step scale_step = {
    .name = "scale",
    .takes = PAYLOAD_RGB,
    .gives = PAYLOAD_RGB,
    .whole = true,
    .arena_percent = 100,
    .entry_bytes = sizeof(struct scale_part),
    .fault = "kernel scale_slot scales",
    .kernel = "scale_slot",
    SLOT_KERNEL,
    .output = scale_shape,
    .count = count_items,
    .fill = fill_entry,
    .self_test_name = "scaled pixels",
    .self_test = test_scale,
};
