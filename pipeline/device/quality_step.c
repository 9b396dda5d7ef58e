/* quality_step.c: launches the kernel that computes the words of the kind quality. */
#include "device/plan.h"

#include "base/random.h"
#include "device/proof.h"
#include "device/slot_kernel.h"
#include "features/kind.h"
#include "features/quality.h"

static void count_part(uint32_t *count, const void *state, const struct part_shape *in)
{
    count[0] = in->bytes > 0;
    count[1] = in->bytes == 0 ? 0 : ((const struct slot_kernel *)state)->cpu ? 1 : QUALITY_ITEMS;
}

static void fill_part(void *table, const void *state, const struct step_entry *entry)
{
    const struct part_shape *in = entry->in;
    if (in->bytes > 0)
        ((struct quality_part *)table)[entry->first[0]] = (struct quality_part){
            .offset = entry->in_offset,
            .stride = in->stride,
            .width = in->width,
            .height = entry->given_up ? 0 : in->height,
            .words =
                entry->values + (uint32_t)((const struct slot_kernel *)state)->node->parameter};
}

/* --- self-test ------------------------------------------------------------------------------- */

/* Pictures too small for edges, with a frame, with noise in some rows, and a large one. */
static enum status test_quality(struct proof *proof, struct error *err)
{
    static const uint32_t sizes[][2] = {{1, 1},   {3, 200}, {200, 3}, {8, 9},    {33, 21},
                                        {97, 89}, {64, 64}, {2, 2},   {256, 171}};
    uint32_t state = RANDOM_START;
    if (proof_open(proof, 256u << 10, 1, err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct proof_part *part = proof_add_rgb(proof, sizes[i][0], sizes[i][1]);
        const uint32_t w = part->in.width, h = part->in.height;
        uint8_t *pixels = proof->in + part->in_offset;
        part->in.orientation = 1;
        part->values = i * QUALITY_WORDS;
        for (uint32_t at = 0; at < 3 * w * h; at++) {
            const uint32_t x = at / 3 % w, y = at / 3 / w;
            const bool framed = i % 2 == 0 && (x < 3 || y < 5 || x + 2 >= w || y + 4 >= h);
            random_next(&state);
            pixels[at] = framed       ? (uint8_t)(i + (state >> 30))
                         : y / 30 % 2 ? (uint8_t)(state >> 24)
                                      : (uint8_t)(x * 5 + y + (state >> 28) + 40 * (x / 8));
        }
        quality_reference((uint32_t *)(void *)proof->wanted + part->values, pixels, part->in.stride,
                          w, h);
    }
    return proof_words(proof, QUALITY_WORDS, err);
}

static bool is_needed(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    node->parameter = feature ? feature->offset : 0;
    return feature && feature->kind == &feature_quality;
}

const struct step quality_step = {
    .name = "quality",
    .needed = is_needed,
    .takes = PAYLOAD_RGB,
    .gives = PAYLOAD_VALUES,
    .entry_bytes = sizeof(struct quality_part),
    .fault = "kernel quality_slot counts",
    .kernels = {"quality_slot"},
    SLOT_KERNEL,
    .count = count_part,
    .fill = fill_part,
    .self_test_name = "words of quality",
    .self_test = test_quality,
};
