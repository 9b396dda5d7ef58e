/* scale_step.c: the C reference of the box filter, and its kernel. */
#include "steps/scale_step.h"

#include "base/random.h"
#include "scale_part.h"
#include "steps/proof.h"
#include "steps/slot_kernel.h"

#include <stdlib.h>
#include <string.h>

void scale_size(uint32_t *scaled_width, uint32_t *scaled_height, uint32_t width, uint32_t height,
                uint32_t side)
{
    const uint32_t longer = width > height ? width : height;
    *scaled_width = width;
    *scaled_height = height;
    if (longer <= side)
        return;
    const uint64_t across = ((uint64_t)width * side + longer / 2) / longer;
    const uint64_t down = ((uint64_t)height * side + longer / 2) / longer;
    *scaled_width = across > 0 ? (uint32_t)across : 1;
    *scaled_height = down > 0 ? (uint32_t)down : 1;
}

/* What scaled column x of `scaled` shares with column i of `size`: 0 where they do not meet. */
static uint64_t weight(uint32_t x, uint32_t scaled, uint32_t i, uint32_t size)
{
    const uint64_t from = (uint64_t)x * size, to = from + size;
    const uint64_t left = (uint64_t)i * scaled, right = left + scaled;
    const uint64_t low = from > left ? from : left, high = to < right ? to : right;
    return high > low ? high - low : 0;
}

void scale_reference(uint8_t *scaled, size_t scaled_stride, uint32_t scaled_width,
                     uint32_t scaled_height, const uint8_t *pixels, size_t stride, uint32_t width,
                     uint32_t height)
{
    const uint64_t area = (uint64_t)width * height;
    for (uint32_t y = 0; y < scaled_height; y++) {
        for (uint32_t x = 0; x < scaled_width; x++) {
            uint64_t sum[3] = {0};
            const uint32_t top = (uint32_t)((uint64_t)y * height / scaled_height);
            const uint32_t left = (uint32_t)((uint64_t)x * width / scaled_width);
            for (uint32_t j = top; j < height && weight(y, scaled_height, j, height) > 0; j++) {
                for (uint32_t i = left; i < width && weight(x, scaled_width, i, width) > 0; i++) {
                    const uint64_t both =
                        weight(y, scaled_height, j, height) * weight(x, scaled_width, i, width);
                    for (unsigned c = 0; c < 3; c++)
                        sum[c] += both * pixels[j * stride + 3 * (size_t)i + c];
                }
            }
            for (unsigned c = 0; c < 3; c++)
                scaled[y * scaled_stride + 3 * (size_t)x + c] =
                    (uint8_t)((sum[c] + area / 2) / area);
        }
    }
}

/* --- the step -------------------------------------------------------------------------------- */

/* A part of a picture gives nothing. */
static void scale_shape(struct part_shape *shape, const struct step_node *node)
{
    const bool whole = part_is_whole(shape);
    scale_size(&shape->width, &shape->height, shape->width, shape->height, node->parameter);
    shape->rect = (struct cell_rect){0, 0, whole ? shape->width : 0, whole ? shape->height : 0};
    part_set_rgb(shape);
}

/* An entry; its scaled pixels. */
static void count_pixels(uint32_t *count, const void *state, const struct part_shape *in)
{
    struct part_shape out = *in;
    scale_shape(&out, slot_kernel_node(state));
    count[0] = 1;
    count[1] = (uint32_t)(out.bytes / 3);
}

static void fill_entry(void *table, const void *state, uint32_t list_entries,
                       const struct step_entry *entry)
{
    (void)state;
    (void)list_entries;
    const struct part_shape *in = entry->in, *out = entry->out;
    ((struct scale_part *)table)[entry->first[0]] =
        (struct scale_part){.offset = entry->in_offset,
                            .scaled = entry->out_offset,
                            .width = in->width,
                            .height = in->height,
                            .scaled_width = out->width,
                            .scaled_height = entry->given_up ? 0 : out->rect.y1,
                            .first = entry->first[1]};
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_SIDE  13u
#define TEST_BYTES (128u << 10)

static enum status test_scale(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                              struct error *err)
{
    /* No larger; by one; twice, three times and a prime number of times; single rows and columns. */
    static const uint32_t sizes[][2] = {{1, 1},   {13, 13}, {14, 14}, {26, 13}, {39, 26}, {97, 89},
                                        {101, 1}, {1, 101}, {12, 7},  {64, 48}, {27, 2},  {3, 200}};
    enum { PARTS = sizeof sizes / sizeof *sizes };
    static const struct step_node node = {.step = &scale_step, .parameter = TEST_SIDE};
    struct proof_part parts[PARTS] = {{.in_offset = 0}};
    *compared = *wrong = 0;
    uint8_t *pixels = calloc(3, TEST_BYTES);
    if (!pixels)
        return error_memory(err, 3 * (size_t)TEST_BYTES, "the self-test");
    uint8_t *scaled = pixels + TEST_BYTES, *wanted = scaled + TEST_BYTES;
    /* Random bytes, white ones and black ones in between: the largest and the smallest sums. */
    uint32_t state = RANDOM_START;
    for (uint32_t i = 0; i < TEST_BYTES; i++) {
        random_next(&state);
        pixels[i] = i >> 9 & 1 ? (uint8_t)(0 - (i >> 10 & 1)) : (uint8_t)(state >> 9);
    }
    for (uint32_t i = 0, offset = 0; i < PARTS; i++) {
        struct part_shape *in = &parts[i].in;
        in->width = in->rect.x1 = sizes[i][0];
        in->height = in->rect.y1 = sizes[i][1];
        part_set_rgb(in);
        parts[i].in_offset = offset;
        offset += (uint32_t)in->bytes;
    }
    const enum status status =
        proof_run(scaled, parts, PARTS, &node, context, pixels, TEST_BYTES, err);
    for (uint32_t i = 0; i < PARTS && status == STATUS_OK; i++) {
        const struct part_shape *in = &parts[i].in, *out = &parts[i].out;
        scale_reference(wanted, out->stride, out->width, out->height, pixels + parts[i].in_offset,
                        in->stride, in->width, in->height);
        for (size_t b = 0; b < out->bytes; b++)
            *wrong += scaled[parts[i].out_offset + b] != wanted[b];
        *compared += out->bytes;
    }
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
    .upload = "upload parts",
    .unmap = "unmap parts",
    .map = "map parts",
    .open = slot_kernel_open,
    .close = slot_kernel_close,
    .build = slot_kernel_build,
    .prove = slot_kernel_prove,
    .output = scale_shape,
    .count = count_pixels,
    .fill = fill_entry,
    .enqueue = slot_kernel_enqueue,
    .self_test_name = "scaled pixels",
    .self_test = test_scale,
};
