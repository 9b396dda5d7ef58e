/* fetch.h: what a device has of each row, brought to the host through pinned memory.
 *
 * A device with memory of its own fills memory that the driver has pinned several times as fast as
 * any other, and fresh pages take longer to touch, by one thread, than to fill. So a buffer comes
 * in pieces, to two pinned ones in turn: while one thread reads the next, the others take slices
 * out of the last. */
#ifndef CLPIPE_CLUSTER_FETCH_H
#define CLPIPE_CLUSTER_FETCH_H

#include "cluster/lane.h"

struct fetch {
    struct lane *lane;
    cl_mem pieces[2];
    void *host[2]; /* the same, mapped for good */
    size_t piece_bytes;
};

/* Bytes [offset, offset + bytes) of a buffer. Slices begin at multiples of what KMEANS_BLOCK_ROWS
 * float64 take, and end there, too, but for the buffer's end. */
struct fetch_slice {
    size_t offset, bytes;
    const void *values; /* until the call returns */
    uint32_t number;    /* two slices of one number are never taken at the same time */
};

/* For buffers of any size, most of them `usual` bytes. To be closed after an error, too. */
enum status fetch_open(struct fetch *fetch, struct lane *lane, size_t usual, struct error *err);
void fetch_close(struct fetch *fetch);

/* How many slices keep the lane's threads busy, one of which reads. */
uint32_t fetch_takers(const struct lane *lane);

/* How many slices are worth their threads where `bytes` bytes are only copied. */
uint32_t fetch_copiers(const struct fetch *fetch, size_t bytes);

/* Calls take for slices that make up the buffer's first `bytes` bytes, in any order and on any of
 * the lane's threads; their numbers are below `slices`, which is at least 1. */
enum status fetch_slices(struct fetch *fetch, const char *tag, cl_mem buffer, size_t bytes,
                         uint32_t slices,
                         void (*take)(void *context, const struct fetch_slice *slice),
                         void *context, struct error *err);

/* The same for what the host has. */
void fetch_slices_of(struct workers *workers, const void *values, size_t bytes, uint32_t slices,
                     void (*take)(void *context, const struct fetch_slice *slice), void *context);

/* A take that copies the slice to its place; context: the host's memory for all. */
void fetch_copy_slice(void *context, const struct fetch_slice *slice);

/* Copies a buffer's first `bytes` bytes to the host. */
enum status fetch_copy(struct fetch *fetch, const char *tag, cl_mem buffer, size_t bytes,
                       void *host, struct error *err);

#endif
