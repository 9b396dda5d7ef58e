/* ocl_ndrange.c: ranges of any size, a kernel that probes them, and explanations of refused
 * launches. */
#include "ocl/ocl_ndrange.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct ocl_ndrange_corner) == 8 * sizeof(cl_uint),
               "eight words of the kernel");

/* Non-uniform work-groups also require OpenCL C 2.0 or later. A device of OpenCL 3 may support 3.0
 * without 2.0. */
const char *ocl_range_option(const struct ocl_device *device)
{
    unsigned major = 1;
    if (!device->non_uniform_groups)
        return "-cl-std=CL1.2";
    sscanf(device->version, "OpenCL %u", &major);
    return major >= 3 ? "-cl-std=CL3.0" : "-cl-std=CL2.0";
}

size_t ocl_range_size(const struct ocl_device *device, size_t size, size_t local)
{
    return device->non_uniform_groups ? size : (size + local - 1) / local * local;
}

const char *ocl_ndrange_version(const struct ocl_device *device)
{
    return device->opencl_c_2 ? "2.0" : "3.0";
}

const char *ocl_ndrange_option(const struct ocl_ndrange *range)
{
    switch (*range->c_version) {
    case '1':
        return "-cl-std=CL1.2";
    case '2':
        return "-cl-std=CL2.0";
    default:
        return "-cl-std=CL3.0";
    }
}

enum status ocl_ndrange_probe(struct ocl_ndrange_corner corner[OCL_NDRANGE_CORNERS],
                              struct ocl_context *context, struct ocl_queue *queue,
                              const struct ocl_ndrange *range, struct error *err)
{
    const size_t bytes = OCL_NDRANGE_CORNERS * sizeof *corner;
    cl_kernel kernel = NULL;
    cl_mem buffer = NULL;
    memset(corner, 0, bytes);
    enum status status = STATUS_FAILED;
    if (ocl_context_kernel(&kernel, context, "ndrange_probe", "ndrange_probe",
                           ocl_ndrange_option(range), err) != STATUS_OK)
        goto out;
    if (ocl_buffer(&buffer, context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, corner,
                   "the corners of a range", err) != STATUS_OK ||
        ocl_args(kernel, err, sizeof buffer, &buffer, OCL_ARGS_END) != STATUS_OK)
        goto out;
    if (ocl_enqueue_kernel(queue, "ndrange_probe", kernel, 2, range->global,
                           range->local[0] ? range->local : NULL, OCL_NO_WAITS, NULL,
                           err) != STATUS_OK)
        goto out;
    status =
        ocl_enqueue_read(queue, "corners", buffer, true, 0, bytes, corner, OCL_NO_WAITS, NULL, err);
out:
    ocl_buffer_release(&buffer);
    if (kernel)
        clReleaseKernel(kernel);
    return status;
}

const char *ocl_ndrange_why(char *buffer, size_t size, const struct ocl_ndrange *range,
                            const struct ocl_device *device, const struct error *refused)
{
    const size_t *local = range->local, *global = range->global;
    const bool whole = local[0] == 0 || (global[0] % local[0] == 0 && global[1] % local[1] == 0);
    const size_t *most = device->max_work_item;
    if (refused->native == CL_BUILD_PROGRAM_FAILURE || refused->native == CL_INVALID_BUILD_OPTIONS)
        snprintf(buffer, size, "the driver does not build kernels as OpenCL C %s",
                 range->c_version);
    else if (refused->native == CL_INVALID_WORK_ITEM_SIZE && local[0])
        snprintf(buffer, size, "the device supports work-groups of at most %zu x %zu", most[0],
                 most[1]);
    else if (refused->native == CL_INVALID_WORK_GROUP_SIZE && local[0] &&
             local[0] * local[1] > device->max_work_group)
        snprintf(buffer, size, "the device supports at most %zu work-items in a group",
                 device->max_work_group);
    else if (refused->native == CL_INVALID_WORK_GROUP_SIZE && !whole)
        snprintf(buffer, size,
                 "%s requires uniform work-groups, and %zu x %zu is not a multiple of %zu x %zu",
                 strcmp(range->c_version, "1.2") == 0 ? "OpenCL C 1.2" : "the device", global[0],
                 global[1], local[0], local[1]);
    else
        snprintf(buffer, size, "%s", refused->sentence);
    return buffer;
}
