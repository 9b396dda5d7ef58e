/* oclgrind.c: avoids false reports of uninitialised memory by Oclgrind 21.10. A library for
 * LD_PRELOAD.
 *
 * After a fill or a write from the host, Oclgrind treats the rest of the buffer, and the parent of
 * a sub-buffer, as uninitialised. This library replaces each such command by one write of the whole
 * buffer with its current contents. Reads of data that was never written are therefore no longer
 * detected in these buffers. A buffer at the address of an earlier one would inherit its state, so
 * addresses are never reused. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Writes a repeated pattern of `size` bytes to `bytes` bytes at `offset`. */
static cl_int write_whole(cl_command_queue queue, cl_mem buffer, size_t offset, size_t bytes,
                          const void *values, size_t size, cl_uint waits, const cl_event *wait,
                          cl_event *event)
{
    static __typeof__(clEnqueueWriteBuffer) *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clEnqueueWriteBuffer");
    size_t whole = 0, begin = 0;
    cl_mem parent = NULL;
    clGetMemObjectInfo(buffer, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
    if (parent) {
        clGetMemObjectInfo(buffer, CL_MEM_OFFSET, sizeof begin, &begin, NULL);
        offset += begin;
        buffer = parent;
    }
    cl_int code = clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof whole, &whole, NULL);
    if (code != CL_SUCCESS || offset > whole || bytes > whole - offset)
        return CL_INVALID_VALUE;
    char *all = malloc(whole);
    if (!all)
        return CL_OUT_OF_HOST_MEMORY;
    code = clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, whole, all, waits, wait, NULL);
    for (size_t at = 0; at < bytes; at += size)
        memcpy(all + offset + at, values, size);
    if (code == CL_SUCCESS)
        code = next(queue, buffer, CL_TRUE, 0, whole, all, 0, NULL, event);
    free(all);
    return code;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer,
                                                     cl_bool blocking, size_t offset, size_t bytes,
                                                     const void *values, cl_uint waits,
                                                     const cl_event *wait, cl_event *event)
{
    (void)blocking;
    return write_whole(queue, buffer, offset, bytes, values, bytes, waits, wait, event);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer,
                                                    const void *pattern, size_t size, size_t offset,
                                                    size_t bytes, cl_uint waits,
                                                    const cl_event *wait, cl_event *event)
{
    return write_whole(queue, buffer, offset, bytes, pattern, size, waits, wait, event);
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseMemObject(cl_mem object)
{
    return object ? CL_SUCCESS : CL_INVALID_MEM_OBJECT;
}
