/* entropy_step.c: table entries of streams in a slot, and the kernel that decodes them.
 *
 * A work-group decodes one picture. Larger groups decode large pictures sooner, but waste more on
 * small ones, and shorter bit ranges per work-item need more repairs. So only slots with a large
 * picture use larger groups. */
#include "device/plan.h"

#include "base/random.h"
#include "decode/dct_synthetic.h"
#include "decode/stream_synthetic.h"
#include "device/proof.h"
#include "entropy_part.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES_USUAL 256u
#define LANES_LARGE 512u
#define LANES_LEAST 64u
/* The node's parameter in the self-test; the others are those of enum step_use. */
#define LARGE_GROUPS (STEP_ALWAYS + 1)
#define LARGE_BYTES  250000u
/* Local memory of a group: tables, and a part per work-item. All that NVIDIA's devices have is
 * used, even if the driver reports less. */
#define TABLES_LOCAL 10240u
#define LANE_LOCAL   168u
#define NVIDIA_LOCAL (99u << 10)
#define NVIDIA_MAJOR 8u

_Static_assert(sizeof(struct jpeg_stream) == sizeof(struct stream_head) &&
                   offsetof(struct jpeg_stream, slot) == offsetof(struct stream_head, slot) &&
                   offsetof(struct jpeg_stream, quantization) ==
                       offsetof(struct stream_head, quantization) &&
                   offsetof(struct jpeg_stream, table) == offsetof(struct stream_head, table) &&
                   offsetof(struct jpeg_stream, dc_tables) ==
                       offsetof(struct stream_head, dc_tables) &&
                   JPEG_BLOCKS_AT == DCT_TABLE_BYTES && JPEG_STREAM_SLOTS == STREAM_SLOTS &&
                   JPEG_STREAM_TABLES == STREAM_TABLES,
               "kernels know the layout of streams");

/* Lists of the table, in the order of their counts. */
enum { LIST_LARGE, LIST_USUAL, LIST_COPIES, LISTS };

struct program {
    uint32_t lanes;
    char options[48];
    cl_kernel entropy, copy;
};

enum { USUAL, LARGE, PROGRAMS };

struct entropy {
    struct ocl_context *context;
    uint64_t parameter;
    struct program program[PROGRAMS];
    unsigned programs; /* 1 if the device has no larger groups */
};

/* The largest group of at most `most` work-items; 0: none. */
static uint32_t choose_lanes(const struct ocl_device *device, uint32_t most)
{
    uint64_t local = device->local_memory;
    if (device->nvidia_major >= NVIDIA_MAJOR && local < NVIDIA_LOCAL)
        local = NVIDIA_LOCAL;
    uint32_t lanes = most;
    while (lanes >= LANES_LEAST &&
           (lanes > device->max_work_group || lanes > device->max_work_item[0] ||
            TABLES_LOCAL + (uint64_t)LANE_LOCAL * lanes > local))
        lanes /= 2;
    return lanes >= LANES_LEAST ? lanes : 0;
}

/* Not on CPUs: the host's decoder is faster. Devices that share the host's memory would gain less:
 * no upload is saved, and coefficients take host memory. */
static bool is_possible(const struct ocl_device *device, uint64_t parameter)
{
    return choose_lanes(device, LANES_USUAL) > 0 &&
           (parameter != STEP_FASTER || ((device->type & CL_DEVICE_TYPE_GPU) &&
                                         device->local_is_dedicated && !device->unified_memory));
}

static enum status open_entropy(void **out, struct step_needs *needs, struct ocl_context *context,
                                const struct step_node *node, uint64_t launch_bytes,
                                struct error *err)
{
    (void)launch_bytes;
    const struct ocl_device *device = ocl_context_device(context);
    struct entropy *entropy = calloc(1, sizeof *entropy);
    if (!entropy)
        return error_memory(err, sizeof *entropy, "the decoding of JPEG streams");
    entropy->context = context;
    entropy->parameter = node->parameter;
    entropy->program[USUAL].lanes = choose_lanes(device, LANES_USUAL);
    entropy->program[LARGE].lanes = choose_lanes(device, LANES_LARGE);
    entropy->programs = entropy->program[LARGE].lanes != entropy->program[USUAL].lanes ? 2 : 1;
    *out = entropy;
    *needs = (struct step_needs){.lists = LISTS, .counts = LISTS, .events = 2};
    return STATUS_OK;
}

static void close_entropy(void **state)
{
    struct entropy *entropy = *state;
    for (unsigned i = 0; entropy && i < PROGRAMS; i++) {
        const struct program *program = &entropy->program[i];
        if (program->entropy)
            clReleaseKernel(program->entropy);
        if (program->copy)
            clReleaseKernel(program->copy);
    }
    free(entropy);
    *state = NULL;
}

static enum status build_entropy(void *state, struct error *err)
{
    struct entropy *entropy = state;
    for (unsigned i = 0; i < entropy->programs; i++) {
        struct program *program = &entropy->program[i];
        snprintf(program->options, sizeof program->options, "-cl-std=CL1.2 -DLANES=%u",
                 program->lanes);
        if (ocl_context_kernel(&program->entropy, entropy->context, "jpeg_entropy", "jpeg_entropy",
                               program->options, err) != STATUS_OK ||
            ocl_context_kernel(&program->copy, entropy->context, "jpeg_entropy", "jpeg_copy",
                               program->options, err) != STATUS_OK)
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

static enum status prove_entropy(void *state, struct error *err)
{
    static const char *const programs[] = {"jpeg_entropy", NULL};
    const struct entropy *entropy = state;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < entropy->programs && status == STATUS_OK; i++)
        status = proof_check((struct step_node){.step = &entropy_step}, programs,
                             entropy->program[i].options, entropy->context, err);
    return status;
}

static void describe_entropy(const void *state, char *text, size_t size)
{
    (void)state;
    snprintf(text, size, " JPEG streams,");
}

/* --- parts ----------------------------------------------------------------------------------- */

static void make_dct(struct part_shape *shape, const struct step_node *node)
{
    (void)node;
    shape->payload = PAYLOAD_DCT;
    shape->bytes = dct_bytes(&shape->dct);
}

static unsigned list_of(const struct part_shape *in)
{
    return in->payload != PAYLOAD_STREAM ? LIST_COPIES
           : in->bytes > LARGE_BYTES     ? LIST_LARGE
                                         : LIST_USUAL;
}

static void count_parts(uint32_t *count, const void *state, const struct part_shape *in)
{
    (void)state;
    memset(count, 0, LISTS * sizeof *count);
    count[list_of(in)] = 1;
}

static void fill_entry(void *table, const void *state, const struct step_entry *entry)
{
    (void)state;
    const unsigned list = list_of(entry->in);
    struct jpeg_stream_part *part =
        (struct jpeg_stream_part *)table + (size_t)list * entry->list_entries + entry->first[list];
    assert(entry->in_offset % 128 == 0 && entry->out_offset % 128 == 0);
    *part = (struct jpeg_stream_part){
        .offset = entry->in_offset, .out = entry->out_offset, .verdict = entry->verdict};
    if (!entry->given_up)
        part->sixteens = list == LIST_COPIES ? (uint32_t)((entry->in->bytes + 15) / 16) : 1;
}

static enum status enqueue_entropy(void *state, struct ocl_queue *queue, struct step_io *io,
                                   struct error *err)
{
    const struct entropy *entropy = state;
    const uint32_t large = io->counts[LIST_LARGE], usual = io->counts[LIST_USUAL];
    const bool larger = entropy->parameter == LARGE_GROUPS || large > 0;
    const struct program *program = &entropy->program[larger ? entropy->programs - 1 : USUAL];
    const size_t local = program->lanes, global = local * (large + usual);
    const size_t copies = local * io->counts[LIST_COPIES];
    const uint32_t first_copy = LIST_COPIES * io->list_entries;
    if (global > 0) {
        if (ocl_args(program->entropy, err, OCL_ARG(io->in), OCL_ARG(io->table),
                     OCL_ARG(io->list_entries), OCL_ARG(large), OCL_ARG(io->out),
                     OCL_ARG(io->values), OCL_ARGS_END) != STATUS_OK ||
            ocl_enqueue_kernel(queue, "jpeg_entropy", program->entropy, 1, &global, &local,
                               io->waits, &io->events[0], err) != STATUS_OK)
            return STATUS_FAILED;
        io->last = &io->events[0];
    }
    if (copies > 0) {
        if (ocl_args(program->copy, err, OCL_ARG(io->in), OCL_ARG(io->table), OCL_ARG(first_copy),
                     OCL_ARG(io->out), OCL_ARGS_END) != STATUS_OK ||
            ocl_enqueue_kernel(queue, "jpeg_copy", program->copy, 1, &copies, &local, io->waits,
                               &io->events[1], err) != STATUS_OK)
            return STATUS_FAILED;
        io->last = &io->events[1];
    }
    return STATUS_OK;
}

/* --- self-test ------------------------------------------------------------------------------- */

#define TEST_BYTES (2u << 20)

struct test {
    struct proof *proof;
    uint8_t *blocks;
    bool accepted[PROOF_PARTS_MAX]; /* by the reference */
    bool may_refuse
        [PROOF_PARTS_MAX]; /* the kernel may refuse it although the reference accepts it */
    uint32_t random;
};

/* A kind of synthetic picture. */
struct trial {
    uint32_t width, height;
    enum dct_colour colour;
    uint8_t across, down;
    uint32_t interval; /* MCUs between restart markers */
    enum stream_codes codes;
    uint32_t largest; /* of the coefficients; 0: flat, so that slots of an MCU do not synchronise */
    enum { SOUND, CUT, BITS_FLIPPED, SLOT_SHIFTED, CODE_MISSING, BITS_LEFT, GIVEN_UP } damage;
};

static const struct trial trials[] = {
    {1, 1, DCT_GREY, 1, 1, 0, STREAM_CODES_USUAL, 30, SOUND},
    {173, 61, DCT_YCC, 2, 2, 0, STREAM_CODES_USUAL, 30, SOUND},
    {97, 40, DCT_YCC, 2, 1, 0, STREAM_CODES_USUAL, 200, SOUND},
    {64, 72, DCT_YCC, 1, 1, 0, STREAM_CODES_LONG, 60, SOUND},
    {90, 90, DCT_GREY, 1, 1, 0, STREAM_CODES_LONG, 16000, SOUND},
    {80, 56, DCT_RGB, 1, 1, 7, STREAM_CODES_USUAL, 16000, SOUND},
    {200, 144, DCT_YCC, 2, 2, 0, STREAM_CODES_USUAL, 0, SOUND},
    {120, 100, DCT_YCC, 2, 2, 1, STREAM_CODES_USUAL, 30, SOUND},
    {111, 93, DCT_YCC, 2, 1, 5, STREAM_CODES_LONG, 30, SOUND},
    {160, 33, DCT_GREY, 1, 1, 20, STREAM_CODES_USUAL, 500, SOUND},
    {64, 64, DCT_YCC, 1, 1, 64, STREAM_CODES_EVEN, 90, SOUND},
    {512, 280, DCT_YCC, 2, 2, 0, STREAM_CODES_EVEN, 0, SOUND},
    {75, 65, DCT_YCC, 2, 2, 0, STREAM_CODES_USUAL, 30, CUT},
    {75, 65, DCT_YCC, 2, 2, 3, STREAM_CODES_USUAL, 30, CUT},
    {75, 65, DCT_YCC, 1, 1, 0, STREAM_CODES_LONG, 30, BITS_FLIPPED},
    {75, 65, DCT_YCC, 2, 1, 2, STREAM_CODES_USUAL, 30, BITS_FLIPPED},
    {75, 65, DCT_YCC, 2, 2, 4, STREAM_CODES_USUAL, 30, SLOT_SHIFTED},
    {75, 65, DCT_GREY, 1, 1, 0, STREAM_CODES_USUAL, 30, CODE_MISSING},
    {75, 65, DCT_YCC, 2, 2, 6, STREAM_CODES_USUAL, 30, BITS_LEFT},
    {75, 65, DCT_YCC, 2, 2, 6, STREAM_CODES_USUAL, 30, GIVEN_UP},
};

/* Blocks as in photographs: a DC value and a few low-frequency coefficients. */
static void make_blocks(struct test *test, const struct dct_layout *dct, uint32_t largest)
{
    uint16_t *table = (uint16_t *)(void *)test->blocks;
    int16_t *block = (int16_t *)(void *)(test->blocks + DCT_TABLE_BYTES);
    memset(test->blocks, 0, dct_bytes(dct));
    for (unsigned i = 0; i < DCT_COMPONENTS * DCT_BLOCK; i++)
        table[i] = (uint16_t)(random_next(&test->random) >> 24);
    for (uint64_t b = 0; b < dct_blocks(dct) && largest > 0; b++, block += DCT_BLOCK) {
        const uint32_t values = 1 + (random_next(&test->random) >> 8) % (b % 29 ? 9 : 120);
        for (uint32_t i = 0; i < values; i++) {
            const uint32_t at = i == 0 ? 0 : (random_next(&test->random) >> 8) % (1 + i * 2);
            block[at % DCT_BLOCK] =
                (int16_t)((int32_t)((random_next(&test->random) >> 8) % (2 * largest + 1)) -
                          (int32_t)largest);
        }
    }
}

static void damage_stream(struct test *test, uint8_t *payload, const struct trial *trial)
{
    struct stream_head *head = (struct stream_head *)(void *)payload;
    uint32_t *border = (uint32_t *)(void *)(payload + head->borders);
    uint8_t *data = payload + head->data;
    switch (trial->damage) {
    case CUT:
        head->bits = border[head->segments] -= 160;
        break;
    case BITS_FLIPPED:
        for (unsigned i = 0; i < 40; i++)
            data[(random_next(&test->random) >> 8) % (head->bits / 8)] ^= 0x10;
        break;
    case SLOT_SHIFTED: /* a segment begins too late */
        border[1] += 8;
        break;
    case CODE_MISSING: /* the code of all ones, which is not assigned */
        memset(data + head->bits / 16, 0xff, 8);
        break;
    case BITS_LEFT: /* the last segment passes bytes to the one before */
        border[head->segments - 1] += 16;
        break;
    default:
        break;
    }
}

static enum status add_stream(struct test *test, const struct trial *trial, struct error *err)
{
    struct proof *proof = test->proof;
    const uint32_t number = proof->count;
    struct part_shape *in = &proof->part[number].in;
    uint8_t *payload = proof->in + proof->used;
    in->dct = (struct dct_layout){.colour = trial->colour,
                                  .width = trial->width,
                                  .height = trial->height,
                                  .across = trial->across,
                                  .down = trial->down};
    dct_synthetic_blocks(&in->dct);
    make_blocks(test, &in->dct, trial->largest);
    in->bytes = stream_synthetic(payload, TEST_BYTES - proof->used, test->blocks, &in->dct,
                                 trial->interval, trial->codes);
    if (in->bytes == 0)
        return error_set(err, STATUS_FAILED, "the self-test's streams are too long");
    damage_stream(test, payload, trial);
    in->payload = PAYLOAD_STREAM;
    in->width = in->rect.x1 = trial->width;
    in->height = in->rect.y1 = trial->height;
    proof_add(proof)->given_up = trial->damage == GIVEN_UP;
    test->may_refuse[number] = trial->codes == STREAM_CODES_EVEN;
    test->accepted[number] = stream_coefficients(proof->wanted, payload);
    return STATUS_OK;
}

/* All kinds of streams, interleaved with pixels, and one cancelled part. */
static enum status add_parts(struct test *test, struct error *err)
{
    struct proof *proof = test->proof;
    test->random = RANDOM_START;
    for (unsigned i = 0; i < sizeof trials / sizeof *trials; i++) {
        if (add_stream(test, &trials[i], err) != STATUS_OK)
            return STATUS_FAILED;
        if (i % 5 != 2)
            continue;
        test->accepted[proof->count] = true;
        struct proof_part *part = proof_add_rgb(proof, 100 + 33 * i, 3);
        part->given_up = i == 7;
        for (uint32_t b = 0; b < part->in.bytes; b++)
            proof->in[part->in_offset + b] = (uint8_t)(random_next(&test->random) >> 8);
    }
    return STATUS_OK;
}

/* The kernel must accept and refuse the same streams as the reference, except those that take too
 * long to repair, and its coefficients must be equal. */
static void compare_part(struct test *test, uint32_t i)
{
    struct proof *proof = test->proof;
    const struct proof_part *part = &proof->part[i];
    const uint8_t *in = proof->in + part->in_offset;
    const uint64_t wrong = proof->wrong;
    if (part->given_up)
        return;
    if (part->in.payload != PAYLOAD_STREAM) {
        proof_compare(proof, part, in);
        return;
    }
    stream_coefficients(proof->wanted, in);
    proof_compare(proof, part, proof->wanted);
    if (part->refused == test->accepted[i])
        proof->wrong = wrong + !(part->refused && test->may_refuse[i]);
    else if (part->refused)
        proof->wrong = wrong;
}

static enum status test_slot(struct proof *proof, uint32_t parameter, struct error *err)
{
    struct test test = {.proof = proof};
    proof->node.parameter = parameter;
    if (proof_open(proof, TEST_BYTES, 128, err) != STATUS_OK)
        return STATUS_FAILED;
    test.blocks = proof->wanted + TEST_BYTES / 2;
    if (add_parts(&test, err) != STATUS_OK || proof_parts(proof, err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint32_t i = 0; i < proof->count; i++)
        compare_part(&test, i);
    return STATUS_OK;
}

static enum status test_entropy(struct proof *proof, struct error *err)
{
    const struct ocl_device *device = ocl_context_device(proof->context);
    if (!is_possible(device, STEP_ALWAYS))
        return STATUS_OK;
    enum status status = test_slot(proof, STEP_ALWAYS, err);
    if (status == STATUS_OK &&
        choose_lanes(device, LANES_LARGE) != choose_lanes(device, LANES_USUAL))
        status = test_slot(proof, LARGE_GROUPS, err);
    return status;
}

static bool is_needed(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)feature;
    const enum plan_jpeg jpeg = plan->config.jpeg;
    node->parameter = jpeg == PLAN_JPEG_DEVICE ? STEP_ALWAYS : STEP_FASTER;
    return plan->config.streams && (jpeg == PLAN_JPEG_DEVICE || jpeg == PLAN_JPEG_AUTO);
}

const struct step entropy_step = {
    .name = "entropy",
    .needed = is_needed,
    .takes = PAYLOAD_STREAM,
    .gives = PAYLOAD_DCT,
    .refuses = true,
    .arena_percent = 1000, /* for photographs of high quality; others fill less of their slots */
    .slot_bytes = 64u << 20,
    .entry_bytes = sizeof(struct jpeg_stream_part),
    .fault = "kernel jpeg_entropy is",
    .upload = "upload streams' parts",
    .unmap = "unmap streams' parts",
    .map = "map streams' parts",
    .otherwise = "JPEG files are entropy-decoded on the host",
    .possible = is_possible,
    .open = open_entropy,
    .close = close_entropy,
    .build = build_entropy,
    .prove = prove_entropy,
    .output = make_dct,
    .count = count_parts,
    .fill = fill_entry,
    .enqueue = enqueue_entropy,
    .describe = describe_entropy,
    .self_test_name = "JPEG streams",
    .self_test = test_entropy,
};
