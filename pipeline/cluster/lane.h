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
    bool tensor;          /* NVIDIA's tensor cores, by inline PTX (sm_80 and later), */
    bool plain_tensor;    /* or a kernel for any device in place of them, for tests */
    bool any_prune;       /* see lane_choice */
    double seconds_build; /* of programs, so far, as far as they were waited for */
    struct ahead *ahead;  /* those that are built while rows are read, or NULL */
};

/* The threads stay the caller's. */
enum status lane_open(struct lane *lane, struct ocl_context *ocl, struct workers *workers,
                      struct stop *stop, const struct lane_choice *choice, struct error *err);
void lane_close(struct lane *lane);

/* STATUS_INTERRUPTED once a stop was asked for. */
enum status lane_check_stop(const struct lane *lane, struct error *err);

/* Builds a program; the time counts as seconds_build. */
enum status lane_build(cl_program *out, struct lane *lane, const char *name, const char *options,
                       struct error *err);

/* Opens all of a table, or fails with the first that cannot be opened. Buffers are for kernels to
 * read and write, kernels are released by lane_close_kernels, both after an error, too. */
struct lane_buffer {
    cl_mem *buffer;
    size_t bytes;
};
enum status lane_open_buffers(struct lane *lane, const struct lane_buffer *wanted, size_t count,
                              const char *what, struct error *err);
struct lane_kernel {
    cl_kernel *kernel;
    cl_program program;
    const char *name;
};
enum status lane_open_kernels(const struct lane_kernel *wanted, size_t count, struct error *err);

/* Release and set NULL; NULL is accepted. */
void lane_close_kernels(cl_kernel *const *kernels, size_t count);
void lane_close_program(cl_program *program);

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

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

#endif
