/* ocl_loader.h: the OpenCL loader (libOpenCL.so.1), opened at run time, and drivers that it does
 * not list.
 *
 * The entry points that clpipe calls are pointers in ocl_api; macros of their names keep calls
 * unchanged. Preloaded libraries take precedence over the loader. */
#ifndef CLPIPE_OCL_OCL_LOADER_H
#define CLPIPE_OCL_OCL_LOADER_H

#define CL_TARGET_OPENCL_VERSION          300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue: the only one in 1.2 */
#include <CL/cl.h>

/* clang-format off */
#define OCL_ENTRIES(ENTRY) \
    ENTRY(clBuildProgram) ENTRY(clCreateBuffer) ENTRY(clCreateCommandQueue) ENTRY(clCreateContext) \
    ENTRY(clCreateKernel) ENTRY(clCreateProgramWithBinary) ENTRY(clCreateProgramWithSource) \
    ENTRY(clCreateSubBuffer) ENTRY(clCreateUserEvent) ENTRY(clEnqueueFillBuffer) \
    ENTRY(clEnqueueMapBuffer) ENTRY(clEnqueueMarkerWithWaitList) ENTRY(clEnqueueNDRangeKernel) \
    ENTRY(clEnqueueReadBuffer) ENTRY(clEnqueueUnmapMemObject) ENTRY(clEnqueueWriteBuffer) \
    ENTRY(clFinish) ENTRY(clFlush) ENTRY(clGetDeviceIDs) ENTRY(clGetDeviceInfo) \
    ENTRY(clGetEventInfo) ENTRY(clGetEventProfilingInfo) ENTRY(clGetKernelInfo) ENTRY(clGetMemObjectInfo) \
    ENTRY(clGetPlatformIDs) ENTRY(clGetPlatformInfo) ENTRY(clGetProgramBuildInfo) \
    ENTRY(clGetProgramInfo) ENTRY(clReleaseCommandQueue) ENTRY(clReleaseContext) \
    ENTRY(clReleaseEvent) ENTRY(clReleaseKernel) ENTRY(clReleaseMemObject) ENTRY(clReleaseProgram) \
    ENTRY(clRetainEvent) ENTRY(clSetEventCallback) ENTRY(clSetKernelArg) \
    ENTRY(clSetUserEventStatus) ENTRY(clWaitForEvents)
/* clang-format on */

#define OCL_MEMBER(name) __typeof__(name) *name;
struct ocl_api {
    OCL_ENTRIES(OCL_MEMBER)
};
extern struct ocl_api ocl_api;

/* Opens the system's loader, else the one beside the program, fills ocl_api, and calls
 * clGetPlatformIDs. Unless the user has set OCL_ICD_VENDORS or a similar variable, installed
 * drivers without an .icd file are added: NVIDIA's library by name, and the CPU runtime of
 * intel-opencl-rt if it was installed with this program. Returns the number of platforms, at most
 * `max`; 0 without a loader. Make the first call while the process has one thread. */
cl_uint ocl_loader_platforms(cl_platform_id *platforms, cl_uint max);

/* "/usr/lib/libOpenCL.so.1", with added drivers: "..., with libnvidia-opencl.so.1"; NULL: no
 * loader. Static; valid after ocl_loader_platforms. */
const char *ocl_loader_name(void);

#define clBuildProgram              ocl_api.clBuildProgram
#define clCreateBuffer              ocl_api.clCreateBuffer
#define clCreateCommandQueue        ocl_api.clCreateCommandQueue
#define clCreateContext             ocl_api.clCreateContext
#define clCreateKernel              ocl_api.clCreateKernel
#define clCreateProgramWithBinary   ocl_api.clCreateProgramWithBinary
#define clCreateProgramWithSource   ocl_api.clCreateProgramWithSource
#define clCreateSubBuffer           ocl_api.clCreateSubBuffer
#define clCreateUserEvent           ocl_api.clCreateUserEvent
#define clEnqueueFillBuffer         ocl_api.clEnqueueFillBuffer
#define clEnqueueMapBuffer          ocl_api.clEnqueueMapBuffer
#define clEnqueueMarkerWithWaitList ocl_api.clEnqueueMarkerWithWaitList
#define clEnqueueNDRangeKernel      ocl_api.clEnqueueNDRangeKernel
#define clEnqueueReadBuffer         ocl_api.clEnqueueReadBuffer
#define clEnqueueUnmapMemObject     ocl_api.clEnqueueUnmapMemObject
#define clEnqueueWriteBuffer        ocl_api.clEnqueueWriteBuffer
#define clFinish                    ocl_api.clFinish
#define clFlush                     ocl_api.clFlush
#define clGetDeviceIDs              ocl_api.clGetDeviceIDs
#define clGetDeviceInfo             ocl_api.clGetDeviceInfo
#define clGetEventInfo              ocl_api.clGetEventInfo
#define clGetEventProfilingInfo     ocl_api.clGetEventProfilingInfo
#define clGetMemObjectInfo          ocl_api.clGetMemObjectInfo
#define clGetKernelInfo             ocl_api.clGetKernelInfo
#define clGetPlatformIDs            ocl_api.clGetPlatformIDs
#define clGetPlatformInfo           ocl_api.clGetPlatformInfo
#define clGetProgramBuildInfo       ocl_api.clGetProgramBuildInfo
#define clGetProgramInfo            ocl_api.clGetProgramInfo
#define clReleaseCommandQueue       ocl_api.clReleaseCommandQueue
#define clReleaseContext            ocl_api.clReleaseContext
#define clReleaseEvent              ocl_api.clReleaseEvent
#define clReleaseKernel             ocl_api.clReleaseKernel
#define clReleaseMemObject          ocl_api.clReleaseMemObject
#define clReleaseProgram            ocl_api.clReleaseProgram
#define clRetainEvent               ocl_api.clRetainEvent
#define clSetEventCallback          ocl_api.clSetEventCallback
#define clSetKernelArg              ocl_api.clSetKernelArg
#define clSetUserEventStatus        ocl_api.clSetUserEventStatus
#define clWaitForEvents             ocl_api.clWaitForEvents

#endif
