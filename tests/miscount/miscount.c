/* miscount.c: makes kernels of clpipe miscount or fail to build. A library for LD_PRELOAD.
 *
 *   CLPIPE_MISCOUNT="wrong:histogram_private unbuilt:histogram_local sparing:blur_slot"
 *
 * A wrong kernel is launched with one work-group too few. The compiler rejects an unbuilt kernel. A
 * sparing kernel (of a step whose output is argument OUTPUT) writes no zeros: those bytes keep
 * their previous values. Cached programs cannot be distinguished, so each test must have its own
 * cache. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST   64u
#define OUTPUT 4u

#define NEXT(name)                                                                                 \
    static __typeof__(name) *next;                                                                 \
    if (!next)                                                                                     \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

/* Not locked: a single thread builds and launches. */
static cl_kernel wrong[MOST];
static cl_program unbuilt[MOST];
static unsigned wrong_count, unbuilt_count, sparing_count;
static struct {
    cl_kernel kernel;
    cl_mem output;
} sparing[MOST];

static bool is_listed(const char *how, const char *kernel)
{
    const char *list = getenv("CLPIPE_MISCOUNT");
    char entry[96];
    snprintf(entry, sizeof entry, "%s:%s", how, kernel);
    return list && strstr(list, entry);
}

CL_API_ENTRY cl_kernel CL_API_CALL clCreateKernel(cl_program program, const char *name,
                                                  cl_int *error)
{
    NEXT(clCreateKernel);
    cl_kernel kernel = next(program, name, error);
    for (unsigned i = 0; i < wrong_count; i++)
        if (wrong[i] == kernel)
            wrong[i] = NULL; /* the address of an earlier kernel is reused */
    for (unsigned i = 0; i < sparing_count; i++)
        if (sparing[i].kernel == kernel)
            sparing[i].kernel = NULL;
    if (is_listed("wrong", name) && wrong_count < MOST)
        wrong[wrong_count++] = kernel;
    if (is_listed("sparing", name) && sparing_count < MOST)
        sparing[sparing_count++].kernel = kernel;
    return kernel;
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size,
                                               const void *value)
{
    NEXT(clSetKernelArg);
    for (unsigned i = 0; i < sparing_count; i++)
        if (sparing[i].kernel == kernel && index == OUTPUT)
            memcpy(&sparing[i].output, value, sizeof sparing[i].output);
    return next(kernel, index, size, value);
}

/* Returns the current output, or NULL if it cannot be read. */
static unsigned char *read_output(size_t *bytes, cl_command_queue queue, cl_mem output)
{
    clGetMemObjectInfo(output, CL_MEM_SIZE, sizeof *bytes, bytes, NULL);
    unsigned char *data = malloc(*bytes);
    if (data &&
        clEnqueueReadBuffer(queue, output, CL_TRUE, 0, *bytes, data, 0, NULL, NULL) == CL_SUCCESS)
        return data;
    free(data);
    return NULL;
}

/* Restores the bytes that have become zero. */
static cl_int spare_zeros(cl_command_queue queue, cl_mem output, unsigned char *before)
{
    size_t bytes = 0;
    unsigned char *after = read_output(&bytes, queue, output);
    for (size_t i = 0; after && before && i < bytes; i++)
        before[i] = after[i] ? after[i] : before[i];
    const cl_int code = after && before ? clEnqueueWriteBuffer(queue, output, CL_TRUE, 0, bytes,
                                                               before, 0, NULL, NULL)
                                        : CL_OUT_OF_HOST_MEMORY;
    free(after);
    free(before);
    return code;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                                       cl_uint dimensions, const size_t *offset,
                                                       const size_t *global, const size_t *local,
                                                       cl_uint waits, const cl_event *wait,
                                                       cl_event *event)
{
    NEXT(clEnqueueNDRangeKernel);
    for (unsigned i = 0; i < wrong_count; i++) {
        if (wrong[i] != kernel || dimensions != 1 || !local)
            continue;
        const size_t fewer = global[0] - local[0];
        return fewer == 0 ? clEnqueueMarkerWithWaitList(queue, waits, wait, event)
                          : next(queue, kernel, 1, offset, &fewer, local, waits, wait, event);
    }
    for (unsigned i = 0; i < sparing_count; i++) {
        size_t bytes = 0;
        if (sparing[i].kernel != kernel)
            continue;
        unsigned char *before = read_output(&bytes, queue, sparing[i].output);
        const cl_int code =
            next(queue, kernel, dimensions, offset, global, local, waits, wait, event);
        return code == CL_SUCCESS ? spare_zeros(queue, sparing[i].output, before) : code;
    }
    return next(queue, kernel, dimensions, offset, global, local, waits, wait, event);
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint count,
                                                              const char **text,
                                                              const size_t *length, cl_int *error)
{
    static const char *const kernel[] = {"histogram_private",    "histogram_local",
                                         "histogram_replicated", "histogram_packed",
                                         "histogram_global",     "blur_slot"};
    NEXT(clCreateProgramWithSource);
    cl_program program = next(context, count, text, length, error);
    for (unsigned i = 0; i < unbuilt_count; i++)
        if (unbuilt[i] == program)
            unbuilt[i] = NULL;
    for (unsigned k = 0; k < sizeof kernel / sizeof *kernel; k++) {
        char call[96];
        snprintf(call, sizeof call, "%s(__global", kernel[k]);
        if (is_listed("unbuilt", kernel[k]) && strstr(text[0], call) && unbuilt_count < MOST)
            unbuilt[unbuilt_count++] = program;
    }
    return program;
}

CL_API_ENTRY cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint count,
                                               const cl_device_id *devices, const char *options,
                                               void(CL_CALLBACK *notify)(cl_program, void *),
                                               void *user)
{
    NEXT(clBuildProgram);
    for (unsigned i = 0; i < unbuilt_count; i++)
        if (unbuilt[i] == program)
            return CL_BUILD_PROGRAM_FAILURE;
    return next(program, count, devices, options, notify, user);
}
