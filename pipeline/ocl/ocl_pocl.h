/* ocl_pocl.h: a workaround for PoCL before 6.0, which miscounts the users of its kernels.
 *
 * PoCL keeps a compiled kernel for each new largest range, and another when a program's binary is
 * requested, and counts the users of each. But a launch that ends releases the newest one of the
 * same kernel and local size, whichever it acquired (pocl_release_dlhandle_cache,
 * lib/CL/devices/common.c). If one is created while launches of the kernel are in progress, it is
 * released more often than acquired: an assertion fails, and the process aborts. All devices share
 * these kernels.
 *
 * Here any operation that may create one runs alone, after all queues have finished: a launch
 * larger than all earlier ones of the same kernel and local size (there are few), and saving a
 * binary.
 */
#ifndef CLPIPE_OCL_OCL_POCL_H
#define CLPIPE_OCL_OCL_POCL_H

#include "ocl/ocl.h"

/* True for devices of these versions. The functions below are only for them; any thread may call
 * them. */
bool ocl_pocl_counts_wrong(const struct ocl_device *device);

/* Register a queue before its first command; remove it after its last. */
enum status ocl_pocl_add_queue(cl_command_queue queue, struct error *err);
void ocl_pocl_remove_queue(cl_command_queue queue);

/* Call after creating a program: its handle may be that of an earlier one, whose state is
 * dropped. */
void ocl_pocl_new_program(cl_program program);

/* Between these calls no command of a registered queue is in progress or starts. */
void ocl_pocl_begin_alone(void);
void ocl_pocl_end_alone(void);

/* clEnqueueNDRangeKernel. */
cl_int ocl_pocl_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                       const size_t *global, const size_t *local, struct ocl_waits waits,
                       cl_event *event);

#endif
