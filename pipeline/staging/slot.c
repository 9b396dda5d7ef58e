/* slot.c: the size of slots, their buffers, and a slot's way through the three queues.
 *
 * Copied (discrete devices):
 *   upload queue:   write tiles, write pixels ─ event U
 *   compute queue:  fill counters, pixels of JPEG pictures, blur, kernels (wait U) ─ event K
 *   read queue:     read counters (wait K) ─ event R, whose callback ends the round
 * Shared memory: unmap tiles and pixels instead of writing, map them and the counters instead of
 * reading; nothing moves.
 *
 * Every queue is flushed before another waits on its event (OpenCL 1.2, 5.13).
 */
#include "staging/slot.h"

#include <stdlib.h>
#include <string.h>

/* CPU devices read a slot out of the cache that the decoder left it in. */
#define SLOT_BYTES_SHARED  (8ull << 20)
#define SLOT_BYTES_COPIED  (32ull << 20)
#define SLOT_COUNT_DEFAULT 4u
#define PARTS_MAX          4096u

/* --- size ------------------------------------------------------------------------------------ */

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Counters take up to a quarter of a slot's bytes more. */
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

unsigned slot_shape_choose(struct slot_shape *shape, const struct staging_config *config,
                           const struct ocl_device *device, unsigned passes)
{
    shape->shared = device->unified_memory;
    shape->passes = passes;
    shape->counters = config->features->counters;
    shape->border = feature_set_blurred(config->features) ? BLUR_BORDER : 0;
    shape->coefficients =
        (config->jpeg == STAGING_JPEG_DEVICE ||
         (config->jpeg == STAGING_JPEG_AUTO && !(device->type & CL_DEVICE_TYPE_CPU))) &&
        reconstruct_possible(device);
    uint64_t bytes = config->slot_bytes ? config->slot_bytes : bytes_usual(device);
    unsigned count = config->slot_count ? config->slot_count : SLOT_COUNT_DEFAULT;
    count = count > SLOTS_MAX ? SLOTS_MAX : count;
    uint64_t host = config->host_memory / config->chosen_count;
    uint64_t most = device->max_allocation;
    /* The blurred pixels of one slot are there, too; the reconstructed ones and their samples. */
    unsigned buffers = count + (shape->border ? 1 : 0) + (shape->coefficients ? 2 : 0);
    if (config->device_memory)
        most = min_u64(most, config->device_memory / buffers);
    most = min_u64(most, bytes_within(host, shape->shared ? buffers : count));
    most = min_u64(most, 1ull << 31);
    bytes = max_u64(min_u64(bytes, most), SLOT_BYTES_MIN);
    shape->bytes = bytes / PART_ALIGNMENT * PART_ALIGNMENT;
    uint64_t parts = shape->bytes / 4 / (4ull * shape->counters);
    shape->parts = (uint32_t)max_u64(2, min_u64(parts, PARTS_MAX));
    shape->tiles = 8192;
    return count;
}

/* --- buffers --------------------------------------------------------------------------------- */

static enum status array_init(struct slot_array *array, struct ocl_context *context,
                              struct ocl_queue *queue, size_t bytes, bool shared,
                              cl_map_flags flags, const char *what, struct error *err)
{
    array->bytes = bytes;
    enum status status = STATUS_OK;
    cl_mem mapped;
    if (shared) {
        status = ocl_buffer(&array->device, context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                            bytes, NULL, what, err);
        mapped = array->device;
    } else {
        status = ocl_buffer(&array->device, context, CL_MEM_READ_WRITE, bytes, NULL, what, err);
        if (status == STATUS_OK)
            status = ocl_buffer(&array->pinned, context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                bytes, NULL, what, err);
        mapped = array->pinned;
    }
    if (status == STATUS_OK)
        status = ocl_enqueue_map(&array->host, queue, "map", mapped, true, flags, 0, bytes,
                                 OCL_NO_WAITS, NULL, err);
    return status;
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
                      const struct slot_shape *shape, struct error *err)
{
    slot->picture = calloc(shape->parts, sizeof *slot->picture);
    if (!slot->picture)
        return error_memory(err, shape->parts * sizeof *slot->picture, "a slot");
    enum status status = array_init(&slot->pixels, context, queues.upload, shape->bytes,
                                    shape->shared, CL_MAP_WRITE, "a slot of pixels", err);
    if (status == STATUS_OK)
        status = array_init(&slot->tile_table, context, queues.upload,
                            (size_t)shape->passes * shape->tiles * sizeof(struct histogram_tile),
                            shape->shared, CL_MAP_WRITE, "a table of tiles", err);
    if (status == STATUS_OK && shape->border)
        status = array_init(&slot->blur_table, context, queues.upload,
                            shape->parts * sizeof(struct blur_part), shape->shared, CL_MAP_WRITE,
                            "a table of parts", err);
    if (status == STATUS_OK && shape->coefficients)
        status = array_init(&slot->jpeg_table, context, queues.upload,
                            shape->parts * sizeof(struct jpeg_part), shape->shared, CL_MAP_WRITE,
                            "a table of parts", err);
    if (status == STATUS_OK)
        status = array_init(&slot->counters, context, queues.read,
                            (size_t)shape->parts * shape->counters * sizeof(uint32_t),
                            shape->shared, CL_MAP_READ, "a slot's counters", err);
    return status;
}

void slot_clear(struct slot *slot, struct slot_queues queues)
{
    array_clear(&slot->counters, queues.read);
    array_clear(&slot->jpeg_table, queues.upload);
    array_clear(&slot->blur_table, queues.upload);
    array_clear(&slot->tile_table, queues.upload);
    array_clear(&slot->pixels, queues.upload);
    free(slot->picture);
    slot->picture = NULL;
}

/* The tables of parts that a slot has, and the bytes of each that are in use. */
static unsigned part_tables(struct slot_array *table[2], size_t used[2], struct slot *slot,
                            const struct slot_shape *shape)
{
    unsigned count = 0;
    if (shape->border) {
        table[count] = &slot->blur_table;
        used[count++] = slot->parts * sizeof(struct blur_part);
    }
    if (shape->coefficients) {
        table[count] = &slot->jpeg_table;
        used[count++] = slot->parts * sizeof(struct jpeg_part);
    }
    return count;
}

/* Gives the inputs to the device; the last command's event is slot->upload_event. */
static enum status give(struct slot *slot, struct ocl_queue *queue, const struct slot_shape *shape,
                        struct error *err)
{
    struct slot_array *tiles = &slot->tile_table, *pixels = &slot->pixels, *table[2];
    size_t used[2];
    const unsigned tables = part_tables(table, used, slot, shape);
    enum status status = STATUS_OK;
    if (shape->shared) {
        status = ocl_enqueue_unmap(queue, "unmap tiles", tiles->device, tiles->host, OCL_NO_WAITS,
                                   NULL, err);
        tiles->host = NULL;
        for (unsigned i = 0; i < tables && status == STATUS_OK; i++) {
            status = ocl_enqueue_unmap(queue, "unmap parts", table[i]->device, table[i]->host,
                                       OCL_NO_WAITS, NULL, err);
            table[i]->host = NULL;
        }
        if (status == STATUS_OK) {
            status = ocl_enqueue_unmap(queue, "unmap pixels", pixels->device, pixels->host,
                                       OCL_NO_WAITS, &slot->upload_event, err);
            pixels->host = NULL;
        }
        return status;
    }
    for (uint32_t p = 0; p < shape->passes && status == STATUS_OK; p++) {
        size_t offset = (size_t)p * shape->tiles * sizeof(struct histogram_tile);
        if (slot->tiles[p] > 0)
            status = ocl_enqueue_write(queue, "upload tiles", tiles->device, false, offset,
                                       slot->tiles[p] * sizeof(struct histogram_tile),
                                       (const char *)tiles->host + offset, OCL_NO_WAITS, NULL, err);
    }
    for (unsigned i = 0; i < tables && status == STATUS_OK; i++)
        status = ocl_enqueue_write(queue, "upload parts", table[i]->device, false, 0, used[i],
                                   table[i]->host, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK)
        status =
            ocl_enqueue_write(queue, "upload pixels", pixels->device, false, 0, slot->used_bytes,
                              pixels->host, OCL_NO_WAITS, &slot->upload_event, err);
    return status;
}

/* Takes everything back; the last command's event is slot->read_event. */
static enum status take(struct slot *slot, struct ocl_queue *queue, const struct slot_shape *shape,
                        struct ocl_waits computed, size_t counter_bytes, struct error *err)
{
    struct slot_array *counters = &slot->counters, *table[2];
    size_t used[2];
    const unsigned tables = part_tables(table, used, slot, shape);
    if (!shape->shared)
        return ocl_enqueue_read(queue, "read counters", counters->device, false, 0, counter_bytes,
                                counters->host, computed, &slot->read_event, err);
    enum status status =
        ocl_enqueue_map(&slot->tile_table.host, queue, "map tiles", slot->tile_table.device, false,
                        CL_MAP_WRITE, 0, slot->tile_table.bytes, computed, NULL, err);
    for (unsigned i = 0; i < tables && status == STATUS_OK; i++)
        status = ocl_enqueue_map(&table[i]->host, queue, "map parts", table[i]->device, false,
                                 CL_MAP_WRITE, 0, table[i]->bytes, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK)
        status =
            ocl_enqueue_map(&slot->pixels.host, queue, "map pixels", slot->pixels.device, false,
                            CL_MAP_WRITE, 0, slot->pixels.bytes, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK)
        status =
            ocl_enqueue_map(&counters->host, queue, "map counters", counters->device, false,
                            CL_MAP_READ, 0, counters->bytes, OCL_NO_WAITS, &slot->read_event, err);
    return status;
}

enum status slot_enqueue(struct slot *slot, struct ocl_context *context, struct slot_queues queues,
                         struct reconstruct *reconstruct, struct blur *blur,
                         struct histogram *histogram, const struct slot_shape *shape,
                         void (*done)(cl_int status, void *context), struct error *err)
{
    size_t counter_bytes = (size_t)slot->parts * shape->counters * sizeof(uint32_t);
    enum status status = STATUS_OK;
    if (shape->shared) {
        status = ocl_enqueue_unmap(queues.compute, "unmap counters", slot->counters.device,
                                   slot->counters.host, OCL_NO_WAITS, NULL, err);
        slot->counters.host = NULL;
    }
    if (status == STATUS_OK)
        status = ocl_enqueue_fill(queues.compute, "zero counters", slot->counters.device, 0, 0,
                                  counter_bytes, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK)
        status = give(slot, queues.upload, shape, err);
    if (status == STATUS_OK)
        status = ocl_flush(queues.upload, err);

    /* The compute queue is in order: its last kernel stands for all. */
    struct ocl_waits computed = {1, &slot->upload_event};
    cl_mem pixels = slot->pixels.device;
    if (status == STATUS_OK && slot->coefficients > 0) {
        status = reconstruct_enqueue(reconstruct, queues.compute, pixels, slot->jpeg_table.device,
                                     slot->parts, slot->range, computed, slot->jpeg_event, err);
        computed.events = &slot->jpeg_event[0];
        pixels = reconstruct_pixels(reconstruct);
    }
    if (status == STATUS_OK && blur) {
        status = blur_enqueue(blur, queues.compute, pixels, slot->blur_table.device, slot->parts,
                              slot->blocks, computed, &slot->blur_event, err);
        computed.events = &slot->blur_event;
        pixels = blur_pixels(blur);
    }
    for (uint32_t p = 0; p < shape->passes && status == STATUS_OK; p++) {
        if (slot->tiles[p] == 0)
            continue;
        status = histogram_enqueue(histogram, p, queues.compute, pixels, slot->tile_table.device,
                                   p * shape->tiles, slot->tiles[p], slot->counters.device,
                                   (struct ocl_waits){1, &slot->upload_event},
                                   slot->kernel_event[p], err);
        computed.events = &slot->kernel_event[p][0];
    }
    if (status == STATUS_OK)
        status = ocl_flush(queues.compute, err);
    if (status == STATUS_OK)
        status = take(slot, queues.read, shape, computed, counter_bytes, err);
    if (status != STATUS_OK)
        return status;
    slot->watched = true; /* cleared by `done`, which may come before the next line ends */
    status = ocl_on_complete(context, slot->read_event, done, slot, err);
    if (status != STATUS_OK) {
        slot->watched = false;
        return status;
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

void slot_release_events(struct slot *slot, struct ocl_context *context, unsigned passes,
                         double seconds[3])
{
    release(&slot->upload_event, context, &seconds[0]);
    for (unsigned i = 0; i < 2; i++)
        release(&slot->jpeg_event[i], context, &seconds[1]);
    release(&slot->blur_event, context, &seconds[1]);
    for (unsigned p = 0; p < passes; p++)
        for (unsigned e = 0; e < HISTOGRAM_EVENTS; e++)
            release(&slot->kernel_event[p][e], context, &seconds[1]);
    release(&slot->read_event, context, &seconds[2]);
}
