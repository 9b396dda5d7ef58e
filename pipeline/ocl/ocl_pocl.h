/* ocl_pocl.h: what has to be kept from PoCL before 6.0, which loses count of its kernels' users.
 *
 * PoCL keeps a compiled kernel for each largest range that came so far, and one more where a
 * program's binary is asked for, and counts the users of each. But a launch that ends gives back
 * the newest of the same kernel and local size, whichever it took (pocl_release_dlhandle_cache,
 * lib/CL/devices/common.c). So where one is made while launches of the kernel are under way, it is
 * given back more often than it was taken: an assertion fails, and the process ends. All devices
 * share these kernels.
 *
 * Here what may make one runs alone, when all queues are finished: a launch that no earlier one of
 * the same kernel and local size covers, which is one of few, and saving a binary.
 */
#ifndef CLPIPE_OCL_OCL_POCL_H
#define CLPIPE_OCL_OCL_POCL_H

#include "ocl/ocl.h"

/* Whether the device is one of these; what follows is for them alone, on any thread. */
bool ocl_pocl_counts_wrong(const struct ocl_device *device);

/* A queue's life, from before its first command until after its last. */
enum status ocl_pocl_add_queue(cl_command_queue queue, struct error *err);
void ocl_pocl_remove_queue(cl_command_queue queue);

/* A program was made, maybe where another was, of which things are known. */
void ocl_pocl_new_program(cl_program program);

/* Between the two no command is under way, and none comes. */
void ocl_pocl_begin_alone(void);
void ocl_pocl_end_alone(void);

/* clEnqueueNDRangeKernel. */
cl_int ocl_pocl_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                       const size_t *global, const size_t *local, struct ocl_waits waits,
                       cl_event *event);

#endif
