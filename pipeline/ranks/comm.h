/* comm.h: exchange of data between the ranks of one clustering.
 *
 * A rank is a device and a range of rows. All ranks run the same code and call these functions in
 * the same order, so whatever is computed from their results is the same on all of them. With one
 * rank nothing is exchanged and no call waits. Several devices of a process are ranks in threads
 * (comm_threads.h); processes started by an MPI launcher use another implementation
 * (comm_processes.h).
 *
 * Sums of integers do not depend on the order. Sums of float64 do: they are folded block by block
 * of KMEANS_BLOCK_ROWS rows, in row order, and ranges begin at whole blocks. The running sum passes
 * from rank to rank (comm_receive, comm_send) and so has the bits that one rank would compute.
 *
 * If one rank fails, the call fails on all ranks, and *err has that rank's error. Each rank's calls
 * come from one thread. */
#ifndef CLPIPE_RANKS_COMM_H
#define CLPIPE_RANKS_COMM_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct comm_ops;

/* First member of an implementation's state for a rank. */
struct comm {
    uint32_t rank, size;
    const struct comm_ops *ops; /* unused if size is 1 */
    bool apart;                 /* ranks are processes, each with its own memory and threads */
};

/* The operations of an implementation for two or more ranks; see the functions below. */
struct comm_ops {
    enum status (*sum)(struct comm *comm, int64_t *sums, const int64_t *values, size_t count,
                       struct error *err);
    enum status (*gather)(struct comm *comm, void *all, const size_t *ends, struct error *err);
    enum status (*broadcast)(struct comm *comm, void *data, size_t bytes, uint32_t root,
                             struct error *err);
    enum status (*collect)(struct comm *comm, void *all, const void *own, const size_t *ends,
                           struct error *err);
    enum status (*send)(struct comm *comm, const void *data, size_t bytes, struct error *err);
    enum status (*receive)(struct comm *comm, void *data, size_t bytes, struct error *err);
    void (*fail)(struct comm *comm, const struct error *err);
    /* NULL if ranks do not share memory. */
    enum status (*visit)(struct comm *comm, const void *own,
                         enum status (*take)(void *context, const void *const *all,
                                             struct error *err),
                         void *context, struct error *err);
};

/* sums[i] becomes the sum of values[i] over all ranks; both may be the same array. */
enum status comm_sum(struct comm *comm, int64_t *sums, const int64_t *values, size_t count,
                     struct error *err);

/* Rank r contributes the bytes of `all` from ends[r - 1] (rank 0: from 0) to ends[r]; every rank
 * gets all of them. comm_gather_each: each rank contributes `bytes` bytes. */
enum status comm_gather(struct comm *comm, void *all, const size_t *ends, struct error *err);
enum status comm_gather_each(struct comm *comm, void *all, size_t bytes, struct error *err);

/* The same to rank 0 only: its `all` gets each rank's `own`; other ranks' `all` is ignored. Copies
 * nothing if `own` is already its place in `all`. */
enum status comm_collect(struct comm *comm, void *all, const void *own, const size_t *ends,
                         struct error *err);

/* Copies root's data to all ranks. */
enum status comm_broadcast(struct comm *comm, void *data, size_t bytes, uint32_t root,
                           struct error *err);

/* Receive from the previous rank (rank 0 keeps `data`); send to the next (the last does nothing).
 */
enum status comm_receive(struct comm *comm, void *data, size_t bytes, struct error *err);
enum status comm_send(struct comm *comm, const void *data, size_t bytes, struct error *err);

/* Sums that depend on the order of rows: sums[] starts with rank 0's values; `add` adds the rank's
 * own part to those of all ranks before it. All ranks get the final sums, and *before (may be NULL;
 * for a single sum) the value to which the rank's own part was added. */
enum status comm_fold(struct comm *comm, double *sums, size_t count, double *before,
                      void (*add)(void *context, double *sums), void *context, struct error *err);

/* The same for one sum starting at 0, adding the rank's `count` values one by one. */
enum status comm_fold_values(struct comm *comm, double *sum, double *before, const double *values,
                             uint64_t count, struct error *err);

/* For ranks that share memory: `take` gets every rank's `own`, readable until it returns. */
bool comm_can_visit(const struct comm *comm);
enum status comm_visit(struct comm *comm, const void *own,
                       enum status (*take)(void *context, const void *const *all,
                                           struct error *err),
                       void *context, struct error *err);

/* Fails all current and future calls of all ranks with this rank's error. */
void comm_fail(struct comm *comm, const struct error *err);

/* The range [*begin, *end) of `count` items that a rank takes when work is divided. */
void comm_part(uint64_t *begin, uint64_t *end, const struct comm *comm, uint32_t rank,
               uint64_t count);

/* comm_gather for `count` items of `each` bytes, divided by comm_part. */
enum status comm_gather_parts(struct comm *comm, void *all, uint64_t count, size_t each,
                              struct error *err);

#endif
