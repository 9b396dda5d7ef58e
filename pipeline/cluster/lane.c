/* lane.c: opening a lane and the few enqueues that all of k-means shares. */
#include "cluster/lane.h"
#include "base/clock.h"
#include "cluster/ahead.h"
#include <string.h>

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
    ahead_close(&lane->ahead);
    ocl_queue_close(&lane->upload);
    ocl_queue_close(&lane->compute);
}

enum status lane_check_stop(const struct lane *lane, struct error *err)
{
    if (lane->stop && stop_requested(lane->stop) != STOP_NONE)
        return error_set(err, STATUS_INTERRUPTED, "clustering was interrupted; nothing was stored");
    return STATUS_OK;
}

enum status lane_build(cl_program *out, struct lane *lane, const char *name, const char *options,
                       struct error *err)
{
    int64_t start = clock_now();
    enum status status = STATUS_OK;
    *out = ahead_take(lane->ahead, name, options);
    if (!*out)
        status = ocl_program_build(out, lane->ocl, name, NULL, options, err);
    lane->seconds_build += clock_seconds_since(start);
    return status;
}

enum status lane_open_buffers(struct lane *lane, const struct lane_buffer *wanted, size_t count,
                              const char *what, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (ocl_buffer(wanted[i].buffer, lane->ocl, CL_MEM_READ_WRITE, wanted[i].bytes, NULL, what,
                       err) != STATUS_OK)
            return err->status;
    return STATUS_OK;
}

enum status lane_open_kernels(const struct lane_kernel *wanted, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (ocl_kernel(wanted[i].kernel, wanted[i].program, wanted[i].name, err) != STATUS_OK)
            return err->status;
    return STATUS_OK;
}

void lane_close_kernels(cl_kernel *const *kernels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (*kernels[i])
            clReleaseKernel(*kernels[i]);
        *kernels[i] = NULL;
    }
}

void lane_close_program(cl_program *program)
{
    if (*program)
        clReleaseProgram(*program);
    *program = NULL;
}

static enum status wait_and_release(struct lane *lane, cl_event event, struct error *err)
{
    enum status status = ocl_wait(lane->compute, event, err);
    clReleaseEvent(event);
    return status;
}

/* NVIDIA's driver tells of an event's end 0.2 ms late, but returns from a blocking transfer at
 * once. */
static bool transfers_block(const struct lane *lane)
{
    return lane->device->nvidia;
}

enum status lane_read(struct lane *lane, const char *tag, cl_mem buffer, size_t offset,
                      size_t bytes, void *host, struct error *err)
{
    cl_event event = NULL;
    if (ocl_enqueue_read(lane->compute, tag, buffer, transfers_block(lane), offset, bytes, host, OCL_NO_WAITS,
                         &event, err) != STATUS_OK)
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
