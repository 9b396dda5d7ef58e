/* ocl_ndrange.h: ranges of work-items of any size, and how a device runs them. */
#ifndef CLPIPE_OCL_OCL_NDRANGE_H
#define CLPIPE_OCL_OCL_NDRANGE_H

#include "ocl/ocl.h"

/* How to build and launch kernels that guard against surplus work-items: the compiler option, and
 * the number of work-items to launch for `size` of them in groups of `local`. If the device
 * supports non-uniform work-groups the range is exact; otherwise it is rounded up to whole
 * groups. */
const char *ocl_range_option(const struct ocl_device *device);
size_t ocl_range_size(const struct ocl_device *device, size_t size, size_t local);

/* A launch as the user requests it. */
struct ocl_ndrange {
    const char *c_version; /* version of OpenCL C: "1.2", "2.0" or "3.0" */
    size_t global[2];
    size_t local[2]; /* 0: the driver chooses (NULL) */
};

#define OCL_NDRANGE_CORNERS 4

/* What a work-item in a corner of the range sees. */
struct ocl_ndrange_corner {
    uint32_t global_id[2], local_size[2];
    uint32_t enqueued_local_size[2]; /* 0 in OpenCL C 1.2, which lacks the function */
    uint32_t reserved[2];
};

/* The version of OpenCL C in which the device may support non-uniform work-groups: "2.0", or "3.0"
 * if it lacks 2.0. */
const char *ocl_ndrange_version(const struct ocl_device *device);

/* "-cl-std=CL1.2" */
const char *ocl_ndrange_option(const struct ocl_ndrange *range);

/* Launches kernels/ndrange_probe.cl once and waits. corner[]: top left, top right, bottom left,
 * bottom right. STATUS_FAILED: the driver failed to build it or refused the launch. */
enum status ocl_ndrange_probe(struct ocl_ndrange_corner corner[OCL_NDRANGE_CORNERS],
                              struct ocl_context *context, struct ocl_queue *queue,
                              const struct ocl_ndrange *range, struct error *err);

/* A sentence on why a launch over `range` was refused; returns buffer. */
const char *ocl_ndrange_why(char *buffer, size_t size, const struct ocl_ndrange *range,
                            const struct ocl_device *device, const struct error *refused);

#endif
