/* ocl_ndrange.h: ranges of work-items of any size, and what a device makes of them. */
#ifndef CLPIPE_OCL_OCL_NDRANGE_H
#define CLPIPE_OCL_OCL_NDRANGE_H

#include "ocl/ocl.h"

/* How kernels are built and launched that guard themselves against work-items too many. Where the
 * device takes non-uniform work-groups, the range is exact; elsewhere it is rounded up to whole
 * ones. The compiler's option, and the work-items to launch for `size` of them in groups of
 * `local`. */
const char *ocl_range_option(const struct ocl_device *device);
size_t ocl_range_size(const struct ocl_device *device, size_t size, size_t local);

/* A launch as a person asks for it. */
struct ocl_ndrange {
    const char *c_version; /* "1.2", "2.0" or "3.0": of OpenCL C, for the compiler */
    size_t global[2];
    size_t local[2]; /* 0: the driver chooses (NULL) */
};

#define OCL_NDRANGE_CORNERS 4

/* What a work-item sees. */
struct ocl_ndrange_corner {
    uint32_t global_id[2], local_size[2];
    uint32_t enqueued_local_size[2]; /* 0 in OpenCL C 1.2, which has no such function */
    uint32_t reserved[2];
};

/* The version of OpenCL C in which the device may take non-uniform work-groups: "2.0", or "3.0"
 * where there is no 2.0. */
const char *ocl_ndrange_version(const struct ocl_device *device);

/* "-cl-std=CL1.2" */
const char *ocl_ndrange_option(const struct ocl_ndrange *range);

/* Launches kernels/ndrange_probe.cl once and waits. corner[]: top left, top right, bottom left,
 * bottom right. Not STATUS_OK: the driver does not build it or refuses the launch, and *err says
 * with which error. */
enum status ocl_ndrange_probe(struct ocl_ndrange_corner corner[OCL_NDRANGE_CORNERS],
                              struct ocl_context *context, struct ocl_queue *queue,
                              const struct ocl_ndrange *range, struct error *err);

/* Why a launch over `range` ended in `code`, as a sentence; returns buffer. */
const char *ocl_ndrange_why(char *buffer, size_t size, const struct ocl_ndrange *range,
                            const struct ocl_device *device, const struct error *refused);

#endif
