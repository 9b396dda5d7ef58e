/* slot.c: the size of slots, their buffers, and their commands on the three queues.
 *
 * Copied (discrete devices):
 *   upload queue:   write tables, write parts ─ event U
 *   compute queue:  zero the values, steps (wait U) ─ event K
 *   read queue:     read values (wait K) ─ event R, whose callback returns the slot
 * Shared memory: the host zeroes the values and unmaps them; tables and parts are unmapped instead of
 * written, and mapped instead of read; nothing is copied.
 *
 * Every queue is flushed before another waits on its event (OpenCL 1.2, 5.13). */
#include "device/slot.h"

#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

/* CPU devices read a slot from the cache, where the decoder has just written it. */
#define SLOT_BYTES_SHARED  (8ull << 20)
#define SLOT_BYTES_COPIED  (32ull << 20)
#define SLOT_COUNT_DEFAULT 4u
/* One slot per this many threads: each thread may hold a part, which keeps its slot from the
 * device. */
#define SLOT_THREADS    4u
#define SLOT_COUNT_MOST 16u
#define SLOT_BYTES_MANY (16ull << 20)
/* Larger slots and their arenas get at most 1 / LARGER_SLOTS_SHARE of a device's memory. */
#define LARGER_SLOTS_SHARE 4u
#define PARTS_MAX          4096u

/* --- size ------------------------------------------------------------------------------------ */

/* Values take up to a quarter of a slot's bytes more. */
static uint64_t bytes_within(uint64_t host_memory, unsigned buffers)
{
    return host_memory * 4 / 5 / buffers;
}

static uint64_t bytes_usual(const struct ocl_device *device)
{
    return device->unified_memory ? SLOT_BYTES_SHARED : SLOT_BYTES_COPIED;
}

uint64_t staging_slot_bytes(const struct ocl_device *device, uint64_t host_memory)
{
    return max_u64(min_u64(bytes_usual(device), bytes_within(host_memory, SLOT_COUNT_DEFAULT)),
                   SLOT_BYTES_MIN);
}

uint64_t slot_bytes_least(const struct step_plan *plan)
{
    return max_u64(SLOT_BYTES_MIN, 2 * step_plan_least_part(plan));
}

/* More slots for many threads, if there is memory for slots of useful size. larger: preferred slot
 * size, or 0. */
static unsigned slots_for_threads(const struct staging_config *config, uint64_t larger)
{
    const uint64_t bytes = max_u64(larger, SLOT_BYTES_MANY);
    const uint64_t host = bytes_within(config->host_memory / config->selection.count, 1);
    const uint64_t threads = config->threads / config->selection.count / SLOT_THREADS;
    return (unsigned)max_u64(SLOT_COUNT_DEFAULT,
                             min_u64(min_u64(threads, SLOT_COUNT_MOST), host / bytes));
}

unsigned slot_shape_choose(struct slot_shape *shape, const struct staging_config *config,
                           const struct ocl_device *device, const struct chain *chain)
{
    shape->shared = device->unified_memory;
    const uint64_t usual = bytes_usual(device);
    const uint64_t larger = shape->shared ? 0 : chain->slot_bytes;
    uint64_t bytes = config->slot_bytes ? config->slot_bytes : max_u64(usual, larger);
    unsigned count = config->slot_count ? config->slot_count : slots_for_threads(config, larger);
    count = count > SLOTS_MAX ? SLOTS_MAX : count;
    uint64_t host = config->host_memory / config->selection.count;
    uint64_t most = device->max_allocation;
    const unsigned buffers = count + chain->slot_sizes;
    if (larger > usual && !config->slot_bytes)
        most = min_u64(most, device->global_memory / LARGER_SLOTS_SHARE / buffers);
    /* The largest arena is one buffer with 32-bit offsets. */
    most = min_u64(most, min_u64(device->max_allocation, UINT32_MAX) / chain->largest);
    if (config->device_memory)
        most = min_u64(most,
                       (config->device_memory - min_u64(chain->work_bytes, config->device_memory)) /
                           buffers);
    most = min_u64(most, bytes_within(host, shape->shared ? buffers : count));
    most = min_u64(most, 1ull << 31);
    shape->over = most < slot_bytes_least(config->plan);
    bytes = max_u64(min_u64(bytes, most), slot_bytes_least(config->plan));
    shape->bytes = (bytes + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
    uint64_t parts = shape->bytes / 4 / (4ull * chain->words);
    shape->parts = (uint32_t)max_u64(2, min_u64(parts, PARTS_MAX));
    return count;
}

/* --- buffers --------------------------------------------------------------------------------- */

static enum status array_init(struct slot_array *array, struct ocl_context *context,
                              struct ocl_queue *queue, size_t bytes, bool shared,
                              cl_map_flags flags, const char *what, struct error *err)
{
    const cl_mem_flags pinned = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
    array->bytes = bytes;
    if (ocl_buffer(&array->device, context, shared ? pinned : CL_MEM_READ_WRITE, bytes, NULL, what,
                   err) != STATUS_OK)
        return STATUS_FAILED;
    if (!shared && ocl_buffer(&array->pinned, context, pinned, bytes, NULL, what, err) != STATUS_OK)
        return STATUS_FAILED;
    return ocl_enqueue_map(&array->host, queue, "map", shared ? array->device : array->pinned, true,
                           flags, 0, bytes, OCL_NO_WAITS, NULL, err);
}

static void array_clear(struct slot_array *array, struct ocl_queue *queue)
{
    cl_mem mapped = array->pinned ? array->pinned : array->device;
    if (array->host && mapped)
        ocl_enqueue_unmap(queue, "unmap", mapped, array->host, OCL_NO_WAITS, NULL, NULL);
    ocl_buffer_release(&array->pinned);
    ocl_buffer_release(&array->device);
    array->host = NULL;
}

enum status slot_init(struct slot *slot, struct ocl_context *context, struct slot_queues queues,
                      const struct slot_shape *shape, const struct chain *chain, struct error *err)
{
    slot->picture = calloc(shape->parts, sizeof *slot->picture);
    if (!slot->picture)
        return error_memory(err, shape->parts * sizeof *slot->picture, "a slot");
    if (array_init(&slot->input, context, queues.upload, shape->bytes, shape->shared, CL_MAP_WRITE,
                   "a slot of pixels", err) != STATUS_OK)
        return STATUS_FAILED;
    for (unsigned i = 0; i < chain->count; i++) {
        const struct chain_node *node = &chain->node[i];
        const size_t entries = (size_t)node->needs.lists * chain_entries(node, shape->parts);
        if (array_init(&slot->table[i], context, queues.upload, entries * node->step->entry_bytes,
                       shape->shared, CL_MAP_WRITE, "a table of parts", err) != STATUS_OK)
            return STATUS_FAILED;
    }
    return array_init(&slot->values, context, queues.read,
                      (size_t)shape->parts * chain->words * sizeof(uint32_t), shape->shared,
                      CL_MAP_READ | CL_MAP_WRITE, "a slot's values", err);
}

void slot_clear(struct slot *slot, struct slot_queues queues)
{
    array_clear(&slot->values, queues.read);
    for (unsigned i = STEP_NODES_MAX; i-- > 0;)
        array_clear(&slot->table[i], queues.upload);
    array_clear(&slot->input, queues.upload);
    free(slot->picture);
    slot->picture = NULL;
}

/* --- commands -------------------------------------------------------------------------------- */

/* Uploads the used entries of a node's table, list by list. */
static enum status upload_table(struct slot *slot, unsigned index, struct ocl_queue *queue,
                                const struct slot_shape *shape, const struct chain_node *node,
                                struct error *err)
{
    const struct slot_array *table = &slot->table[index];
    const size_t entry = node->step->entry_bytes;
    for (uint32_t i = 0; i < node->needs.lists; i++) {
        const size_t offset = (size_t)i * chain_entries(node, shape->parts) * entry;
        const size_t bytes = slot->use.count[node->first_count + i] * entry;
        if (bytes > 0 && ocl_enqueue_write(queue, node->step->upload, table->device, false, offset,
                                           bytes, (const char *)table->host + offset, OCL_NO_WAITS,
                                           NULL, err) != STATUS_OK)
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

static enum status unmap(struct slot_array *array, struct ocl_queue *queue, const char *tag,
                         cl_event *event, struct error *err)
{
    void *host = array->host;
    array->host = NULL;
    return ocl_enqueue_unmap(queue, tag, array->device, host, OCL_NO_WAITS, event, err);
}

/* Passes the inputs to the device; the last command's event is slot->upload_event. */
static enum status give_inputs(struct slot *slot, struct ocl_queue *queue,
                               const struct slot_shape *shape, const struct chain *chain,
                               struct error *err)
{
    for (unsigned i = 0; i < chain->count; i++) {
        const struct chain_node *node = &chain->node[i];
        if (shape->shared &&
            unmap(&slot->table[i], queue, node->step->unmap, NULL, err) != STATUS_OK)
            return STATUS_FAILED;
        if (!shape->shared && chain_runs(node, i, &slot->use) &&
            upload_table(slot, i, queue, shape, node, err) != STATUS_OK)
            return STATUS_FAILED;
    }
    if (shape->shared)
        return unmap(&slot->input, queue, "unmap pixels", &slot->upload_event, err);
    return ocl_enqueue_write(queue, "upload pixels", slot->input.device, false, 0, slot->used_bytes,
                             slot->input.host, OCL_NO_WAITS, &slot->upload_event, err);
}

static enum status map(struct slot_array *array, struct ocl_queue *queue, const char *tag,
                       cl_map_flags flags, struct ocl_waits waits, cl_event *event,
                       struct error *err)
{
    return ocl_enqueue_map(&array->host, queue, tag, array->device, false, flags, 0, array->bytes,
                           waits, event, err);
}

/* Returns everything to the host; the last command's event is slot->read_event. */
static enum status take_back(struct slot *slot, struct ocl_queue *queue,
                             const struct slot_shape *shape, const struct chain *chain,
                             struct ocl_waits computed, struct error *err)
{
    const size_t bytes = (size_t)slot->parts * chain->words * sizeof(uint32_t);
    if (!shape->shared)
        return ocl_enqueue_read(queue, "read counters", slot->values.device, false, 0, bytes,
                                slot->values.host, computed, &slot->read_event, err);
    for (unsigned i = 0; i < chain->count; i++) {
        if (map(&slot->table[i], queue, chain->node[i].step->map, CL_MAP_WRITE, computed, NULL,
                err) != STATUS_OK)
            return STATUS_FAILED;
        computed = OCL_NO_WAITS; /* the queue is in order */
    }
    if (map(&slot->input, queue, "map pixels", CL_MAP_WRITE, computed, NULL, err) != STATUS_OK)
        return STATUS_FAILED;
    return map(&slot->values, queue, "map counters", CL_MAP_READ | CL_MAP_WRITE, OCL_NO_WAITS,
               &slot->read_event, err);
}

/* Enqueues the steps; *last is the last command's event if there is one. */
static enum status run_steps(const cl_event **last, struct slot *slot, struct ocl_queue *queue,
                             const struct slot_shape *shape, struct chain *chain, struct error *err)
{
    cl_mem output[STEP_NODES_MAX];
    for (unsigned i = 0; i < chain->count; i++) {
        struct chain_node *node = &chain->node[i];
        const cl_mem input = node->input < 0 ? slot->input.device : output[node->input];
        struct step_io io = {
            .in = input,
            .out = node->arena,
            .scratch = node->scratch,
            .table = slot->table[i].device,
            .values = slot->values.device,
            .list_entries = chain_entries(node, shape->parts),
            .counts = slot->use.count + node->first_count,
            .waits = {1, &slot->upload_event},
            .events = slot->step_event + node->first_event,
        };
        output[i] = input;
        if (!chain_runs(node, i, &slot->use))
            continue;
        if (node->step->enqueue(node->state, queue, &io, err) != STATUS_OK)
            return STATUS_FAILED;
        output[i] = node->arena;
        *last = io.last ? io.last : *last;
    }
    return STATUS_OK;
}

/* Zeroes the values. Shared values are zeroed by the host, which is faster than CPU drivers;
 * delivery leaves rows zeroed, so only rows used for the first time remain. */
static enum status clear_values(struct slot *slot, struct ocl_queue *queue, bool shared,
                                size_t row_bytes, struct error *err)
{
    if (!shared)
        return ocl_enqueue_fill(queue, "zero counters", slot->values.device, 0, 0,
                                slot->parts * row_bytes, OCL_NO_WAITS, NULL, err);
    if (slot->parts > slot->zeroed) {
        memset((uint8_t *)slot->values.host + slot->zeroed * row_bytes, 0,
               (slot->parts - slot->zeroed) * row_bytes);
        slot->zeroed = slot->parts;
    }
    return unmap(&slot->values, queue, "unmap counters", NULL, err);
}

enum status slot_enqueue(struct slot *slot, struct ocl_context *context, struct slot_queues queues,
                         const struct slot_shape *shape, struct chain *chain,
                         void (*done)(cl_int status, void *context), struct error *err)
{
    /* The compute queue is in order: waiting for its last command suffices. */
    const cl_event *last = &slot->upload_event;
    if (clear_values(slot, queues.compute, shape->shared, chain->words * sizeof(uint32_t), err) !=
            STATUS_OK ||
        give_inputs(slot, queues.upload, shape, chain, err) != STATUS_OK ||
        ocl_flush(queues.upload, err) != STATUS_OK ||
        run_steps(&last, slot, queues.compute, shape, chain, err) != STATUS_OK ||
        ocl_flush(queues.compute, err) != STATUS_OK ||
        take_back(slot, queues.read, shape, chain, (struct ocl_waits){1, last}, err) != STATUS_OK)
        return STATUS_FAILED;
    slot->watched = true; /* cleared by `done`, which may run before the next statement ends */
    if (ocl_on_complete(context, slot->read_event, done, slot, err) != STATUS_OK) {
        slot->watched = false;
        return STATUS_FAILED;
    }
    return ocl_flush(queues.read, err);
}

static void release(cl_event *event, struct ocl_context *context, double *seconds)
{
    if (!*event)
        return;
    *seconds += ocl_event_seconds(context, *event);
    clReleaseEvent(*event);
    *event = NULL;
}

void slot_release_events(struct slot *slot, struct ocl_context *context, double seconds[3])
{
    release(&slot->upload_event, context, &seconds[0]);
    for (unsigned i = 0; i < STEP_EVENTS_MAX; i++)
        release(&slot->step_event[i], context, &seconds[1]);
    release(&slot->read_event, context, &seconds[2]);
}
