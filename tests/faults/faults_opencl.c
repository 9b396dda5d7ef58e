/* faults_opencl.c: OpenCL calls that can be made to fail. The action is the error code; for
 * "callback" and "event" it is the reported status of the event. */
#define CL_TARGET_OPENCL_VERSION 120
#include "faults.h"
#include <CL/cl.h>
#include <stdlib.h>

/* Finds a function of the OpenCL loader. The program loads it with dlopen(), so RTLD_NEXT may not
 * find it; and other libraries (hwloc, used by MPI) may call OpenCL before that. */
static void *of_loader(const char *name)
{
    void *next = dlsym(RTLD_NEXT, name);
    void *loader = next ? NULL : dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL);
    return loader ? dlsym(loader, name) : next;
}

#undef NEXT
#define NEXT(name)                                                                                 \
    static __typeof__(name) *next;                                                                 \
    if (!next)                                                                                     \
    *(void **)&next = of_loader(#name)

/* A call that returns an error code. */
#define CODE(class, name, parameters, arguments)                                                   \
    CL_API_ENTRY cl_int CL_API_CALL name parameters                                                \
    {                                                                                              \
        NEXT(name);                                                                                \
        int code = faults_decide(class, CALLER);                                                   \
        return code ? code : next arguments;                                                       \
    }

/* A call that returns an object, and the error code through its last parameter. */
#define OBJECT(class, type, name, parameters, arguments)                                           \
    CL_API_ENTRY type CL_API_CALL name parameters                                                  \
    {                                                                                              \
        NEXT(name);                                                                                \
        int code = faults_decide(class, CALLER);                                                   \
        if (!code)                                                                                 \
            return next arguments;                                                                 \
        if (error)                                                                                 \
            *error = code;                                                                         \
        return NULL;                                                                               \
    }

OBJECT(CALL_CONTEXT, cl_context, clCreateContext,
       (const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
        void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
        cl_int *error),
       (properties, count, devices, notify, user, error))
OBJECT(CALL_QUEUE, cl_command_queue, clCreateCommandQueue,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties,
        cl_int *error),
       (context, device, properties, error))
OBJECT(CALL_BUFFER, cl_mem, clCreateBuffer,
       (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *error),
       (context, flags, size, host, error))
OBJECT(CALL_BUFFER, cl_mem, clCreateSubBuffer,
       (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *region,
        cl_int *error),
       (buffer, flags, type, region, error))
OBJECT(CALL_PROGRAM, cl_program, clCreateProgramWithSource,
       (cl_context context, cl_uint count, const char **text, const size_t *length, cl_int *error),
       (context, count, text, length, error))
OBJECT(CALL_PROGRAM, cl_program, clCreateProgramWithBinary,
       (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *length,
        const unsigned char **binary, cl_int *status, cl_int *error),
       (context, count, devices, length, binary, status, error))
OBJECT(CALL_KERNEL, cl_kernel, clCreateKernel,
       (cl_program program, const char *name, cl_int *error), (program, name, error))
OBJECT(CALL_TRANSFER, void *, clEnqueueMapBuffer,
       (cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
        size_t size, cl_uint waits, const cl_event *wait, cl_event *event, cl_int *error),
       (queue, buffer, blocking, flags, offset, size, waits, wait, event, error))

CODE(CALL_CONTEXT, clGetPlatformIDs, (cl_uint room, cl_platform_id *platforms, cl_uint *count),
     (room, platforms, count))
CODE(CALL_CONTEXT, clGetDeviceIDs,
     (cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *devices,
      cl_uint *count),
     (platform, type, room, devices, count))
CODE(CALL_CONTEXT, clGetDeviceInfo,
     (cl_device_id device, cl_device_info what, size_t room, void *value, size_t *size),
     (device, what, room, value, size))
CODE(CALL_CONTEXT, clGetPlatformInfo,
     (cl_platform_id platform, cl_platform_info what, size_t room, void *value, size_t *size),
     (platform, what, room, value, size))
CODE(CALL_CONTEXT, clGetEventProfilingInfo,
     (cl_event event, cl_profiling_info what, size_t room, void *value, size_t *size),
     (event, what, room, value, size))
CODE(CALL_PROGRAM, clGetProgramInfo,
     (cl_program program, cl_program_info what, size_t room, void *value, size_t *size),
     (program, what, room, value, size))
CODE(CALL_PROGRAM, clGetProgramBuildInfo,
     (cl_program program, cl_device_id device, cl_program_build_info what, size_t room, void *value,
      size_t *size),
     (program, device, what, room, value, size))
CODE(CALL_BUILD, clBuildProgram,
     (cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
      void(CL_CALLBACK *notify)(cl_program, void *), void *user),
     (program, count, devices, options, notify, user))
CODE(CALL_ARGUMENT, clSetKernelArg,
     (cl_kernel kernel, cl_uint index, size_t size, const void *value),
     (kernel, index, size, value))
CODE(CALL_LAUNCH, clEnqueueNDRangeKernel,
     (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
      const size_t *global, const size_t *local, cl_uint waits, const cl_event *wait,
      cl_event *event),
     (queue, kernel, dimensions, offset, global, local, waits, wait, event))
CODE(CALL_TRANSFER, clEnqueueWriteBuffer,
     (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
      const void *data, cl_uint waits, const cl_event *wait, cl_event *event),
     (queue, buffer, blocking, offset, size, data, waits, wait, event))
CODE(CALL_TRANSFER, clEnqueueReadBuffer,
     (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
      void *data, cl_uint waits, const cl_event *wait, cl_event *event),
     (queue, buffer, blocking, offset, size, data, waits, wait, event))
CODE(CALL_TRANSFER, clEnqueueUnmapMemObject,
     (cl_command_queue queue, cl_mem buffer, void *at, cl_uint waits, const cl_event *wait,
      cl_event *event),
     (queue, buffer, at, waits, wait, event))
CODE(CALL_TRANSFER, clEnqueueFillBuffer,
     (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t length, size_t offset,
      size_t size, cl_uint waits, const cl_event *wait, cl_event *event),
     (queue, buffer, pattern, length, offset, size, waits, wait, event))
CODE(CALL_TRANSFER, clEnqueueMarkerWithWaitList,
     (cl_command_queue queue, cl_uint waits, const cl_event *wait, cl_event *event),
     (queue, waits, wait, event))
CODE(CALL_FLUSH, clFlush, (cl_command_queue queue), (queue))
CODE(CALL_FLUSH, clFinish, (cl_command_queue queue), (queue))
CODE(CALL_FLUSH, clWaitForEvents, (cl_uint count, const cl_event *events), (count, events))

/* --- events ---------------------------------------------------------------------------------- */

struct lie {
    void(CL_CALLBACK *notify)(cl_event, cl_int, void *);
    void *user;
    cl_int status;
};

static void CL_CALLBACK tell_lie(cl_event event, cl_int status, void *context)
{
    struct lie lie = *(struct lie *)context;
    (void)status;
    free(context);
    lie.notify(event, lie.status, lie.user);
}

CL_API_ENTRY cl_int CL_API_CALL clSetEventCallback(
    cl_event event, cl_int when, void(CL_CALLBACK *notify)(cl_event, cl_int, void *), void *user)
{
    NEXT(clSetEventCallback);
    int status = faults_decide(CALL_CALLBACK, CALLER);
    struct lie *lie = status ? malloc(sizeof *lie) : NULL;
    if (!lie)
        return next(event, when, notify, user);
    *lie = (struct lie){notify, user, status};
    return next(event, when, tell_lie, lie);
}

CL_API_ENTRY cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info what, size_t room,
                                               void *value, size_t *size)
{
    NEXT(clGetEventInfo);
    int status = what == CL_EVENT_COMMAND_EXECUTION_STATUS && value && room >= sizeof(cl_int)
                     ? faults_decide(CALL_EVENT, CALLER)
                     : 0;
    cl_int code = next(event, what, room, value, size);
    if (status && code == CL_SUCCESS)
        *(cl_int *)value = status;
    return code;
}
