/* slot_kernel.c: builds, proves and launches the kernels of a step. */
#include "device/slot_kernel.h"

#include "device/proof.h"
#include "ocl/ocl_ndrange.h"

#include <stdio.h>
#include <stdlib.h>

#define GROUP_MOST 64u

enum status slot_kernel_open(void **state, struct step_needs *needs, struct ocl_context *context,
                             const struct step_node *node, uint64_t launch_bytes, struct error *err)
{
    (void)launch_bytes;
    const struct ocl_device *device = ocl_context_device(context);
    struct slot_kernel *slot_kernel = calloc(1, sizeof *slot_kernel);
    if (!slot_kernel)
        return error_memory(err, sizeof *slot_kernel, node->step->name);
    slot_kernel->context = context;
    slot_kernel->node = node;
    slot_kernel->cpu = device->type & CL_DEVICE_TYPE_CPU;
    while (slot_kernel->count < STEP_KERNELS_MAX && node->step->kernels[slot_kernel->count])
        slot_kernel->count++;
    snprintf(slot_kernel->options, sizeof slot_kernel->options, "%s%s", ocl_range_option(device),
             slot_kernel->cpu ? " -DCPU" : "");
    *state = slot_kernel;
    *needs = (struct step_needs){
        .lists = 1, .counts = 1 + slot_kernel->count, .events = slot_kernel->count};
    return STATUS_OK;
}

void slot_kernel_close(void **state)
{
    struct slot_kernel *slot_kernel = *state;
    for (unsigned i = 0; slot_kernel && i < STEP_KERNELS_MAX; i++) {
        if (slot_kernel->kernel[i])
            clReleaseKernel(slot_kernel->kernel[i]);
    }
    if (slot_kernel)
        ocl_buffer_release(&slot_kernel->constants);
    free(slot_kernel);
    *state = NULL;
}

enum status slot_kernel_build(void *state, struct error *err)
{
    struct slot_kernel *slot_kernel = state;
    for (unsigned i = 0; i < slot_kernel->count; i++) {
        const char *name = slot_kernel->node->step->kernels[i];
        if (ocl_context_kernel(&slot_kernel->kernel[i], slot_kernel->context, name, name,
                               slot_kernel->options, err) != STATUS_OK)
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

enum status slot_kernel_prove(void *state, struct error *err)
{
    const struct slot_kernel *slot_kernel = state;
    const struct step *step = slot_kernel->node->step;
    return proof_check((struct step_node){.step = step}, step->kernels, slot_kernel->options,
                       slot_kernel->context, err);
}

size_t slot_kernel_group(const struct ocl_device *device)
{
    size_t local = GROUP_MOST;
    while (local > device->max_work_group || local > device->max_work_item[0])
        local /= 2;
    return local;
}

enum status slot_kernel_launch(const struct slot_kernel *slot_kernel, unsigned i,
                               struct ocl_queue *queue, struct step_io *io, size_t global,
                               size_t local, struct error *err)
{
    io->last = &io->events[i];
    return ocl_enqueue_kernel(queue, slot_kernel->node->step->kernels[i], slot_kernel->kernel[i], 1,
                              &global, &local, io->waits, &io->events[i], err);
}

enum status slot_kernel_enqueue(void *state, struct ocl_queue *queue, struct step_io *io,
                                struct error *err)
{
    const struct slot_kernel *slot_kernel = state;
    const struct ocl_device *device = ocl_context_device(slot_kernel->context);
    const cl_uint count = io->counts[0], items = io->counts[1];
    const cl_mem *out = slot_kernel->node->step->gives == PAYLOAD_VALUES ? &io->values : &io->out;
    const size_t local = slot_kernel_group(device);
    if (items == 0)
        return STATUS_OK;
    if (ocl_args(slot_kernel->kernel[0], err, OCL_ARG(io->in), OCL_ARG(io->table), OCL_ARG(count),
                 OCL_ARG(items), OCL_ARG(*out), OCL_ARGS_END) != STATUS_OK)
        return STATUS_FAILED;
    return slot_kernel_launch(slot_kernel, 0, queue, io, ocl_range_size(device, items, local),
                              local, err);
}
