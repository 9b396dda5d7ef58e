/* thumbnail_step.c: table entries of coefficients in a slot, for the kernel that computes
 * thumbnails. */
#include "device/plan.h"

#include "base/random.h"
#include "decode/dct_synthetic.h"
#include "device/proof.h"
#include "device/slot_kernel.h"
#include "thumbnail_part.h"

#include <string.h>

uint32_t thumbnail_words(uint32_t size)
{
    return (3 * size * size + 3) / 4;
}

/* Where devices compute pixels from coefficients. */
static bool is_possible(const struct ocl_device *device, uint64_t parameter)
{
    return jpeg_step.possible(device, parameter);
}

static const struct thumbnail_config *config_of(const void *state)
{
    return ((const struct slot_kernel *)state)->node->config;
}

static uint32_t pixels_of(uint32_t *width, uint32_t *height, const struct part_shape *in,
                          const struct thumbnail_config *config)
{
    *width = in->dct.width;
    *height = in->dct.height;
    shrink_dimensions(width, height, config->size);
    return *width * *height;
}

/* Counts an entry for coefficients, and the thumbnail's pixels. */
static void count_pixels(uint32_t *count, const void *state, const struct part_shape *in)
{
    uint32_t width, height;
    const bool takes = in->payload == PAYLOAD_DCT;
    count[0] = takes;
    count[1] = takes ? pixels_of(&width, &height, in, config_of(state)) : 0;
}

/* 1 / the weights of the two box sizes, `from` rows or columns to `to`. */
static void set_reciprocals(float reciprocal[2], uint32_t from, uint32_t to, uint32_t unit)
{
    const bool whole = box_is_whole(from, to);
    const uint32_t least = whole ? from / to * unit : from * BOX_UNIT / to;
    reciprocal[0] = 1.0f / (float)least;
    reciprocal[1] = 1.0f / (float)(least + (whole ? unit : 1));
}

static void fill_entry(void *table, const void *state, const struct step_entry *entry)
{
    static const uint32_t colours[] = {
        [DCT_GREY] = THUMBNAIL_GREY, [DCT_YCC] = THUMBNAIL_YCC, [DCT_RGB] = THUMBNAIL_RGB};
    const struct thumbnail_config *config = config_of(state);
    const struct dct_layout *dct = &entry->in->dct;
    struct thumbnail_part *part = (struct thumbnail_part *)table + entry->first[0];
    uint32_t height;
    if (entry->in->payload != PAYLOAD_DCT)
        return;
    *part = (struct thumbnail_part){.first = entry->first[1],
                                    .offset = entry->in_offset,
                                    .bytes = 4 * (entry->values + config->first),
                                    .colour = colours[dct->colour],
                                    .shift_x = dct->across - 1u,
                                    .shift_y = dct->down - 1u};
    const uint32_t pixels = pixels_of(&part->to_width, &part->to_height, entry->in, config);
    part->pixels = entry->given_up ? 0 : pixels;
    part->side = reduced_side(&part->columns, &height, dct, part->to_width, part->to_height);
    part->step = shrink_step(height, part->to_height);
    part->middle = part->step / 2;
    part->lines = shrink_lines(height, part->step);
    for (unsigned c = 0, block = 0; c < DCT_COMPONENTS; c++) {
        part->block[c] = block;
        part->blocks_across[c] = dct->blocks_across[c];
        block += (uint32_t)dct_component_blocks(dct, c);
    }
    set_reciprocals(part->across, part->columns, part->to_width, BOX_UNIT);
    set_reciprocals(part->down, part->lines, part->to_height, 1);
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_SIZE  16u
#define TEST_BYTES (2u << 20)

/* Not reduced; blocks of 8, 4, 2 and 1 pixels; boxes of whole and of partial pixels; skipped
 * rows. */
static const struct dct_layout layouts[] = {
    {.colour = DCT_GREY, .width = 1, .height = 1, .across = 1, .down = 1},
    {.colour = DCT_YCC, .width = 16, .height = 11, .across = 2, .down = 2},
    {.colour = DCT_YCC, .width = 31, .height = 17, .across = 2, .down = 1},
    {.colour = DCT_RGB, .width = 33, .height = 61, .across = 1, .down = 1},
    {.colour = DCT_YCC, .width = 100, .height = 75, .across = 2, .down = 2},
    {.colour = DCT_YCC, .width = 129, .height = 128, .across = 1, .down = 1},
    {.colour = DCT_YCC, .width = 220, .height = 180, .across = 2, .down = 1},
    {.colour = DCT_GREY, .width = 333, .height = 250, .across = 1, .down = 1},
    {.colour = DCT_GREY, .width = 40, .height = 1100, .across = 1, .down = 1},
    {.colour = DCT_GREY, .width = 2100, .height = 24, .across = 1, .down = 1},
    {.colour = DCT_YCC, .width = 75, .height = 90, .across = 2, .down = 2}, /* cancelled */
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* Coefficients as in photographs, then of any size; and pixels. */
static void add_parts(struct proof *proof)
{
    uint32_t random = RANDOM_START;
    for (uint32_t i = 0; i < 2 * LAYOUTS + 1; i++) {
        struct part_shape *in = &proof->part[i].in;
        in->dct = layouts[i % LAYOUTS];
        in->width = in->rect.x1 = in->dct.width;
        in->height = in->rect.y1 = in->dct.height;
        part_set_rgb(in);
        if (i < 2 * LAYOUTS) {
            dct_synthetic_blocks(&in->dct);
            in->payload = PAYLOAD_DCT;
            in->bytes = dct_bytes(&in->dct);
            dct_synthetic_coefficients(proof->in + proof->used, &in->dct, i < LAYOUTS ? 60 : 32767,
                                       i < LAYOUTS ? 24 : 65535, &random);
        }
        struct proof_part *part = proof_add(proof);
        part->given_up = i % LAYOUTS == LAYOUTS - 1;
        part->values = i * thumbnail_words(TEST_SIZE);
    }
}

static enum status make_wanted(struct proof *proof, struct error *err)
{
    struct shrink shrink = {.height = 0};
    bool made = true;
    for (uint32_t i = 0; i < 2 * LAYOUTS && made; i++) {
        const struct proof_part *part = &proof->part[i];
        uint32_t width = part->in.width, height = part->in.height;
        uint8_t pixels[3 * TEST_SIZE * TEST_SIZE + 1];
        shrink_dimensions(&width, &height, TEST_SIZE);
        made = shrink_coefficients(&shrink, proof->in + part->in_offset, &part->in.dct, pixels,
                                   width, height);
        if (made && !part->given_up)
            memcpy(proof->wanted + 4 * part->values, pixels, 3 * (size_t)width * height);
    }
    shrink_clear(&shrink);
    return made ? STATUS_OK : error_memory(err, TEST_BYTES, "the self-test");
}

static enum status test_thumbnails(struct proof *proof, struct error *err)
{
    static const struct thumbnail_config config = {.size = TEST_SIZE};
    proof->node.config = &config;
    if (proof_open(proof, TEST_BYTES, 128, err) != STATUS_OK)
        return STATUS_FAILED;
    add_parts(proof);
    proof_poison_words(proof);
    if (make_wanted(proof, err) != STATUS_OK)
        return STATUS_FAILED;
    return proof_words(proof, thumbnail_words(TEST_SIZE), err);
}

/* One node for each image; the perceptual code has the feature NULL. */
static bool is_needed(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    node->config = &plan->thumbnail;
    return plan->thumbnail.size > 0 && !feature && jpeg_step.needed(node, plan, feature);
}

const struct step thumbnail_step = {
    .name = "thumbnail",
    .needed = is_needed,
    .takes = PAYLOAD_DCT,
    .gives = PAYLOAD_VALUES,
    .entry_bytes = sizeof(struct thumbnail_part),
    .fault = "kernel thumbnail_slot is",
    .kernels = {"thumbnail_slot"},
    SLOT_KERNEL,
    .otherwise = "JPEG pixels are made on the host, for the thumbnails",
    .possible = is_possible,
    .count = count_pixels,
    .fill = fill_entry,
    .self_test_name = "pixels of thumbnails",
    .self_test = test_thumbnails,
};
