/* lane.c: opens a lane; the few enqueue functions that all of k-means shares. */
#include "ocl/lane.h"
#include "base/clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lane_held {
    struct lane_held *next;
    struct lane *lane;
    size_t count;
    struct lane_wanted entries[];
};

/* mma.m16n8k16 and cp.async came with compute capability 8.0 (PTX ISA, 9.7.14 and 9.7.9). */
static bool has_tensor_cores(const struct ocl_device *device)
{
    return device->nvidia_major >= 8;
}

enum status lane_open(struct lane *lane, struct ocl_context *ocl, struct workers *workers,
                      struct stop *stop, const struct lane_choice *choice, struct error *err)
{
    const struct ocl_device *device = ocl_context_device(ocl);
    *lane = (struct lane){.ocl = ocl, .device = device, .workers = workers, .stop = stop};
    lane->tiled = !(device->type & CL_DEVICE_TYPE_CPU) && device->local_is_dedicated &&
                  device->max_work_group >= 256;
    lane->host_exact = !device->fp64;
    lane->zero_copy = device->unified_memory;
    lane->tensor = lane->tiled && has_tensor_cores(device);
    if (choice && choice->forced) {
        lane->tiled = choice->tiled;
        lane->host_exact = choice->host_exact || !device->fp64;
        lane->zero_copy = device->unified_memory && !choice->copies;
        lane->tensor = choice->tensor && choice->tiled && device->fp64;
        lane->plain_tensor = lane->tensor && !has_tensor_cores(device);
        lane->any_prune = choice->any_prune;
    }
    enum status status = ocl_queue_open(&lane->compute, ocl, "cluster", err);
    if (status == STATUS_OK)
        status = ocl_queue_open(&lane->upload, ocl, "cluster upload", err);
    if (status != STATUS_OK)
        lane_close(lane);
    return status;
}

void lane_close(struct lane *lane)
{
    ocl_queue_close(&lane->upload);
    ocl_queue_close(&lane->compute);
}

enum status lane_check_stop(const struct lane *lane, struct error *err)
{
    if (stop_requested(lane->stop) != STOP_NONE)
        return error_set(err, STATUS_INTERRUPTED, "clustering was interrupted; nothing was stored");
    return STATUS_OK;
}

static enum status open_kernel(struct lane *lane, const struct lane_wanted *wanted,
                               struct error *err)
{
    const int64_t start = clock_now();
    cl_program program;
    const enum status status =
        ocl_context_program(&program, lane->ocl, wanted->program, wanted->options, err);
    lane->seconds_build += clock_seconds_since(start);
    return status == STATUS_OK ? ocl_kernel(wanted->place, program, wanted->name, err) : status;
}

/* The buffer of pinned memory becomes its `whole`. */
static enum status open_pinned(struct lane *lane, struct lane_wanted *wanted, const char *what,
                               struct error *err)
{
    if (ocl_buffer(&wanted->whole, lane->ocl, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                   wanted->bytes, NULL, what, err) != STATUS_OK)
        return err->status;
    void *mapped;
    const enum status status = lane_map(&mapped, lane, "map pinned memory", wanted->whole,
                                        CL_MAP_WRITE_INVALIDATE_REGION, wanted->bytes, err);
    memcpy(wanted->place, &mapped, sizeof mapped);
    return status;
}

/* Places are pointers of several types, so they are copied as bytes. */
static enum status open_one(struct lane *lane, struct lane_wanted *wanted, const char *what,
                            struct error *err)
{
    const cl_mem_flags shared =
        wanted->kind == LANE_SHARED && lane->zero_copy ? CL_MEM_ALLOC_HOST_PTR : 0;
    if (wanted->kind == LANE_BUFFER || wanted->kind == LANE_SHARED)
        return ocl_buffer(wanted->place, lane->ocl, CL_MEM_READ_WRITE | shared, wanted->bytes, NULL,
                          what, err);
    if (wanted->kind == LANE_PART)
        return ocl_sub_buffer(wanted->place, lane->ocl, wanted->whole, wanted->offset,
                              wanted->bytes, what, err);
    if (wanted->kind == LANE_KERNEL)
        return open_kernel(lane, wanted, err);
    if (wanted->kind == LANE_PINNED)
        return open_pinned(lane, wanted, what, err);
    void *memory = calloc(1, wanted->bytes ? wanted->bytes : 1);
    memcpy(wanted->place, &memory, sizeof memory);
    return memory ? STATUS_OK : error_memory(err, wanted->bytes, what);
}

enum status lane_hold(struct lane_held **held, struct lane *lane, const struct lane_wanted *wanted,
                      size_t count, const char *what, struct error *err)
{
    void *const none = NULL;
    struct lane_held *now = malloc(sizeof *now + count * sizeof *wanted);
    if (!now)
        return error_memory(err, count * sizeof *wanted, what);
    *now = (struct lane_held){.next = *held, .lane = lane, .count = count};
    *held = now;
    memcpy(now->entries, wanted, count * sizeof *wanted);
    for (size_t i = 0; i < count; i++)
        memcpy(wanted[i].place, &none, sizeof none);
    for (size_t i = 0; i < now->count; i++)
        if (open_one(lane, &now->entries[i], what, err) != STATUS_OK)
            return err->status;
    return STATUS_OK;
}

static void release_one(struct lane *lane, struct lane_wanted *entry)
{
    struct error ignored = ERROR_INIT;
    void *const none = NULL;
    void *opened;
    memcpy(&opened, entry->place, sizeof opened);
    if (entry->kind == LANE_PINNED)
        lane_unmap(lane, "unmap pinned memory", entry->whole, opened, STATUS_OK, &ignored);
    if (entry->kind == LANE_HOST)
        free(opened);
    else if (entry->kind == LANE_PINNED)
        ocl_buffer_release(&entry->whole);
    else if (entry->kind != LANE_KERNEL)
        ocl_buffer_release(entry->place);
    else if (opened)
        clReleaseKernel(opened);
    memcpy(entry->place, &none, sizeof none);
}

void lane_release(struct lane_held **held)
{
    for (struct lane_held *now; (now = *held);) {
        *held = now->next;
        for (size_t i = now->count; i-- > 0;)
            release_one(now->lane, &now->entries[i]);
        free(now);
    }
}

static enum status wait_and_release(struct lane *lane, cl_event event, struct error *err)
{
    enum status status = ocl_wait(lane->compute, event, err);
    clReleaseEvent(event);
    return status;
}

/* NVIDIA's driver reports an event's end 0.2 ms late, but ends a blocking transfer at once. */
static bool transfers_block(const struct lane *lane)
{
    return lane->device->nvidia;
}

enum status lane_read(struct lane *lane, const char *tag, cl_mem buffer, size_t offset,
                      size_t bytes, void *host, struct error *err)
{
    cl_event event = NULL;
    if (ocl_enqueue_read(lane->compute, tag, buffer, transfers_block(lane), offset, bytes, host,
                         OCL_NO_WAITS, &event, err) != STATUS_OK)
        return err->status;
    return wait_and_release(lane, event, err);
}

enum status lane_write(struct lane *lane, const char *tag, cl_mem buffer, size_t offset,
                       size_t bytes, const void *host, struct error *err)
{
    cl_event event = NULL;
    if (ocl_enqueue_write(lane->compute, tag, buffer, transfers_block(lane), offset, bytes, host,
                          OCL_NO_WAITS, &event, err) != STATUS_OK)
        return err->status;
    return wait_and_release(lane, event, err);
}

enum status lane_send(struct lane *lane, const char *tag, cl_mem buffer, size_t offset,
                      size_t bytes, const void *host, struct error *err)
{
    return ocl_enqueue_write(lane->compute, tag, buffer, false, offset, bytes, host, OCL_NO_WAITS,
                             NULL, err);
}

enum status lane_fill(struct lane *lane, const char *tag, cl_mem buffer, uint32_t pattern,
                      size_t offset, size_t bytes, struct error *err)
{
    return ocl_enqueue_fill(lane->compute, tag, buffer, pattern, offset, bytes, OCL_NO_WAITS, NULL,
                            err);
}

enum status lane_map(void **mapped, struct lane *lane, const char *tag, cl_mem buffer,
                     cl_map_flags flags, size_t bytes, struct error *err)
{
    return ocl_enqueue_map(mapped, lane->compute, tag, buffer, true, flags, 0, bytes, OCL_NO_WAITS,
                           NULL, err);
}

enum status lane_unmap(struct lane *lane, const char *tag, cl_mem buffer, void *mapped,
                       enum status status, struct error *err)
{
    struct error ignored = ERROR_INIT;
    const enum status unmapped =
        mapped ? ocl_enqueue_unmap(lane->compute, tag, buffer, mapped, OCL_NO_WAITS, NULL,
                                   status == STATUS_OK ? err : &ignored)
               : STATUS_OK;
    return status == STATUS_OK ? unmapped : status;
}

void lane_settle(struct lane *lane)
{
    if (lane->compute)
        ocl_finish(lane->compute);
    if (lane->upload)
        ocl_finish(lane->upload);
}

enum status lane_launch(struct lane *lane, const char *tag, cl_kernel kernel, uint64_t items,
                        size_t group, struct error *err)
{
    size_t global = (size_t)items;
    if (group > 1)
        global = (global + group - 1) / group * group;
    return ocl_enqueue_kernel(lane->compute, tag, kernel, 1, &global, group ? &group : NULL,
                              OCL_NO_WAITS, NULL, err);
}

enum status lane_launch_2d(struct lane *lane, const char *tag, cl_kernel kernel,
                           const size_t global[2], const size_t *local, struct error *err)
{
    return ocl_enqueue_kernel(lane->compute, tag, kernel, 2, global, local, OCL_NO_WAITS, NULL,
                              err);
}
