/* scale_step.c: launches the kernel of the box filter. */
#include "device/plan.h"

#include "device/proof.h"
#include "device/slot_kernel.h"
#include "scale_part.h"

#include <stdlib.h>

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
    scale_shape(&out, ((const struct slot_kernel *)state)->node);
    count[0] = 1;
    if (((const struct slot_kernel *)state)->cpu)
        count[1] = out.bytes == 0 ? 0 : ((in->orientation >= 5 ? out.width : out.height) + 1) / 2;
    else
        count[1] = (uint32_t)(out.bytes / 3);
}

static void fill_entry(void *table, const void *state, const struct step_entry *entry)
{
    const struct part_shape *in = entry->in, *out = entry->out;
    const struct scale_window window =
        scale_window(in->width, in->height, in->orientation,
                     ((const struct slot_kernel *)state)->node->parameter);
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

static enum status test_goal(struct proof *proof, scale_goal goal, struct error *err)
{
    /* Images no larger than the goal, larger by one, and by factors of two, three and a prime;
     * single rows and columns. */
    static const uint32_t sizes[][2] = {{1, 1},   {13, 13}, {14, 14}, {26, 13}, {39, 26}, {97, 89},
                                        {101, 1}, {1, 101}, {12, 7},  {64, 48}, {27, 2},  {3, 200}};
    proof->node.parameter = goal;
    if (proof_open_random(proof, TEST_BYTES, err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        proof_add_rgb(proof, sizes[i][0], sizes[i][1])->in.orientation =
            (uint8_t)(i % 9); /* 0 is upright, too */
    if (proof_parts(proof, err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint32_t i = 0; i < proof->count; i++) {
        const struct proof_part *part = &proof->part[i];
        const struct part_shape *in = &part->in;
        const struct scale_window window =
            scale_window(in->width, in->height, in->orientation, goal);
        scale_reference(proof->wanted, &window, proof->in + part->in_offset, in->stride, in->width,
                        in->height, in->orientation);
        proof_compare(proof, part, proof->wanted);
    }
    return STATUS_OK;
}

static enum status test_scale(struct proof *proof, struct error *err)
{
    const scale_goal goals[] = {TEST_SIDE, scale_to(13, 13, 0), scale_to(14, 9, 875)};
    enum status status = STATUS_OK;
    for (size_t g = 0; g < sizeof goals / sizeof *goals && status == STATUS_OK; g++)
        status = test_goal(proof, goals[g], err);
    return status;
}

static bool is_needed(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    node->parameter = feature ? feature->image.scale : 0;
    return node->parameter > 0;
}

const struct step scale_step = {
    .name = "scale",
    .needed = is_needed,
    .takes = PAYLOAD_RGB,
    .gives = PAYLOAD_RGB,
    .whole = true,
    .arena_percent = 100,
    .entry_bytes = sizeof(struct scale_part),
    .fault = "kernel scale_slot scales",
    .kernels = {"scale_slot"},
    SLOT_KERNEL,
    .output = scale_shape,
    .count = count_items,
    .fill = fill_entry,
    .self_test_name = "scaled pixels",
    .self_test = test_scale,
};
