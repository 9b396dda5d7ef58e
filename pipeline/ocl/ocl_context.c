/* ocl_context.c: contexts, queues, buffers, and one wrapper for each enqueue.
 *
 * Tracing: every command's event is watched until it completes; then its profiling timestamps
 * become a span on the queue's track. Device time is mapped to clock_now() once per context, by a
 * marker whose end lies between two host clock readings (error: half of that interval, tens of
 * microseconds).
 */
#include "ocl/ocl.h"

#include "ocl/ocl_cache.h"
#include "ocl/ocl_pocl.h"
#include "ocl/ocl_watch.h"

#include "base/clock.h"
#include "base/parse.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct program {
    struct program *next;
    pthread_mutex_t building;
    cl_program handle; /* NULL: not built */
    const char *name;
    char options[];
};

struct ocl_context {
    struct ocl_device device;
    cl_context handle;
    struct trace *trace;
    struct ocl_watch *watch; /* NULL: use the driver's callbacks */
    pthread_mutex_t lock;    /* guards what follows */
    pthread_cond_t untraced;
    unsigned traced; /* pending completion callbacks */
    bool calibrated;
    int64_t device_to_host; /* nanoseconds to add to a device timestamp */
    struct program *programs;
};

struct ocl_queue {
    struct ocl_context *context;
    cl_command_queue handle;
    char track_name[64];
    unsigned track;
};

enum status ocl_context_open(struct ocl_context **out, const struct ocl_device *device,
                             struct trace *trace, struct error *err)
{
    *out = NULL;
    struct ocl_context *context = calloc(1, sizeof *context);
    if (!context)
        return error_memory(err, sizeof *context, "an OpenCL context");
    context->device = *device;
    context->trace = trace;
    pthread_mutex_init(&context->lock, NULL);
    pthread_cond_init(&context->untraced, NULL);
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                          (cl_context_properties)device->platform_id, 0};
    cl_int code = CL_SUCCESS;
    context->handle = clCreateContext(properties, 1, &device->id, NULL, NULL, &code);
    enum status status = STATUS_OK;
    if (code != CL_SUCCESS)
        status = ocl_error(err, code, "clCreateContext", "cannot use device %s", device->name);
    else if (device->nvidia)
        status = ocl_watch_open(&context->watch, err);
    if (status != STATUS_OK)
        ocl_context_close(&context);
    *out = context;
    return status;
}

void ocl_context_close(struct ocl_context **context)
{
    if (!*context)
        return;
    pthread_mutex_lock(&(*context)->lock);
    while ((*context)->traced > 0)
        pthread_cond_wait(&(*context)->untraced, &(*context)->lock);
    pthread_mutex_unlock(&(*context)->lock);
    ocl_watch_close(&(*context)->watch);
    if ((*context)->device.pocl_major)
        ocl_cache_keep_kernels();
    for (struct program *program; (program = (*context)->programs);) {
        (*context)->programs = program->next;
        if (program->handle)
            clReleaseProgram(program->handle);
        pthread_mutex_destroy(&program->building);
        free(program);
    }
    if ((*context)->handle)
        clReleaseContext((*context)->handle);
    pthread_cond_destroy(&(*context)->untraced);
    pthread_mutex_destroy(&(*context)->lock);
    free(*context);
    *context = NULL;
}

/* The program of that name and options, which is not built yet if it is new; NULL: no memory. */
static struct program *find_program(struct ocl_context *context, const char *name,
                                    const char *options)
{
    pthread_mutex_lock(&context->lock);
    struct program *program = context->programs;
    while (program && (strcmp(program->name, name) != 0 || strcmp(program->options, options) != 0))
        program = program->next;
    if (!program && (program = malloc(sizeof *program + strlen(options) + 1))) {
        *program = (struct program){.next = context->programs, .name = name};
        strcpy(program->options, options);
        pthread_mutex_init(&program->building, NULL);
        context->programs = program;
    }
    pthread_mutex_unlock(&context->lock);
    return program;
}

enum status ocl_context_program(cl_program *out, struct ocl_context *context, const char *name,
                                const char *options, struct error *err)
{
    struct program *program = find_program(context, name, options);
    *out = NULL;
    if (!program)
        return error_memory(err, sizeof *program, "a program");
    pthread_mutex_lock(&program->building);
    const enum status status =
        program->handle ? STATUS_OK
                        : ocl_program_build(&program->handle, context, name, NULL, options, err);
    *out = program->handle;
    pthread_mutex_unlock(&program->building);
    return status;
}

enum status ocl_context_kernel(cl_kernel *out, struct ocl_context *context, const char *program,
                               const char *kernel, const char *options, struct error *err)
{
    cl_program handle;
    const enum status status = ocl_context_program(&handle, context, program, options, err);
    return status == STATUS_OK ? ocl_kernel(out, handle, kernel, err) : status;
}

const struct ocl_device *ocl_context_device(const struct ocl_context *context)
{
    return &context->device;
}

cl_context ocl_context_handle(const struct ocl_context *context)
{
    return context->handle;
}

/* The first queue measures the offset of the device's clock. */
static void calibrate(struct ocl_context *context, cl_command_queue queue)
{
    pthread_mutex_lock(&context->lock);
    bool wanted = !context->calibrated;
    context->calibrated = true;
    pthread_mutex_unlock(&context->lock);
    if (!wanted)
        return;
    cl_event marker = NULL;
    int64_t before = clock_now();
    if (clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker) != CL_SUCCESS)
        return;
    clWaitForEvents(1, &marker);
    int64_t after = clock_now();
    cl_ulong end = 0;
    if (clGetEventProfilingInfo(marker, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) ==
        CL_SUCCESS) {
        pthread_mutex_lock(&context->lock);
        context->device_to_host = before + (after - before) / 2 - (int64_t)end;
        pthread_mutex_unlock(&context->lock);
    }
    clReleaseEvent(marker);
}

enum status ocl_queue_open(struct ocl_queue **out, struct ocl_context *context, const char *track,
                           struct error *err)
{
    *out = NULL;
    struct ocl_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return error_memory(err, sizeof *queue, "a command queue");
    queue->context = context;
    snprintf(queue->track_name, sizeof queue->track_name, "%s", track);
    cl_int code = CL_SUCCESS;
    queue->handle =
        clCreateCommandQueue(context->handle, context->device.id, CL_QUEUE_PROFILING_ENABLE, &code);
    if (code != CL_SUCCESS) {
        ocl_error(err, code, "clCreateCommandQueue", "cannot create the %s queue of %s", track,
                  context->device.name);
        free(queue);
        return STATUS_FAILED;
    }
    if (ocl_pocl_counts_wrong(&context->device) &&
        ocl_pocl_add_queue(queue->handle, err) != STATUS_OK) {
        clReleaseCommandQueue(queue->handle);
        free(queue);
        return STATUS_FAILED;
    }
    if (context->trace) {
        queue->track = trace_track(context->trace, context->device.name, track);
        calibrate(context, queue->handle);
    }
    *out = queue;
    return STATUS_OK;
}

void ocl_queue_close(struct ocl_queue **queue)
{
    if (!*queue)
        return;
    if ((*queue)->handle) {
        clFinish((*queue)->handle);
        if (ocl_pocl_counts_wrong(&(*queue)->context->device))
            ocl_pocl_remove_queue((*queue)->handle);
        clReleaseCommandQueue((*queue)->handle);
    }
    free(*queue);
    *queue = NULL;
}

enum status ocl_buffer(cl_mem *out, struct ocl_context *context, cl_mem_flags flags, size_t bytes,
                       void *host, const char *what, struct error *err)
{
    cl_int code = CL_SUCCESS;
    *out = clCreateBuffer(context->handle, flags, bytes, host, &code);
    if (code == CL_SUCCESS)
        return STATUS_OK;
    *out = NULL;
    ocl_error(err, code, "clCreateBuffer",
              "cannot allocate %s for %s on %s (largest allocation %s)", BYTES_TEXT(bytes), what,
              context->device.name, BYTES_TEXT(context->device.max_allocation));
    return error_remedy(err, REMEDY_DEVICE_MEMORY);
}

enum status ocl_sub_buffer(cl_mem *out, struct ocl_context *context, cl_mem buffer, size_t offset,
                           size_t bytes, const char *what, struct error *err)
{
    const cl_buffer_region region = {offset, bytes};
    cl_int code = CL_SUCCESS;
    *out = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (code == CL_SUCCESS)
        return STATUS_OK;
    *out = NULL;
    return ocl_error(err, code, "clCreateSubBuffer", "cannot divide the buffer for %s on %s", what,
                     context->device.name);
}

void ocl_buffer_release(cl_mem *buffer)
{
    if (*buffer)
        clReleaseMemObject(*buffer);
    *buffer = NULL;
}

/* When a completed command was queued, submitted to the device, started and ended, in clock_now()
 * nanoseconds; false if not available. */
struct times {
    int64_t queued, submitted, started, ended;
};

static bool event_times(struct times *times, struct ocl_context *context, cl_event event)
{
    static const cl_profiling_info what[] = {CL_PROFILING_COMMAND_QUEUED,
                                             CL_PROFILING_COMMAND_SUBMIT,
                                             CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    int64_t *const to[] = {&times->queued, &times->submitted, &times->started, &times->ended};
    pthread_mutex_lock(&context->lock);
    const int64_t shift = context->device_to_host;
    pthread_mutex_unlock(&context->lock);
    for (int i = 0; i < 4; i++) {
        cl_ulong at = 0;
        if (clGetEventProfilingInfo(event, what[i], sizeof at, &at, NULL) != CL_SUCCESS)
            return false;
        *to[i] = (int64_t)at + shift;
    }
    return times->ended >= times->started;
}

double ocl_event_seconds(struct ocl_context *context, cl_event event)
{
    struct times times;
    return event_times(&times, context, event) ? (double)(times.ended - times.started) * 1e-9 : 0;
}

/* --- completion ------------------------------------------------------------------------------ */

struct completion {
    void (*done)(cl_int status, void *context);
    void *context;
};

static void CL_CALLBACK complete(cl_event event, cl_int status, void *user)
{
    (void)event;
    struct completion completion = *(struct completion *)user;
    free(user);
    completion.done(status, completion.context);
}

enum status ocl_on_complete(struct ocl_context *context, cl_event event,
                            void (*done)(cl_int status, void *context), void *done_context,
                            struct error *err)
{
    if (context->watch)
        return ocl_watch_add(context->watch, event, done, done_context, err);
    /* Oclgrind does not call back for an event that is already complete. */
    const cl_int state = ocl_watch_state(event);
    if (state <= CL_COMPLETE) {
        done(state, done_context);
        return STATUS_OK;
    }
    struct completion *completion = malloc(sizeof *completion);
    if (!completion)
        return error_memory(err, sizeof *completion, "an event callback");
    *completion = (struct completion){done, done_context};
    cl_int code = clSetEventCallback(event, CL_COMPLETE, complete, completion);
    if (code != CL_SUCCESS) {
        free(completion);
        return ocl_error(err, code, "clSetEventCallback", "cannot watch a command");
    }
    return STATUS_OK;
}

struct traced {
    struct ocl_context *context;
    cl_event event;
    unsigned track;
    const char *tag;
};

static void count_traced(struct ocl_context *context, int change)
{
    pthread_mutex_lock(&context->lock);
    context->traced += (unsigned)change;
    if (context->traced == 0)
        pthread_cond_signal(&context->untraced);
    pthread_mutex_unlock(&context->lock);
}

static void trace_completed(cl_int status, void *context)
{
    struct traced *traced = context;
    struct times times;
    if (status == CL_COMPLETE && event_times(&times, traced->context, traced->event))
        trace_command(traced->context->trace, traced->track, traced->tag, times.queued,
                      times.submitted, times.started, times.ended);
    clReleaseEvent(traced->event);
    count_traced(traced->context, -1);
    free(traced);
}

/* Adds a span to the trace, unless the event cannot be watched. */
static void trace_event(struct ocl_queue *queue, const char *tag, cl_event event)
{
    struct traced *traced = malloc(sizeof *traced);
    if (!traced)
        return;
    *traced = (struct traced){queue->context, event, queue->track, tag};
    clRetainEvent(event);
    count_traced(queue->context, 1);
    if (ocl_on_complete(queue->context, event, trace_completed, traced, NULL) != STATUS_OK) {
        count_traced(queue->context, -1);
        clReleaseEvent(event);
        free(traced);
    }
}

/* Ends every enqueue: names the error, traces the event and passes it on. `own` is an event that
 * this file requested. */
static enum status enqueued(struct ocl_queue *queue, const char *tag, const char *call, cl_int code,
                            cl_event own, cl_event *event, struct error *err)
{
    if (code != CL_SUCCESS)
        return ocl_error(err, code, call, "device %s refused '%s'", queue->context->device.name,
                         tag);
    if (own && queue->context->trace)
        trace_event(queue, tag, own);
    if (event)
        *event = own;
    else if (own)
        clReleaseEvent(own);
    return STATUS_OK;
}

/* Requests an event if the caller or the trace needs one. */
#define OWN_EVENT(queue, event, own) ((event) || (queue)->context->trace ? &(own) : NULL)

enum status ocl_enqueue_kernel(struct ocl_queue *queue, const char *tag, cl_kernel kernel,
                               cl_uint dimensions, const size_t *global, const size_t *local,
                               struct ocl_waits waits, cl_event *event, struct error *err)
{
    cl_event own = NULL;
    cl_event *to = OWN_EVENT(queue, event, own);
    cl_int code = ocl_pocl_counts_wrong(&queue->context->device)
                      ? ocl_pocl_launch(queue->handle, kernel, dimensions, global, local, waits, to)
                      : clEnqueueNDRangeKernel(queue->handle, kernel, dimensions, NULL, global,
                                               local, waits.count, waits.events, to);
    return enqueued(queue, tag, "clEnqueueNDRangeKernel", code, own, event, err);
}

enum status ocl_enqueue_write(struct ocl_queue *queue, const char *tag, cl_mem buffer,
                              bool blocking, size_t offset, size_t bytes, const void *host,
                              struct ocl_waits waits, cl_event *event, struct error *err)
{
    cl_event own = NULL;
    cl_int code =
        clEnqueueWriteBuffer(queue->handle, buffer, blocking ? CL_TRUE : CL_FALSE, offset, bytes,
                             host, waits.count, waits.events, OWN_EVENT(queue, event, own));
    return enqueued(queue, tag, "clEnqueueWriteBuffer", code, own, event, err);
}

enum status ocl_enqueue_read(struct ocl_queue *queue, const char *tag, cl_mem buffer, bool blocking,
                             size_t offset, size_t bytes, void *host, struct ocl_waits waits,
                             cl_event *event, struct error *err)
{
    cl_event own = NULL;
    cl_int code =
        clEnqueueReadBuffer(queue->handle, buffer, blocking ? CL_TRUE : CL_FALSE, offset, bytes,
                            host, waits.count, waits.events, OWN_EVENT(queue, event, own));
    return enqueued(queue, tag, "clEnqueueReadBuffer", code, own, event, err);
}

enum status ocl_enqueue_fill(struct ocl_queue *queue, const char *tag, cl_mem buffer,
                             uint32_t pattern, size_t offset, size_t bytes, struct ocl_waits waits,
                             cl_event *event, struct error *err)
{
    cl_event own = NULL;
    cl_int code =
        clEnqueueFillBuffer(queue->handle, buffer, &pattern, sizeof pattern, offset, bytes,
                            waits.count, waits.events, OWN_EVENT(queue, event, own));
    return enqueued(queue, tag, "clEnqueueFillBuffer", code, own, event, err);
}

enum status ocl_enqueue_map(void **out, struct ocl_queue *queue, const char *tag, cl_mem buffer,
                            bool blocking, cl_map_flags flags, size_t offset, size_t bytes,
                            struct ocl_waits waits, cl_event *event, struct error *err)
{
    cl_event own = NULL;
    cl_int code = CL_SUCCESS;
    *out =
        clEnqueueMapBuffer(queue->handle, buffer, blocking ? CL_TRUE : CL_FALSE, flags, offset,
                           bytes, waits.count, waits.events, OWN_EVENT(queue, event, own), &code);
    return enqueued(queue, tag, "clEnqueueMapBuffer", code, own, event, err);
}

enum status ocl_enqueue_unmap(struct ocl_queue *queue, const char *tag, cl_mem buffer, void *mapped,
                              struct ocl_waits waits, cl_event *event, struct error *err)
{
    cl_event own = NULL;
    cl_int code = clEnqueueUnmapMemObject(queue->handle, buffer, mapped, waits.count, waits.events,
                                          OWN_EVENT(queue, event, own));
    return enqueued(queue, tag, "clEnqueueUnmapMemObject", code, own, event, err);
}

enum status ocl_flush(struct ocl_queue *queue, struct error *err)
{
    cl_int code = clFlush(queue->handle);
    if (code != CL_SUCCESS)
        return ocl_error(err, code, "clFlush", "device %s failed", queue->context->device.name);
    return STATUS_OK;
}

void ocl_finish(struct ocl_queue *queue)
{
    clFinish(queue->handle);
}

/* Shorter waits are not worth a sleep, which ends 50 us late or more. */
#define SPIN_NS 1000000

/* Polls the event without a pause at first, then at intervals that grow with the time waited: short
 * commands are not delayed, long ones do not occupy a core. Returns the event's final state. */
static cl_int wait_by_looking(cl_event event)
{
    const int64_t start = clock_now();
    cl_int state;
    while ((state = ocl_watch_state(event)) > CL_COMPLETE) {
        const int64_t waited = clock_now() - start;
        const int64_t interval = waited / 32 < WATCH_NS ? waited / 32 : WATCH_NS;
        if (waited > SPIN_NS)
            nanosleep(&(struct timespec){.tv_nsec = (long)interval}, NULL);
    }
    return state;
}

enum status ocl_wait(struct ocl_queue *queue, cl_event event, struct error *err)
{
    const enum status flushed = ocl_flush(queue, err);
    if (!queue->context->watch || flushed != STATUS_OK)
        clWaitForEvents(1, &event); /* NVIDIA's driver spins here; an error shows in the state */
    const cl_int state = wait_by_looking(event);
    if (state < 0)
        return ocl_error(err, state, "event",
                         "a command on the %s queue of %s failed; the device may be lost or out of "
                         "memory",
                         queue->track_name, queue->context->device.name);
    return flushed;
}
