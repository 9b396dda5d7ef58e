/* proof.c: checks whether kernels are already proven, and proves them. */
#include "device/proof.h"

#include "base/random.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT  128u
#define WORK_BYTES (64u << 20) /* for several parts at a time */
#define POISON     0xa5u       /* in a byte that has not been written yet */

static enum status fail_proof(const struct step *step, const struct ocl_device *device,
                              uint64_t compared, uint64_t wrong, struct error *err)
{
    error_set(err, STATUS_FAILED, "%s wrong on %s (%llu of %llu bytes)", step->fault, device->name,
              (unsigned long long)wrong, (unsigned long long)compared);
    return step->otherwise ? STATUS_FAILED : error_remedy(err, REMEDY_OTHER_DEVICE);
}

enum status proof_test(uint64_t *compared, uint64_t *wrong, struct step_node node,
                       struct ocl_context *context, struct error *err)
{
    struct proof proof = {.node = node, .context = context};
    const enum status status = node.step->self_test(&proof, err);
    *compared += proof.compared;
    *wrong += proof.wrong;
    free(proof.in);
    return status;
}

enum status proof_check(struct step_node node, const char *const *programs, const char *options,
                        struct ocl_context *context, struct error *err)
{
    const struct ocl_device *device = ocl_context_device(context);
    char key[OCL_KEY];
    uint64_t compared = 0, wrong = 0;
    bool proven = true;
    for (const char *const *program = programs; *program && proven; program++) {
        if (ocl_program_key(key, device, *program, NULL, options, err) != STATUS_OK)
            return STATUS_FAILED;
        proven = ocl_program_is_proven(key);
    }
    if (proven)
        return STATUS_OK;
    if (proof_test(&compared, &wrong, node, context, err) != STATUS_OK)
        return STATUS_FAILED;
    if (wrong > 0)
        return fail_proof(node.step, device, compared, wrong, err);
    for (const char *const *program = programs; *program; program++) {
        if (ocl_program_key(key, device, *program, NULL, options, err) == STATUS_OK)
            ocl_program_set_proven(key);
    }
    return STATUS_OK;
}

/* Sets the parts' output shapes and offsets, the table, and the total counts. */
static void fill_table(void *table, uint32_t *counts, struct proof_part *parts, uint32_t count,
                       const struct step_node *node, const void *state,
                       const struct step_needs *needs)
{
    uint32_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct proof_part *part = &parts[i];
        uint32_t own[STEP_COUNTS_MAX];
        part->out = part->in;
        if (part->in.payload == node->step->takes && node->step->output)
            node->step->output(&part->out, node);
        part->out_offset = offset;
        offset = (uint32_t)(offset + part->out.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        node->step->count(own, state, &part->in);
        const struct step_entry entry = {.in = &part->in,
                                         .out = &part->out,
                                         .in_offset = part->in_offset,
                                         .out_offset = part->out_offset,
                                         .values = part->values,
                                         .verdict = i,
                                         .list_entries = count,
                                         .first = counts,
                                         .count = own,
                                         .given_up = part->given_up};
        node->step->fill(table, state, &entry);
        for (uint32_t c = 0; c < needs->counts; c++)
            counts[c] += own[c];
    }
}

enum status proof_run(uint8_t *output, struct proof_part *parts, uint32_t count,
                      const struct step_node *node, struct ocl_context *context,
                      const uint8_t *input, uint64_t bytes, struct error *err)
{
    const struct step *step = node->step;
    const cl_mem_flags copied = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    const struct ocl_device *device = ocl_context_device(context);
    const uint64_t work = step->work_bytes ? step->work_bytes(node, device, WORK_BYTES) : 0;
    const uint64_t scratch_bytes = work ? work : bytes * step->scratch_percent / 100;
    const size_t verdict_bytes = count * sizeof(uint32_t);
    size_t table_bytes = 0;
    struct step_needs needs = {0};
    struct ocl_queue *queue = NULL;
    void *state = NULL, *table = NULL;
    uint32_t *verdicts = calloc(count, sizeof *verdicts);
    cl_mem in = NULL, out = NULL, scratch = NULL, entries = NULL, refused = NULL;
    cl_event events[STEP_EVENTS_MAX] = {NULL};
    uint32_t counts[STEP_COUNTS_MAX] = {0};
    enum status status = STATUS_FAILED;
    if (step->open(&state, &needs, context, node, bytes, err) != STATUS_OK ||
        step->build(state, err) != STATUS_OK)
        goto out;
    assert(needs.entries == 0);
    table_bytes = needs.lists * count * step->entry_bytes;
    table = calloc(1, table_bytes);
    if (!table || !verdicts) {
        error_memory(err, table_bytes, "the self-test");
        goto out;
    }
    fill_table(table, counts, parts, count, node, state, &needs);
    if (ocl_queue_open(&queue, context, "self-test", err) != STATUS_OK ||
        ocl_buffer(&in, context, copied, (size_t)bytes, (void *)(uintptr_t)input, "parts", err) !=
            STATUS_OK ||
        ocl_buffer(&out, context, copied, (size_t)bytes, output, "parts", err) != STATUS_OK ||
        ocl_buffer(&entries, context, copied, table_bytes, table, "a table", err) != STATUS_OK)
        goto out;
    if (scratch_bytes > 0 && ocl_buffer(&scratch, context, CL_MEM_READ_WRITE, (size_t)scratch_bytes,
                                        NULL, "scratch", err) != STATUS_OK)
        goto out;
    /* In a slot it is as the previous part left it. */
    if (scratch_bytes > 0 &&
        ocl_enqueue_fill(queue, "poison", scratch, 0x01010101u * POISON, 0,
                         (size_t)scratch_bytes / 4 * 4, OCL_NO_WAITS, NULL, err) != STATUS_OK)
        goto out;
    if (step->refuses && ocl_buffer(&refused, context, copied, verdict_bytes, verdicts, "verdicts",
                                    err) != STATUS_OK)
        goto out;
    struct step_io io = {.in = in,
                         .out = out,
                         .scratch = scratch,
                         .table = entries,
                         .values = step->refuses ? refused : out,
                         .list_entries = count,
                         .counts = counts,
                         .waits = OCL_NO_WAITS,
                         .events = events};
    if (step->enqueue(state, queue, &io, err) != STATUS_OK)
        goto out;
    if (step->refuses && ocl_enqueue_read(queue, "read verdicts", refused, true, 0, verdict_bytes,
                                          verdicts, OCL_NO_WAITS, NULL, err) != STATUS_OK)
        goto out;
    for (uint32_t i = 0; i < count; i++)
        parts[i].refused = verdicts[i] != 0;
    status = ocl_enqueue_read(queue, "read parts", out, true, 0, (size_t)bytes, output,
                              OCL_NO_WAITS, NULL, err);
out:
    for (uint32_t i = 0; i < needs.events; i++) {
        if (events[i])
            clReleaseEvent(events[i]);
    }
    ocl_buffer_release(&refused);
    ocl_buffer_release(&scratch);
    ocl_buffer_release(&entries);
    ocl_buffer_release(&out);
    ocl_buffer_release(&in);
    ocl_queue_close(&queue);
    if (state)
        step->close(&state);
    free(verdicts);
    free(table);
    return status;
}

/* --- self-tests ------------------------------------------------------------------------------ */

enum status proof_open(struct proof *proof, size_t bytes, uint32_t alignment, struct error *err)
{
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    free(proof->in);
    memset(proof->part, 0, sizeof proof->part);
    proof->count = proof->used = 0;
    proof->alignment = alignment;
    proof->bytes = bytes;
    proof->in = aligned_alloc(ALIGNMENT, 4 * bytes);
    if (!proof->in)
        return error_memory(err, 4 * bytes, "the self-test");
    memset(proof->in, 0, 4 * bytes);
    proof->got = proof->in + bytes;
    proof->again = proof->got + bytes;
    proof->wanted = proof->again + bytes;
    return STATUS_OK;
}

enum status proof_open_random(struct proof *proof, size_t bytes, struct error *err)
{
    uint32_t state = RANDOM_START;
    const enum status status = proof_open(proof, bytes, 1, err);
    for (size_t i = 0; i < bytes && status == STATUS_OK; i++) {
        random_next(&state);
        proof->in[i] = i >> 9 & 1 ? (uint8_t)(0 - (i >> 10 & 1)) : (uint8_t)(state >> 9);
    }
    return status;
}

struct proof_part *proof_add(struct proof *proof)
{
    struct proof_part *part = &proof->part[proof->count++];
    part->in_offset = proof->used;
    proof->used += (uint32_t)part->in.bytes + proof->alignment - 1;
    proof->used -= proof->used % proof->alignment;
    assert(proof->count < PROOF_PARTS_MAX && proof->used <= proof->bytes);
    return part;
}

struct proof_part *proof_add_rgb(struct proof *proof, uint32_t width, uint32_t height)
{
    struct part_shape *in = &proof->part[proof->count].in;
    in->width = in->rect.x1 = width;
    in->height = in->rect.y1 = height;
    part_set_rgb(in);
    return proof_add(proof);
}

static enum status run(struct proof *proof, uint8_t *output, struct error *err)
{
    return proof_run(output, proof->part, proof->count, &proof->node, proof->context, proof->in,
                     proof->bytes, err);
}

enum status proof_parts(struct proof *proof, struct error *err)
{
    memset(proof->got, POISON, proof->bytes);
    memset(proof->again, (uint8_t)~POISON, proof->bytes);
    const enum status status = run(proof, proof->again, err);
    return status == STATUS_OK ? run(proof, proof->got, err) : status;
}

void proof_compare(struct proof *proof, const struct proof_part *part, const uint8_t *wanted)
{
    for (uint64_t b = 0, at = part->out_offset; b < part->out.bytes; b++, at++)
        proof->wrong += proof->got[at] != wanted[b] || proof->again[at] != wanted[b];
    proof->compared += part->out.bytes;
}

void proof_poison_words(struct proof *proof)
{
    memset(proof->got, POISON, proof->bytes);
    memset(proof->wanted, POISON, proof->bytes);
}

enum status proof_words(struct proof *proof, uint32_t words, struct error *err)
{
    const size_t bytes = (size_t)proof->count * words * sizeof(uint32_t);
    const enum status status = run(proof, proof->got, err);
    for (size_t i = 0; i < bytes && status == STATUS_OK; i++)
        proof->wrong += proof->got[i] != proof->wanted[i];
    proof->compared += bytes;
    return status;
}
