/* ocl.h: clpipe's interface to OpenCL: devices, contexts, queues, programs, and one wrapper for
 * each enqueue, so that errors have names, events are traced and waiting does not spin.
 *
 * Requires OpenCL 1.2. Contexts may be used from several threads; a queue belongs to one thread at
 * a time.
 */
#ifndef CLPIPE_OCL_OCL_H
#define CLPIPE_OCL_OCL_H

#include "base/error.h"
#include "base/trace.h"
#include "ocl/ocl_loader.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- errors ---------------------------------------------------------------------------------- */

/* Fills *err (STATUS_FAILED, CAUSE_OPENCL) with a formatted sentence. */
enum status ocl_error(struct error *err, cl_int code, const char *call, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* "CL_OUT_OF_RESOURCES" for -5; static or thread-local. */
const char *ocl_error_name(cl_int code);

/* --- devices --------------------------------------------------------------------------------- */

struct ocl_device {
    /* As in `clpipe devices`: platforms in ICD order, devices in the order of their platform. */
    unsigned index;
    cl_platform_id platform_id;
    cl_device_id id;
    cl_device_type type;
    char platform[128], platform_version[128], name[128], vendor[128], version[128], driver[128];
    bool usable;
    char reason[160];                                    /* why it is not usable */
    unsigned compute_units, clock_mhz, memory_alignment; /* alignment in bytes */
    uint64_t global_memory, max_allocation, local_memory, max_constant;
    size_t max_work_group, max_work_item[3];
    bool local_is_dedicated; /* CL_LOCAL: real on-chip memory */
    bool unified_memory;     /* shares memory with the host: slots are mapped, not copied */
    bool non_uniform_groups; /* by capability, not by version */
    bool subgroups, fp64, int64_atomics, out_of_order, images;
    unsigned pocl_major;     /* the major version of PoCL; 0: another driver */
    bool nvidia;             /* takes inline PTX */
    unsigned nvidia_major;   /* major compute capability; 0: unknown */
    unsigned opencl_c_major; /* highest OpenCL C version: 1, 2 or 3 */
    bool opencl_c_2;         /* false if a device of OpenCL 3.0 reports no OpenCL C 2.0 */
};

struct ocl_devices {
    struct ocl_device *device;
    unsigned count;
};

/* Sets environment variables for runtimes, unless the user has set them: the number of threads of
 * CPU runtimes (PoCL), and a directory that PoCL can compile in if HOME cannot be used. Call before
 * other threads start. */
void ocl_prepare(unsigned host_threads);

/* Lists every device of every platform. Without any platform it succeeds with count 0. Calls
 * ocl_prepare(host_threads) first if that has not been done, so this must be the process's first
 * OpenCL call. */
enum status ocl_devices_open(struct ocl_devices *out, unsigned host_threads, struct error *err);
void ocl_devices_close(struct ocl_devices *devices);

/* "cpu", "gpu", "accelerator", "custom". */
const char *ocl_device_type_name(cl_device_type type);

/* Chooses by --device: NULL (the best single usable device: GPU, accelerator, CPU, a graphics
 * driver's software renderer last; more compute units first), "cpu", "gpu", "all" (all usable, the
 * best one first), a number or several ("0,2"), or part of a name (case-insensitive; the best of
 * several). Writes up to `max` indices into devices->device. STATUS_FAILED if none matches; the
 * error lists the devices and why they were skipped. */
enum status ocl_devices_select(unsigned *chosen, unsigned *count, unsigned max,
                               const struct ocl_devices *devices, const char *selector,
                               struct error *err);

/* The devices of a job; the arrays belong to others. */
struct ocl_selection {
    const struct ocl_devices *devices;
    const unsigned *chosen; /* indices into devices, best first */
    unsigned count;
    struct trace *trace; /* may be NULL */
    struct ocl_context
        *context; /* of the first device, opened early by an ingest; NULL: not yet, or taken over */
};

/* --- contexts and queues --------------------------------------------------------------------- */

struct ocl_context;
struct ocl_queue;

/* A context on one device (copied). trace may be NULL and must outlive the context. */
enum status ocl_context_open(struct ocl_context **out, const struct ocl_device *device,
                             struct trace *trace, struct error *err);
void ocl_context_close(struct ocl_context **context);
const struct ocl_device *ocl_context_device(const struct ocl_context *context);
cl_context ocl_context_handle(const struct ocl_context *context);

/* An in-order queue with profiling; `track` is its name in traces and errors. */
enum status ocl_queue_open(struct ocl_queue **out, struct ocl_context *context, const char *track,
                           struct error *err);
void ocl_queue_close(struct ocl_queue **queue); /* finishes it first */

/* --- memory ---------------------------------------------------------------------------------- */

/* clCreateBuffer; STATUS_FAILED names the size, the device's limit and `what`. */
enum status ocl_buffer(cl_mem *out, struct ocl_context *context, cl_mem_flags flags, size_t bytes,
                       void *host, const char *what, struct error *err);
/* clCreateSubBuffer: a part of a buffer, with the same flags; offset is a multiple of the device's
 * memory_alignment. */
enum status ocl_sub_buffer(cl_mem *out, struct ocl_context *context, cl_mem buffer, size_t offset,
                           size_t bytes, const char *what, struct error *err);
/* Releases and NULLs; accepts a pointer to NULL. */
void ocl_buffer_release(cl_mem *buffer);

/* --- programs -------------------------------------------------------------------------------- */

/* The compiler option for kernels that wait for asynchronous copies. PoCL 5 and 6 lack
 * wait_group_events for events in private memory, the default before OpenCL C 3.0, and abort the
 * process. */
const char *ocl_copy_option(const struct ocl_device *device);

/* Builds kernels/NAME.cl (embedded, includes expanded) for the context's device. `prologue` (may be
 * NULL) is inserted before the source: whole lines of OpenCL C, in which #include "NAME.h" includes
 * an embedded header. `options` go to the compiler ("" for none). Results are cached on disk
 * ($CLPIPE_CACHE_DIR, else $XDG_CACHE_HOME/clpipe, else ~/.cache/clpipe; CLPIPE_NO_CACHE=1 turns it
 * off), keyed by source, options, device, driver and platform. Processes may share the cache;
 * without a usable cache builds only take longer. A failed build prints the whole build log through
 * log_message and returns STATUS_FAILED. Any thread. */
enum status ocl_program_build(cl_program *out, struct ocl_context *context, const char *name,
                              const char *prologue, const char *options, struct error *err);

/* The same without a prologue, built on the first request; it belongs to the context. Any thread:
 * different programs are built at the same time. */
enum status ocl_context_program(cl_program *out, struct ocl_context *context, const char *name,
                                const char *options, struct error *err);
/* A kernel of that program; the caller releases it. */
enum status ocl_context_kernel(cl_kernel *out, struct ocl_context *context, const char *program,
                               const char *kernel, const char *options, struct error *err);

/* The same from a source text that is not embedded (tests). */
enum status ocl_program_build_source(cl_program *out, struct ocl_context *context, const char *name,
                                     const char *source, const char *options, struct error *err);

/* Compiles the programs that are not in the cache yet, if there are several, in other processes: in
 * one process a driver's compiler may work on one program at a time. What fails is compiled when it
 * is built. Does nothing without a cache. */
void ocl_programs_compile(const struct ocl_device *device, const char *name,
                          const char *const *options, unsigned count);

/* The size of a cache entry's key: a digest in hexadecimal and a NUL. */
#define OCL_KEY 65

/* Sets the process's observer: compiling(name) is called, on the building thread, before a program
 * is compiled from source, which takes seconds on some devices; NULL removes it. Call while no
 * other thread builds. */
void ocl_program_observe(void (*compiling)(const char *name));
/* Nanoseconds in which programs were compiled from source, by one thread or several. Any thread. */
int64_t ocl_program_compiled(void);

/* The key of the program that ocl_program_build would build. */
enum status ocl_program_key(char hex[OCL_KEY], const struct ocl_device *device, const char *name,
                            const char *prologue, const char *options, struct error *err);

/* The key of a device, its driver, and the sources of all kernels whose names begin with
 * `prefix`. */
void ocl_device_key(char hex[OCL_KEY], const struct ocl_device *device, const char *prefix);

/* Whether the program of that key was proven correct; stored beside the program cache, so that it
 * is proven only once. False if there is no cache. */
bool ocl_program_is_proven(const char *key);
void ocl_program_set_proven(const char *key);

enum status ocl_kernel(cl_kernel *out, cl_program program, const char *name, struct error *err);

/* Sets arguments 0, 1, ... from (size, pointer) pairs, terminated by a size of OCL_ARGS_END.
 * OCL_ARG makes the pair of a variable, OCL_LOCAL that of local memory. */
#define OCL_ARGS_END     ((size_t)-1)
#define OCL_ARG(value)   sizeof(value), &(value)
#define OCL_LOCAL(bytes) (size_t)(bytes), (void *)NULL
enum status ocl_args(cl_kernel kernel, struct error *err, ...);

/* --- enqueues -------------------------------------------------------------------------------- */
/* `tag` (a string literal or one that outlives the queue) names the span in traces and the command
 * in errors. `event`, if not NULL, receives an event that the caller releases. Waits may name
 * events of other queues of the context, which must have been flushed. */

struct ocl_waits {
    cl_uint count;
    const cl_event *events;
};
#define OCL_NO_WAITS ((struct ocl_waits){0, NULL})

enum status ocl_enqueue_kernel(struct ocl_queue *queue, const char *tag, cl_kernel kernel,
                               cl_uint dimensions, const size_t *global, const size_t *local,
                               struct ocl_waits waits, cl_event *event, struct error *err);
enum status ocl_enqueue_write(struct ocl_queue *queue, const char *tag, cl_mem buffer,
                              bool blocking, size_t offset, size_t bytes, const void *host,
                              struct ocl_waits waits, cl_event *event, struct error *err);
enum status ocl_enqueue_read(struct ocl_queue *queue, const char *tag, cl_mem buffer, bool blocking,
                             size_t offset, size_t bytes, void *host, struct ocl_waits waits,
                             cl_event *event, struct error *err);
/* Fills with a 32-bit pattern; offset and bytes are multiples of 4. */
enum status ocl_enqueue_fill(struct ocl_queue *queue, const char *tag, cl_mem buffer,
                             uint32_t pattern, size_t offset, size_t bytes, struct ocl_waits waits,
                             cl_event *event, struct error *err);
enum status ocl_enqueue_map(void **out, struct ocl_queue *queue, const char *tag, cl_mem buffer,
                            bool blocking, cl_map_flags flags, size_t offset, size_t bytes,
                            struct ocl_waits waits, cl_event *event, struct error *err);
enum status ocl_enqueue_unmap(struct ocl_queue *queue, const char *tag, cl_mem buffer, void *mapped,
                              struct ocl_waits waits, cl_event *event, struct error *err);

enum status ocl_flush(struct ocl_queue *queue, struct error *err);

/* clFinish: for shutdown and tests only; errors are reported by the events. */
void ocl_finish(struct ocl_queue *queue);

/* Blocks until the event is complete, on NVIDIA by polling (see ocl_watch.h); flushes `queue` first. STATUS_FAILED if the event ended with a
 * negative status. */
enum status ocl_wait(struct ocl_queue *queue, cl_event event, struct error *err);

/* Calls done(status, done_context) once when the event completes (status CL_COMPLETE) or fails
 * (below zero). done() may run before this function returns, and on any thread: it may only post to
 * a queue. */
enum status ocl_on_complete(struct ocl_context *context, cl_event event,
                            void (*done)(cl_int status, void *context), void *done_context,
                            struct error *err);

/* Seconds that a completed command ran on the device; 0 if not available. */
double ocl_event_seconds(struct ocl_context *context, cl_event event);

#endif
