/* words_step.c: the C reference of word counts and Fisher sums, and their kernels. */
#include "device/plan.h"

#include "base/minmax.h"
#include "base/random.h"
#include "descriptor_part.h"
#include "device/proof.h"
#include "device/slot_kernel.h"
#include "features/codebook.h"
#include "features/kind.h"
#include "ocl/ocl_ndrange.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 128u /* descriptors per work-group of fisher_sums; on CPUs all of an image */
/* Descriptors per work-item of words_assign, limited by registers. */
#define CPU_ROWS 6u
#define GPU_ROWS 4u

/* The plain C reference: adds `number` descriptors to the feature's words. */
static void words_reference(uint32_t *words, const struct feature *feature,
                            const uint8_t *descriptors, uint32_t number)
{
    const struct feature_codebook *codebook = feature->codebook;
    const uint32_t projected = codebook->projected;
    uint32_t *sums = words + codebook->words, *squares = sums + codebook->words * projected;
    for (uint32_t d = 0; d < number; d++) {
        int8_t values[CODEBOOK_PROJECTED_MAX];
        codebook_project(values, codebook, descriptors + (size_t)d * codebook->columns);
        const uint32_t word = codebook_nearest(codebook, values);
        words[word]++;
        for (uint32_t j = 0; j < projected && feature->fisher; j++) {
            sums[word * projected + j] += (uint32_t)(int32_t)values[j];
            squares[word * projected + j] += (uint32_t)(values[j] * values[j]);
        }
    }
}

/* --- the kernels ----------------------------------------------------------------------------- */

static uint32_t rows_of(const struct slot_kernel *words)
{
    return words->cpu ? CPU_ROWS : GPU_ROWS;
}

static enum status open_words(void **state, struct step_needs *needs, struct ocl_context *context,
                              const struct step_node *node, uint64_t launch_bytes,
                              struct error *err)
{
    const struct feature *feature = node->config;
    const struct feature_codebook *codebook = feature->codebook;
    if (!codebook)
        return error_set(err, STATUS_USAGE, "feature %s has no codebook", feature->name);
    if (slot_kernel_open(state, needs, context, node, launch_bytes, err) != STATUS_OK)
        return STATUS_FAILED;
    struct slot_kernel *words = *state;
    words->count = feature->fisher ? 2 : 1;
    snprintf(words->options, sizeof words->options,
             "%s -DCOLUMNS=%u -DPROJECTED=%u -DWORDS=%u -DSHIFT=%u -DROWS=%u -DCHUNK=%u%s",
             ocl_range_option(ocl_context_device(context)), codebook->columns, codebook->projected,
             codebook->words, codebook->shift, rows_of(words), words->cpu ? 0 : CHUNK,
             feature->fisher ? " -DFISHER" : "");
    return STATUS_OK;
}

/* Converts the codebook to the layout of words_assign. */
static enum status make_codebook(struct slot_kernel *words, struct error *err)
{
    const struct feature *feature = words->node->config;
    const struct feature_codebook *codebook = feature->codebook;
    const uint32_t columns = codebook->columns, projected = codebook->projected;
    const size_t padded = ((size_t)codebook->words + 15) / 16 * 16;
    const size_t count = projected + (size_t)columns * projected + padded * (1 + projected);
    float *values = calloc(count, sizeof *values);
    if (!values)
        return error_memory(err, count * sizeof *values, "a codebook");
    float *matrix = values + projected, *lengths = matrix + (size_t)columns * projected;
    float *word = lengths + padded;
    for (uint32_t j = 0; j < projected; j++) {
        values[j] = (float)codebook->offset[j];
        for (uint32_t i = 0; i < columns; i++)
            matrix[(size_t)i * projected + j] = codebook->matrix[(size_t)j * columns + i];
    }
    for (size_t w = 0; w < padded; w++) {
        int32_t length = 0;
        for (uint32_t j = 0; j < projected && w < codebook->words; j++) {
            const int32_t value = codebook->word[w * projected + j];
            length += value * value;
            word[j * padded + w] = (float)(-2 * value);
        }
        lengths[w] = w < codebook->words ? (float)length : FLT_MAX;
    }
    const enum status status =
        ocl_buffer(&words->constants, words->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                   count * sizeof *values, values, "a codebook", err);
    free(values);
    return status;
}

static enum status build_words(void *state, struct error *err)
{
    const enum status status = slot_kernel_build(state, err);
    return status == STATUS_OK ? make_codebook(state, err) : status;
}

/* --- parts ----------------------------------------------------------------------------------- */

static uint32_t number_of(const struct part_shape *shape)
{
    return shape->payload == PAYLOAD_DESCRIPTORS ? (uint32_t)(shape->bytes / shape->stride) : 0;
}

/* Counts an entry, work-items of words_assign, and work-groups of fisher_sums. */
static void count_items(uint32_t *count, const void *state, const struct part_shape *in)
{
    const struct slot_kernel *words = state;
    const uint32_t number = number_of(in);
    count[0] = 1;
    count[1] = (number + rows_of(words) - 1) / rows_of(words);
    count[2] = words->cpu ? number > 0 : (number + CHUNK - 1) / CHUNK;
}

static void fill_entry(void *table, const void *state, const struct step_entry *entry)
{
    const struct feature *feature = ((const struct slot_kernel *)state)->node->config;
    ((struct words_part *)table)[entry->first[0]] =
        (struct words_part){.offset = entry->in_offset,
                            .number = entry->given_up ? 0 : number_of(entry->in),
                            .words = entry->values + feature->offset,
                            .first = {entry->first[1], entry->first[2]}};
}

static enum status enqueue_words(void *state, struct ocl_queue *queue, struct step_io *io,
                                 struct error *err)
{
    const struct slot_kernel *words = state;
    const struct ocl_device *device = ocl_context_device(words->context);
    const cl_uint count = io->counts[0], items = io->counts[1], groups = io->counts[2];
    const size_t local = slot_kernel_group(device), of_group = words->cpu ? 1 : local;
    if (items == 0)
        return STATUS_OK;
    if (ocl_args(words->kernel[0], err, OCL_ARG(io->in), OCL_ARG(io->table), OCL_ARG(count),
                 OCL_ARG(items), OCL_ARG(words->constants), OCL_ARG(io->values),
                 OCL_ARG(io->scratch), OCL_ARGS_END) != STATUS_OK ||
        slot_kernel_launch(words, 0, queue, io, ocl_range_size(device, items, local), local, err) !=
            STATUS_OK)
        return STATUS_FAILED;
    if (words->count == 1)
        return STATUS_OK;
    if (ocl_args(words->kernel[1], err, OCL_ARG(io->table), OCL_ARG(count), OCL_ARG(groups),
                 OCL_ARG(io->scratch), OCL_ARG(io->values), OCL_ARGS_END) != STATUS_OK)
        return STATUS_FAILED;
    return slot_kernel_launch(words, 1, queue, io, groups * of_group, of_group, err);
}

/* --- self-test ------------------------------------------------------------------------------- */

/* Random descriptors, runs of equal ones, and extreme values. */
static void fill_descriptors(uint8_t *descriptors, size_t bytes, uint32_t columns)
{
    uint32_t state = RANDOM_START;
    for (size_t i = 0; i < bytes; i++) {
        const size_t row = i / columns;
        random_next(&state);
        descriptors[i] = row % 7 == 6    ? descriptors[i - columns]
                         : row % 11 == 9 ? (uint8_t)(0 - (state >> 20 & 1))
                                         : (uint8_t)(state >> 9);
    }
}

/* Runs some parts through the feature's step, with its words at offset 0. */
static enum status test_feature(struct proof *proof, const struct feature *feature,
                                struct error *err)
{
    static const uint32_t numbers[] = {1, 0, 37, 3, 130};
    enum { PARTS = sizeof numbers / sizeof *numbers };
    struct feature own = *feature;
    const uint32_t columns = own.codebook->columns;
    uint32_t bytes = 0;
    proof->node.config = &own;
    own.offset = 0;
    for (unsigned i = 0; i < PARTS; i++)
        bytes += (numbers[i] * columns + 127) / 128 * 128;
    if (proof_open(proof, max_u32(bytes, PARTS * own.words * 4), 128, err) != STATUS_OK)
        return STATUS_FAILED;
    fill_descriptors(proof->in, bytes, columns);
    for (uint32_t i = 0; i < PARTS; i++) {
        proof->part[i].in = (struct part_shape){.payload = PAYLOAD_DESCRIPTORS,
                                                .stride = columns,
                                                .bytes = (uint64_t)numbers[i] * columns};
        struct proof_part *part = proof_add(proof);
        part->values = i * own.words;
        words_reference((uint32_t *)(void *)proof->wanted + part->values, &own,
                        proof->in + part->in_offset, numbers[i]);
    }
    return proof_words(proof, own.words, err);
}

/* With the feature's own codebook. */
static enum status prove_words(void *state, struct error *err)
{
    const struct slot_kernel *words = state;
    const char *const programs[] = {words_step.kernels[0],
                                    words->count > 1 ? words_step.kernels[1] : NULL, NULL};
    return proof_check(*words->node, programs, words->options, words->context, err);
}

/* Without a feature: with random codebooks. */
static enum status test_words(struct proof *proof, struct error *err)
{
    static const struct {
        uint32_t columns, projected, words;
        bool fisher;
    } shapes[] = {{128, 64, 64, true}, {16, 16, 100, false}};
    enum status status = STATUS_OK;
    uint32_t random = RANDOM_START;
    if (proof->node.config)
        return test_feature(proof, proof->node.config, err);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes && status == STATUS_OK; s++) {
        struct feature_codebook codebook;
        const uint32_t projected = shapes[s].projected, words = shapes[s].words;
        status = feature_codebook_allocate(&codebook, "test-1", shapes[s].columns, projected, words,
                                           err);
        if (status != STATUS_OK)
            break;
        for (uint32_t i = 0; i < projected * shapes[s].columns; i++)
            codebook.matrix[i] = (int16_t)((int32_t)(random_next(&random) >> 23) - 256);
        for (uint32_t i = 0; i < projected; i++)
            codebook.offset[i] = (int32_t)(random_next(&random) >> 12) - (1 << 19);
        for (uint32_t i = 0; i < projected * words; i++)
            codebook.word[i] = (int8_t)(random_next(&random) % 255 - 127);
        memcpy(codebook.word + 7 * projected, codebook.word + 2 * projected, projected);
        codebook.shift = 12;
        const struct feature feature = {.name = "test",
                                        .fisher = shapes[s].fisher,
                                        .words =
                                            shapes[s].fisher ? words * (1 + 2 * projected) : words,
                                        .codebook = &codebook};
        status = test_feature(proof, &feature, err);
        feature_codebook_clear(&codebook);
    }
    return status;
}

static bool is_needed(struct step_node *node, struct plan *plan, const struct feature *feature)
{
    (void)plan;
    node->config = feature;
    return feature && feature->kind->descriptor && !feature->kind->count;
}

const struct step words_step = {
    .name = "words",
    .needed = is_needed,
    .takes = PAYLOAD_DESCRIPTORS,
    .gives = PAYLOAD_VALUES,
    .scratch_percent = 113, /* records: at most 18 bytes for 16 bytes of a descriptor */
    .entry_bytes = sizeof(struct words_part),
    .fault = "kernels words_assign and fisher_sums count",
    .kernels = {"words_assign", "fisher_sums"},
    STEP_PARTS,
    .open = open_words,
    .close = slot_kernel_close,
    .build = build_words,
    .prove = prove_words,
    .count = count_items,
    .fill = fill_entry,
    .enqueue = enqueue_words,
    .self_test_name = "words of descriptors",
    .self_test = test_words,
};
