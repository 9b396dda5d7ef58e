/* raw_write.h: writes rows of one dataset (raw.h) from any thread and in any order.
 *
 * HDF5 has created the dataset. Contiguous rows are written directly to their place in the file;
 * chunks are deflated by the thread that brings them and passed to HDF5 when it is their turn, so
 * that the file does not depend on the threads. */
#ifndef CLPIPE_MATRIX_RAW_WRITE_H
#define CLPIPE_MATRIX_RAW_WRITE_H

#include "matrix/raw.h"
#include <pthread.h>
#include <stdbool.h>

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

/* Writes rows [first, first + count) of a dataset that has its space allocated, or consists of chunks of
 * whole rows with deflate, possibly after shuffle; of chunks only whole ones, except the last of the
 * dataset. `turn`: their number among `turns`, for chunks only. STATUS_FAILED, too, if another thread
 * has failed. Thread-safe. */
enum status raw_write_rows(const struct raw *raw, uint64_t first, uint64_t count, const void *rows,
                           struct raw_turns *turns, uint64_t turn, struct error *err);

#endif
