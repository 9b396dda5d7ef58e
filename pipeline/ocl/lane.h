/* lane.h: one device as used by k-means: its two queues, the host threads, and its capabilities. */
#ifndef CLPIPE_OCL_LANE_H
#define CLPIPE_OCL_LANE_H

#include "base/error.h"
#include "base/stop.h"
#include "base/workers.h"
#include "ocl/ocl.h"
#include <stdint.h>

/* Choices that normally depend on the device, and that tests can force. */
struct lane_choice {
    bool forced;
    bool tiled;      /* kernels with local tiles (GPUs) */
    bool host_exact; /* canonical distances on the host (as without float64) */
    bool copies;     /* do not map buffers even if the device shares memory */
    bool tensor;     /* the float16 filter: tensor cores, or their stand-in */
    bool any_prune;  /* use all ways to prune in turn, worthwhile or not */
    uint32_t ranks;  /* ranks on the device */
};

struct lane {
    struct ocl_context *ocl;
    const struct ocl_device *device;
    struct ocl_queue *compute, *upload;
    struct workers *workers;
    struct stop *stop; /* may be NULL */
    bool tiled, host_exact, zero_copy;
    bool tensor;          /* NVIDIA's tensor cores (inline PTX, sm_80 and later), */
    bool plain_tensor;    /* or a kernel for any device in their place, for tests */
    bool any_prune;       /* see lane_choice */
    double seconds_build; /* spent waiting for programs to build, so far */
};

/* The threads remain the caller's. */
enum status lane_open(struct lane *lane, struct ocl_context *ocl, struct workers *workers,
                      struct stop *stop, const struct lane_choice *choice, struct error *err);
/* Releases the queues. */
void lane_close(struct lane *lane);

/* STATUS_INTERRUPTED if a stop was requested. */
enum status lane_check_stop(const struct lane *lane, struct error *err);

/* A module's resources: zeroed host memory, buffers that kernels read and write (shared: which the
 * host also maps if zero_copy), parts of buffers, kernels of ocl_context_program, whose time counts as
 * seconds_build, and host memory pinned by the driver, which stays mapped. The module lists where each
 * pointer goes. */
struct lane_wanted {
    void *place; /* of the pointer */
    enum { LANE_HOST, LANE_BUFFER, LANE_SHARED, LANE_PART, LANE_KERNEL, LANE_PINNED } kind;
    size_t bytes, offset;
    cl_mem whole;                         /* of a part, which begins at the offset */
    const char *program, *options, *name; /* of a kernel */
};
#define HOST(pointer, count)                                                                       \
    {                                                                                              \
        .place = &(pointer), .kind = LANE_HOST, .bytes = (size_t)(count) * sizeof *(pointer)       \
    }
#define BUFFER(buffer, size)                                                                       \
    {                                                                                              \
        .place = &(buffer), .kind = LANE_BUFFER, .bytes = (size)                                   \
    }
#define SHARED(buffer, size)                                                                       \
    {                                                                                              \
        .place = &(buffer), .kind = LANE_SHARED, .bytes = (size)                                   \
    }
#define PART(buffer, of, begin, size)                                                              \
    {                                                                                              \
        .place = &(buffer), .kind = LANE_PART, .whole = (of), .offset = (begin), .bytes = (size)   \
    }
#define PINNED(pointer, size)                                                                      \
    {                                                                                              \
        .place = &(pointer), .kind = LANE_PINNED, .bytes = (size)                                  \
    }
#define KERNEL(kernel, of, with, called)                                                           \
    {                                                                                              \
        .place = &(kernel), .kind = LANE_KERNEL, .program = (of), .options = (with),               \
        .name = (called)                                                                           \
    }
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Allocates all entries of a list, or fails with the first that cannot be allocated; `what` is for
 * the message. Adds them to *held, initially NULL: lane_release frees everything in it, the latest
 * first, even after an error, and sets the pointers to NULL, so the places must not move until then.
 * The lane must still be open. */
struct lane_held;
enum status lane_hold(struct lane_held **held, struct lane *lane, const struct lane_wanted *wanted,
                      size_t count, const char *what, struct error *err);
void lane_release(struct lane_held **held);

/* Reads a buffer into host memory or writes it, and waits. */
enum status lane_read(struct lane *lane, const char *tag, cl_mem buffer, size_t offset,
                      size_t bytes, void *host, struct error *err);
enum status lane_write(struct lane *lane, const char *tag, cl_mem buffer, size_t offset,
                       size_t bytes, const void *host, struct error *err);

/* Writes a buffer without waiting: the host memory must not change until a later lane_read,
 * lane_write or lane_settle has returned. */
enum status lane_send(struct lane *lane, const char *tag, cl_mem buffer, size_t offset,
                      size_t bytes, const void *host, struct error *err);

/* Fills with a 32-bit pattern; offset and bytes are multiples of 4. */
enum status lane_fill(struct lane *lane, const char *tag, cl_mem buffer, uint32_t pattern,
                      size_t offset, size_t bytes, struct error *err);

/* Maps a buffer's first bytes, and waits; unmaps them after what returned `status`, which it returns
 * if that was an error. mapped: may be NULL. */
enum status lane_map(void **mapped, struct lane *lane, const char *tag, cl_mem buffer,
                     cl_map_flags flags, size_t bytes, struct error *err);
enum status lane_unmap(struct lane *lane, const char *tag, cl_mem buffer, void *mapped,
                       enum status status, struct error *err);

/* Waits for pending commands before the memory they use is freed. Accepts an unopened lane. */
void lane_settle(struct lane *lane);

/* Launches at least `items` work-items in groups of `group` (0: the runtime chooses). */
enum status lane_launch(struct lane *lane, const char *tag, cl_kernel kernel, uint64_t items,
                        size_t group, struct error *err);

/* The same in two dimensions. local: NULL lets the runtime choose. */
enum status lane_launch_2d(struct lane *lane, const char *tag, cl_kernel kernel,
                           const size_t global[2], const size_t *local, struct error *err);

/* These after ocl_args; they add OCL_ARGS_END. */
#define LANE_RUN(lane, tag, kernel, items, group, err, ...)                                        \
    (ocl_args(kernel, err, __VA_ARGS__, OCL_ARGS_END) == STATUS_OK                                 \
         ? lane_launch(lane, tag, kernel, items, group, err)                                       \
         : (err)->status)
#define LANE_RUN_2D(lane, tag, kernel, global, local, err, ...)                                    \
    (ocl_args(kernel, err, __VA_ARGS__, OCL_ARGS_END) == STATUS_OK                                 \
         ? lane_launch_2d(lane, tag, kernel, global, local, err)                                   \
         : (err)->status)

#endif
