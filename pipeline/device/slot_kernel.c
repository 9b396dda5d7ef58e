/* slot_kernel.c: builds, proves and launches the kernel of a single-kernel step. */
#include "device/slot_kernel.h"

#include "device/proof.h"
#include "ocl/ocl_ndrange.h"

#include <stdio.h>
#include <stdlib.h>

#define GROUP_MOST 64u

struct slot_kernel {
    struct ocl_context *context;
    const struct step_node *node;
    cl_program program;
    cl_kernel kernel;
};

enum status slot_kernel_open(void **state, struct step_needs *needs, struct ocl_context *context,
                             const struct step_node *node, uint64_t launch_bytes, struct error *err)
{
    (void)launch_bytes;
    struct slot_kernel *slot_kernel = calloc(1, sizeof *slot_kernel);
    if (!slot_kernel)
        return error_memory(err, sizeof *slot_kernel, node->step->name);
    slot_kernel->context = context;
    slot_kernel->node = node;
    *state = slot_kernel;
    *needs = (struct step_needs){.lists = 1, .counts = 2, .events = 1};
    return STATUS_OK;
}

void slot_kernel_close(void **state)
{
    struct slot_kernel *slot_kernel = *state;
    if (slot_kernel && slot_kernel->kernel)
        clReleaseKernel(slot_kernel->kernel);
    if (slot_kernel && slot_kernel->program)
        clReleaseProgram(slot_kernel->program);
    free(slot_kernel);
    *state = NULL;
}

bool slot_kernel_on_cpu(const void *state)
{
    const struct slot_kernel *slot_kernel = state;
    return ocl_context_device(slot_kernel->context)->type & CL_DEVICE_TYPE_CPU;
}

static void write_options(char *options, size_t size, const struct slot_kernel *slot_kernel)
{
    snprintf(options, size, "%s%s", ocl_range_option(ocl_context_device(slot_kernel->context)),
             slot_kernel_on_cpu(slot_kernel) ? " -DCPU" : "");
}

enum status slot_kernel_build(void *state, struct error *err)
{
    struct slot_kernel *slot_kernel = state;
    const char *name = slot_kernel->node->step->kernel;
    char options[64];
    write_options(options, sizeof options, slot_kernel);
    if (ocl_program_build(&slot_kernel->program, slot_kernel->context, name, NULL, options, err) !=
        STATUS_OK)
        return STATUS_FAILED;
    return ocl_kernel(&slot_kernel->kernel, slot_kernel->program, name, err);
}

enum status slot_kernel_prove(void *state, struct error *err)
{
    const struct slot_kernel *slot_kernel = state;
    const struct step *step = slot_kernel->node->step;
    const char *const programs[] = {step->kernel, NULL};
    char options[64];
    write_options(options, sizeof options, slot_kernel);
    return proof_check(step, programs, options, slot_kernel->context, err);
}

enum status slot_kernel_enqueue(void *state, struct ocl_queue *queue, struct step_io *io,
                                struct error *err)
{
    const struct slot_kernel *slot_kernel = state;
    const struct ocl_device *device = ocl_context_device(slot_kernel->context);
    const cl_uint count = io->counts[0], items = io->counts[1];
    const cl_mem *out = slot_kernel->node->step->gives == PAYLOAD_VALUES ? &io->values : &io->out;
    if (items == 0)
        return STATUS_OK;
    if (ocl_args(slot_kernel->kernel, err, sizeof io->in, &io->in, sizeof io->table, &io->table,
                 sizeof count, &count, sizeof items, &items, sizeof *out, out,
                 OCL_ARGS_END) != STATUS_OK)
        return STATUS_FAILED;
    size_t local = GROUP_MOST;
    while (local > device->max_work_group || local > device->max_work_item[0])
        local /= 2;
    const size_t global = ocl_range_size(device, items, local);
    io->last = &io->events[0];
    return ocl_enqueue_kernel(queue, slot_kernel->node->step->kernel, slot_kernel->kernel, 1,
                              &global, &local, io->waits, &io->events[0], err);
}

const struct step_node *slot_kernel_node(const void *state)
{
    return ((const struct slot_kernel *)state)->node;
}
