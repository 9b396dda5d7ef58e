/* ocl_pocl.c: launches share a read-write lock; operations that must run alone hold it
 * exclusively. */
#include "ocl/ocl_pocl.h"

#include "base/array.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FIXED_IN 6 /* PoCL's major version */
#define NAME     64

/* The largest range, in each dimension, of the launches that ran alone. */
struct range {
    cl_program program;
    char kernel[NAME];
    size_t local[3], global[3];
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* guards what follows */
static struct range *ranges;
static size_t range_count;
static cl_command_queue *queues;
static size_t queue_count;

bool ocl_pocl_counts_wrong(const struct ocl_device *device)
{
    return device->pocl_major > 0 && device->pocl_major < FIXED_IN;
}

enum status ocl_pocl_add_queue(cl_command_queue queue, struct error *err)
{
    pthread_rwlock_wrlock(&lock);
    cl_command_queue *grown = array_with_room(queues, queue_count, sizeof *queues);
    if (grown) {
        queues = grown;
        queues[queue_count++] = queue;
    }
    pthread_rwlock_unlock(&lock);
    return grown ? STATUS_OK : error_memory(err, sizeof *queues, "a command queue");
}

void ocl_pocl_remove_queue(cl_command_queue queue)
{
    pthread_rwlock_wrlock(&lock);
    for (size_t i = 0; i < queue_count; i++) {
        if (queues[i] == queue)
            queues[i--] = queues[--queue_count];
    }
    if (queue_count == 0) {
        free(queues);
        queues = NULL;
    }
    pthread_rwlock_unlock(&lock);
}

void ocl_pocl_new_program(cl_program program)
{
    pthread_rwlock_wrlock(&lock);
    for (size_t i = 0; i < range_count; i++) {
        if (ranges[i].program == program)
            ranges[i--] = ranges[--range_count];
    }
    pthread_rwlock_unlock(&lock);
}

/* The record of launches like this one; NULL: none. */
static struct range *find(const struct range *launch)
{
    for (size_t i = 0; i < range_count; i++) {
        if (ranges[i].program == launch->program &&
            memcmp(ranges[i].local, launch->local, sizeof launch->local) == 0 &&
            strcmp(ranges[i].kernel, launch->kernel) == 0)
            return &ranges[i];
    }
    return NULL;
}

static void remember(const struct range *launch)
{
    struct range *known = find(launch);
    if (!known) {
        /* If out of memory, the next launch runs alone again. */
        struct range *grown = array_with_room(ranges, range_count, sizeof *ranges);
        if (!grown)
            return;
        ranges = grown;
        known = &ranges[range_count++];
        *known = *launch;
    }
    for (int d = 0; d < 3; d++)
        known->global[d] =
            known->global[d] > launch->global[d] ? known->global[d] : launch->global[d];
}

/* False if it cannot be distinguished from others: PoCL chooses the local size, or a name is too
 * long. */
static bool describe(struct range *launch, cl_kernel kernel, cl_uint dimensions,
                     const size_t *global, const size_t *local)
{
    *launch = (struct range){.local = {1, 1, 1}, .global = {1, 1, 1}};
    if (!local ||
        clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof launch->program, &launch->program,
                        NULL) != CL_SUCCESS ||
        clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof launch->kernel, launch->kernel,
                        NULL) != CL_SUCCESS)
        return false;
    memcpy(launch->global, global, dimensions * sizeof *global);
    memcpy(launch->local, local, dimensions * sizeof *local);
    return true;
}

void ocl_pocl_begin_alone(void)
{
    pthread_rwlock_wrlock(&lock);
    /* A queue may wait for another. */
    for (size_t i = 0; i < queue_count; i++)
        clFlush(queues[i]);
    for (size_t i = 0; i < queue_count; i++)
        clFinish(queues[i]);
}

void ocl_pocl_end_alone(void)
{
    pthread_rwlock_unlock(&lock);
}

cl_int ocl_pocl_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                       const size_t *global, const size_t *local, struct ocl_waits waits,
                       cl_event *event)
{
    struct range launch;
    const bool told = describe(&launch, kernel, dimensions, global, local);
    pthread_rwlock_rdlock(&lock);
    const struct range *known = told ? find(&launch) : NULL;
    bool covered = known;
    for (int d = 0; d < 3 && covered; d++)
        covered = launch.global[d] <= known->global[d];
    cl_int code = CL_SUCCESS;
    if (covered)
        code = clEnqueueNDRangeKernel(queue, kernel, dimensions, NULL, global, local, waits.count,
                                      waits.events, event);
    pthread_rwlock_unlock(&lock);
    if (covered)
        return code;

    ocl_pocl_begin_alone();
    code = clEnqueueNDRangeKernel(queue, kernel, dimensions, NULL, global, local, waits.count,
                                  waits.events, event);
    if (code == CL_SUCCESS) {
        clFinish(queue);
        if (told)
            remember(&launch);
    }
    ocl_pocl_end_alone();
    return code;
}
