/* fetch.h: copies per-row results from the device to the host through pinned memory.
 *
 * A device with its own memory fills memory pinned by the driver several times as fast as any
 * other, and one thread takes longer to touch fresh pages than the device to fill them. So a buffer
 * is read in pieces into two pinned buffers in turn: while one thread reads the next piece, the
 * others process slices of the last. */
#ifndef CLPIPE_OCL_FETCH_H
#define CLPIPE_OCL_FETCH_H

#include "ocl/lane.h"

struct fetch {
    struct lane *lane;
    void *host[2]; /* pinned */
    size_t piece_bytes;
};

/* Bytes [offset, offset + bytes) of a buffer. Slices begin and end at multiples of
 * KMEANS_BLOCK_ROWS float64, except at the end of the buffer. */
struct fetch_slice {
    size_t offset, bytes;
    const void *values; /* valid until the call returns */
    uint32_t number;    /* slices with the same number are never processed concurrently */
};

/* For buffers of any size, most of them of `usual` bytes. lane_release of *held frees it. */
enum status fetch_open(struct fetch *fetch, struct lane_held **held, struct lane *lane,
                       size_t usual, struct error *err);

/* The number of slices that keeps the lane's threads busy, one of which reads. */
uint32_t fetch_takers(const struct lane *lane);

/* The number of slices that is worthwhile if `bytes` bytes are only copied. */
uint32_t fetch_copiers(const struct fetch *fetch, size_t bytes);

/* Calls `take` for slices that cover the buffer's first `bytes` bytes, in any order and on any of
 * the lane's threads; their numbers are below `slices`, which is at least 1. */
enum status fetch_slices(struct fetch *fetch, const char *tag, cl_mem buffer, size_t bytes,
                         uint32_t slices,
                         void (*take)(void *context, const struct fetch_slice *slice),
                         void *context, struct error *err);

/* The same for values on the host. */
void fetch_slices_of(struct workers *workers, const void *values, size_t bytes, uint32_t slices,
                     void (*take)(void *context, const struct fetch_slice *slice), void *context);

/* A `take` that copies the slice to its place; context: the host memory for the whole buffer. */
void fetch_copy_slice(void *context, const struct fetch_slice *slice);

/* Copies a buffer's first `bytes` bytes to the host. */
enum status fetch_copy(struct fetch *fetch, const char *tag, cl_mem buffer, size_t bytes,
                       void *host, struct error *err);

#endif
