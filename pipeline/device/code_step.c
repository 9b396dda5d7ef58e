/* code_step.c: launches the kernel that adds up the samples of perceptual codes. */
#include "device/plan.h"

#include "code_part.h"
#include "device/proof.h"
#include "device/slot_kernel.h"
#include "features/code.h"

static void count_part(uint32_t *count, const void *state, const struct part_shape *in)
{
    (void)in;
    count[0] = 1;
    count[1] =
        ((const struct slot_kernel *)state)->cpu ? CODE_ITEMS(CODE_RUN_CPU) : CODE_ITEMS(CODE_RUN);
}

static struct code_part code_part_of(const struct part_shape *in, bool given_up)
{
    const struct cell_rect own = part_own(in);
    const uint8_t o = in->orientation;
    return (struct code_part){.stride = in->stride,
                              .width = in->width,
                              .height = in->height,
                              .x0 = own.x0,
                              .y0 = own.y0,
                              .x1 = given_up ? own.x0 : own.x1,
                              .y1 = given_up ? own.y0 : own.y1,
                              .turned = (o >= 5) | (o == 2 || o == 3 || o == 7 || o == 8) << 1 |
                                        (o == 3 || o == 4 || o == 6 || o == 7) << 2};
}

static void fill_part(void *table, const void *state, const struct step_entry *entry)
{
    struct code_part part = code_part_of(entry->in, entry->given_up);
    part.offset = entry->in_offset;
    part.words = entry->values + (uint32_t)((const struct slot_kernel *)state)->node->parameter;
    ((struct code_part *)table)[entry->first[0]] = part;
}

/* --- self-test ------------------------------------------------------------------------------- */

/* Images of every orientation, smaller and larger than the samples, and one image in two strips. */
static enum status test_code(struct proof *proof, struct error *err)
{
    static const uint32_t sizes[][2] = {{1, 1}, {3, 200}, {32, 29}, {128, 64}, {131, 97}};
    enum { TURNED = 32, STRIPS = 2, STRIP = 40 };
    if (proof_open_random(proof, 320u << 10, err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint32_t i = 0; i < TURNED + STRIPS; i++) {
        struct part_shape *in = &proof->part[i].in;
        in->width = sizes[i / 8][0];
        in->height = sizes[i / 8][1];
        in->orientation = i < TURNED ? (uint8_t)(1 + i % 8) : 6;
        in->rect = (struct cell_rect){0, i == TURNED + 1 ? STRIP : 0, in->width,
                                      i == TURNED ? STRIP : in->height};
        part_set_rgb(in);
        struct proof_part *part = proof_add(proof);
        part->values = i * CODE_WORDS;
        code_count_reference((uint32_t *)(void *)proof->wanted + part->values,
                             proof->in + part->in_offset, in->stride, in->rect, in->width,
                             in->height, in->orientation);
    }
    return proof_words(proof, CODE_WORDS, err);
}

static bool is_needed(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    node->parameter = plan->config.features->counters;
    return !feature;
}

const struct step code_step = {
    .name = "code",
    .needed = is_needed,
    .takes = PAYLOAD_RGB,
    .gives = PAYLOAD_VALUES,
    .entry_bytes = sizeof(struct code_part),
    .fault = "kernel code_slot adds up",
    .kernels = {"code_slot"},
    SLOT_KERNEL,
    .count = count_part,
    .fill = fill_part,
    .self_test_name = "words of codes",
    .self_test = test_code,
};
