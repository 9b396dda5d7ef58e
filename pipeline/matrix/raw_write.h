/* raw_write.h: writes rows of one dataset from any thread and in any order.
 *
 * HDF5 has created the dataset and is asked once where it is. Contiguous rows are written directly
 * to their place in the file; chunks are deflated by the thread that brings them and passed to HDF5
 * when it is their turn, so that the file does not depend on the threads. */
#ifndef CLPIPE_MATRIX_RAW_WRITE_H
#define CLPIPE_MATRIX_RAW_WRITE_H

#define H5_USE_110_API
#include <hdf5.h>

#include "base/error.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Whose turn it is to write chunks to a file: numbers from 0, each used once. */
struct raw_turns {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t next;
    bool failed; /* nothing more is written */
};
void raw_turns_init(struct raw_turns *turns);
void raw_turns_clear(struct raw_turns *turns);
/* Wakes all threads that wait for their turn, and makes them fail. */
void raw_turns_fail(struct raw_turns *turns);

struct raw_write {
    hid_t dataset; /* the caller's */
    const char *path;
    int fd;         /* HDF5's */
    uint64_t start; /* of contiguous rows in the file */
    uint64_t rows, row_bytes;
    size_t shuffled;     /* bytes of a shuffled value; 0: no shuffle */
    uint64_t chunk_rows; /* 0: contiguous */
};

/* `dataset`, in a file of h5_driver.h, has its space allocated, or consists of chunks of whole rows
 * with deflate, possibly after shuffle; it and `path`, for messages, must outlive it. HDF5's one
 * thread. */
enum status raw_write_open(struct raw_write *out, hid_t dataset, const char *path,
                           struct error *err);

/* Writes rows [first, first + count); of chunks only whole ones, except the last of the dataset.
 * `turn`: their number among `turns`, for chunks only. STATUS_FAILED, too, if another thread has
 * failed. Thread-safe. */
enum status raw_write_rows(const struct raw_write *raw, uint64_t first, uint64_t count,
                           const void *rows, struct raw_turns *turns, uint64_t turn,
                           struct error *err);

/* Reads back contiguous rows written before. Thread-safe. */
enum status raw_write_read_back(const struct raw_write *raw, uint64_t first, uint64_t count,
                                void *rows, struct error *err);

#endif
