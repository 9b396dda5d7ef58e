/* lane.h: one device as k-means uses it: its two queues, the host's threads, and what it can do. */
#ifndef CLPIPE_CLUSTER_LANE_H
#define CLPIPE_CLUSTER_LANE_H

#include "base/error.h"
#include "base/stop.h"
#include "cluster/workers.h"
#include "ocl/ocl.h"
#include <stdint.h>

/* What is decided by the device unless a test decides it. */
struct lane_choice {
    bool forced;
    bool tiled;      /* kernels with local tiles (GPUs) */
    bool host_exact; /* canonical evaluation on the host (no float64) */
    bool copies;     /* do not map, even if the device shares memory */
    bool tensor;     /* the float16 filter: by tensor cores, or what stands in for them */
    bool any_prune;  /* ways to prune are taken in turn, whether or not they pay */
    uint32_t ranks;  /* how many ranks the device is, RUN_RANKS at most (run.h) */
};

struct lane {
    struct ocl_context *ocl;
    const struct ocl_device *device;
    struct ocl_queue *compute, *upload;
    struct workers *workers;
    struct stop *stop; /* may be NULL */
    bool tiled, host_exact, zero_copy;
    bool tensor;                   /* NVIDIA's tensor cores, by inline PTX (sm_80 and later), */
    bool plain_tensor;             /* or a kernel for any device in place of them, for tests */
    bool any_prune;                /* see lane_choice */
    double seconds_build;          /* of programs, so far, as far as they were waited for */
    struct lane_program *programs; /* those built so far, for lane_close to release */
};

/* The threads stay the caller's. */
enum status lane_open(struct lane *lane, struct ocl_context *ocl, struct workers *workers,
                      struct stop *stop, const struct lane_choice *choice, struct error *err);
/* Releases the programs and the queues. */
void lane_close(struct lane *lane);

/* STATUS_INTERRUPTED once a stop was asked for. */
enum status lane_check_stop(const struct lane *lane, struct error *err);

/* The program of that name with those options, built when it is first asked for; it stays the
 * lane's. The time counts as seconds_build. */
enum status lane_program(cl_program *out, struct lane *lane, const char *name, const char *options,
                         struct error *err);

/* What a module has for itself: zeroed memory of the host, buffers that kernels read and write (shared:
 * and that the host maps, where zero_copy), and kernels. It lists where each goes. */
struct lane_wanted {
    void *place; /* of the pointer; NULL: the entry is left out */
    enum { LANE_HOST, LANE_BUFFER, LANE_SHARED, LANE_KERNEL } kind;
    size_t bytes;
    cl_program program;
    const char *name;
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
#define KERNEL(kernel, of, called)                                                                 \
    {                                                                                              \
        .place = &(kernel), .kind = LANE_KERNEL, .program = (of), .name = (called)                 \
    }
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Opens all of a list, or fails with the first that cannot be had; `what` is for the message.
 * *held, NULL at first, grows by them: lane_release frees all of it, after an error, too, and sets
 * the pointers NULL. The places stay where they are until then. */
struct lane_held;
enum status lane_hold(struct lane_held **held, struct lane *lane, const struct lane_wanted *wanted,
                      size_t count, const char *what, struct error *err);
void lane_release(struct lane_held **held);

/* Reads a buffer into host memory, or writes it, and waits for it. */
enum status lane_read(struct lane *lane, const char *tag, cl_mem buffer, size_t offset,
                      size_t bytes, void *host, struct error *err);
enum status lane_write(struct lane *lane, const char *tag, cl_mem buffer, size_t offset,
                       size_t bytes, const void *host, struct error *err);

/* Writes a buffer without waiting: the host memory stays as it is until a later lane_read,
 * lane_write or lane_settle has returned. */
enum status lane_send(struct lane *lane, const char *tag, cl_mem buffer, size_t offset,
                      size_t bytes, const void *host, struct error *err);

/* Waits for whatever is under way, before memory that commands may use goes. Accepts a lane that
 * was not opened. */
void lane_settle(struct lane *lane);

/* Launches over at least `items` work-items in groups of `group` (0: the runtime's choice of
 * group). */
enum status lane_launch(struct lane *lane, const char *tag, cl_kernel kernel, uint64_t items,
                        size_t group, struct error *err);

/* The same in two dimensions. local: NULL leaves the groups to the runtime. */
enum status lane_launch_2d(struct lane *lane, const char *tag, cl_kernel kernel,
                           const size_t global[2], const size_t *local, struct error *err);

/* lane_launch after ocl_args, of which OCL_ARGS_END is left out. */
#define LANE_RUN(lane, tag, kernel, items, group, err, ...)                                        \
    (ocl_args(kernel, err, __VA_ARGS__, OCL_ARGS_END) == STATUS_OK                                 \
         ? lane_launch(lane, tag, kernel, items, group, err)                                       \
         : (err)->status)

#endif
