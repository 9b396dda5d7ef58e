/* comm.h: how the ranks of one clustering exchange what each has of its rows.
 *
 * A rank is a device and a range of rows. All ranks run the same code and call these functions in
 * the same order, so every value that is computed from what they return is the same on all of them.
 * With one rank nothing is exchanged and no call waits. Several devices of a process are ranks in
 * threads (comm_threads.h); processes that a launcher of MPI has started are another table
 * (comm_processes.h).
 *
 * Sums of integers do not depend on the order. A sum of float64 does: it is folded block after
 * block of KMEANS_BLOCK_ROWS rows, in the order of the rows, and ranges begin at whole blocks. So
 * the running sum goes from rank to rank (comm_receive, comm_send) and has the bits of one rank.
 *
 * A call fails on all ranks if one of them has failed; *err is then that rank's error. */
#ifndef CLPIPE_CLUSTER_COMM_H
#define CLPIPE_CLUSTER_COMM_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct comm_ops;

/* The first member of what an implementation has for a rank. */
struct comm {
    uint32_t rank, size;
    const struct comm_ops *ops; /* not looked at where size is 1 */
    bool apart;                 /* ranks are processes: each has memory and threads of its own */
};

/* What an implementation provides for two ranks or more; see the functions below. */
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
    /* NULL where ranks do not share their memory. */
    enum status (*visit)(struct comm *comm, const void *own,
                         enum status (*take)(void *context, const void *const *all,
                                             struct error *err),
                         void *context, struct error *err);
};

/* sums[i] becomes the sum of all ranks' values[i]; both may be the same array. */
enum status comm_sum(struct comm *comm, int64_t *sums, const int64_t *values, size_t count,
                     struct error *err);

/* Rank r has the bytes of `all` from ends[r - 1] (rank 0: from 0) to ends[r]; all ranks get all of
 * them. comm_gather_each: each rank has `bytes` bytes. */
enum status comm_gather(struct comm *comm, void *all, const size_t *ends, struct error *err);
enum status comm_gather_each(struct comm *comm, void *all, size_t bytes, struct error *err);

/* The same for rank 0 alone: its `all` gets what each rank has as `own`. Other ranks' `all` is not
 * looked at. Where `own` is its place in `all` already nothing is copied. */
enum status comm_collect(struct comm *comm, void *all, const void *own, const size_t *ends,
                         struct error *err);

/* All ranks get what `root` has. */
enum status comm_broadcast(struct comm *comm, void *data, size_t bytes, uint32_t root,
                           struct error *err);

/* From the rank before (rank 0 keeps `data` as it is), and to the next one (the last does nothing).
 */
enum status comm_receive(struct comm *comm, void *data, size_t bytes, struct error *err);
enum status comm_send(struct comm *comm, const void *data, size_t bytes, struct error *err);

/* Sums that depend on the order of rows: `add` adds the rank's own to those of all ranks before it,
 * which are in sums[] then; all ranks get the sums of all, and *before (NULL: not wanted; of one
 * sum) what they were when the rank's own were added. They begin as given by rank 0. */
enum status comm_fold(struct comm *comm, double *sums, size_t count, double *before,
                      void (*add)(void *context, double *sums), void *context, struct error *err);

/* The same of one sum that begins with 0, of the rank's own `count` values one by one. */
enum status comm_fold_values(struct comm *comm, double *sum, double *before, const double *values,
                             uint64_t count, struct error *err);

/* For ranks that share their memory: `take` gets what each rank has given as `own`, and may read it
 * until it returns. */
bool comm_can_visit(const struct comm *comm);
enum status comm_visit(struct comm *comm, const void *own,
                       enum status (*take)(void *context, const void *const *all,
                                           struct error *err),
                       void *context, struct error *err);

/* Ends all ranks' calls, those to come included, with this rank's error. */
void comm_fail(struct comm *comm, const struct error *err);

/* The part of `count` things that a rank takes where all could: from *begin to before *end. */
void comm_part(uint64_t *begin, uint64_t *end, const struct comm *comm, uint32_t rank,
               uint64_t count);

/* comm_gather of `count` things of `each` bytes, of which a rank has its part. */
enum status comm_gather_parts(struct comm *comm, void *all, uint64_t count, size_t each,
                              struct error *err);

#endif
