/* code_step.c: launches the kernel that adds up the samples of perceptual codes. */
#include "device/code_step.h"

#include "base/random.h"
#include "code_part.h"
#include "device/proof.h"
#include "device/slot_kernel.h"

#include <stdlib.h>

static void count_part(uint32_t *count, const void *state, const struct part_shape *in)
{
    (void)in;
    count[0] = 1;
    count[1] = slot_kernel_on_cpu(state) ? CODE_ITEMS(CODE_RUN_CPU) : CODE_ITEMS(CODE_RUN);
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

static void fill_part(void *table, const void *state, uint32_t list_entries,
                      const struct step_entry *entry)
{
    (void)list_entries;
    struct code_part part = code_part_of(entry->in, entry->given_up);
    part.offset = entry->in_offset;
    part.words = entry->values + (uint32_t)slot_kernel_node(state)->parameter;
    ((struct code_part *)table)[entry->first[0]] = part;
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_TURNED 32u
#define TEST_PARTS  (TEST_TURNED + 2)

/* Images of every orientation, smaller and larger than the samples, and one image in two strips. */
static uint32_t make_parts(struct proof_part *parts)
{
    static const uint32_t sizes[][2] = {{1, 1}, {3, 200}, {32, 29}, {128, 64}};
    uint32_t offset = 0;
    for (uint32_t i = 0; i < TEST_PARTS; i++) {
        struct part_shape *in = &parts[i].in;
        in->width = i < TEST_TURNED ? sizes[i / 8][0] : 131;
        in->height = i < TEST_TURNED ? sizes[i / 8][1] : 97;
        in->orientation = i < TEST_TURNED ? (uint8_t)(1 + i % 8) : 6;
        in->rect = (struct cell_rect){0, i == TEST_TURNED + 1 ? 40 : 0, in->width,
                                      i == TEST_TURNED ? 40 : in->height};
        part_set_rgb(in);
        parts[i].in_offset = offset;
        parts[i].values = i * CODE_WORDS;
        offset += (uint32_t)in->bytes;
    }
    return offset;
}

static enum status test_code(uint64_t *compared, uint64_t *wrong, struct ocl_context *context,
                             struct error *err)
{
    static const struct step_node node = {.step = &code_step};
    struct proof_part parts[TEST_PARTS] = {{.in_offset = 0}};
    uint32_t state = RANDOM_START;
    const uint32_t bytes = make_parts(parts);
    const size_t words = TEST_PARTS * CODE_WORDS;
    const size_t most = bytes > words * 4 ? bytes : words * 4;
    *compared = *wrong = 0;
    uint8_t *pixels = calloc(1, most);
    uint32_t *got = calloc(1, most), *wanted = calloc(words, sizeof *wanted);
    enum status status = STATUS_FAILED;
    if (!pixels || !got || !wanted) {
        error_memory(err, 3 * most, "the self-test");
        goto out;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        random_next(&state);
        pixels[i] = i >> 11 & 1 ? 255 : (uint8_t)(state >> 9);
    }
    status = proof_run((uint8_t *)got, parts, TEST_PARTS, &node, context, pixels, most, err);
    for (uint32_t i = 0; i < TEST_PARTS && status == STATUS_OK; i++) {
        const struct part_shape *in = &parts[i].in;
        code_count_reference(wanted + parts[i].values, pixels + parts[i].in_offset, in->stride,
                             in->rect, in->width, in->height, in->orientation);
    }
    for (size_t i = 0; i < words && status == STATUS_OK; i++)
        *wrong += 4 * (got[i] != wanted[i]);
    *compared = words * 4;
out:
    free(wanted);
    free(got);
    free(pixels);
    return status;
}

const struct step code_step = {
    .name = "code",
    .takes = PAYLOAD_RGB,
    .gives = PAYLOAD_VALUES,
    .entry_bytes = sizeof(struct code_part),
    .fault = "kernel code_slot adds up",
    .kernel = "code_slot",
    SLOT_KERNEL,
    .count = count_part,
    .fill = fill_part,
    .self_test_name = "words of codes",
    .self_test = test_code,
};
