/* comm_processes.h: ranks that are processes, through a module for MPI. */
#ifndef CLPIPE_CLUSTER_COMM_PROCESSES_H
#define CLPIPE_CLUSTER_COMM_PROCESSES_H

#include "base/stop.h"
#include "cluster/comm.h"
#include "mpi/mpi_table.h"

/* Memory for comm_processes_open, or NULL: before the others wait for one that has none. To be closed. */
struct comm *comm_processes_reserve(void);

/* This process' rank in a group, which is released with it. Its calls are for one thread. */
void comm_processes_open(struct comm *reserved, const struct mpi_table *mpi, void *group,
                         uint32_t rank, uint32_t size);
/* Accepts NULL and NULLs. */
void comm_processes_close(struct comm **comm);

/* comm_fail, also where there is one rank. */
void comm_processes_fail(struct comm *comm, const struct error *err);

/* After a call that has failed, or comm_fail: makes *err the error that ended it, which is the same
 * on all ranks, and returns its status. */
enum status comm_processes_error(const struct comm *comm, struct error *err);

/* Whether MPI itself has failed, or this rank cannot take part any more: nothing more is exchanged. lose:
 * it cannot, because of *err. */
bool comm_processes_lost(const struct comm *comm);
void comm_processes_lose(struct comm *comm, const struct error *err);

/* What a call of the module has come to: an error means that MPI itself has failed. */
enum status comm_processes_check(struct comm *comm, int code, struct error *err);

/* Waits until all ranks have come here: with STATUS_OK, or with the error that ends them. */
enum status comm_processes_meet(struct comm *comm, struct error *err);

/* For ranks that work apart until their next exchange: to be called now and then, does not wait. An
 * error is that of a rank that has failed, and ends all calls. */
enum status comm_processes_watch(struct comm *comm, struct error *err);
/* From now on watching, and waiting for others, makes a stop of one rank that of all, for the same
 * cause. */
void comm_processes_share_stop(struct comm *comm, struct stop *stop);

/* Bytes from rank 0 to another one, at most 1 GiB a call; no bytes: there are no more. All that is
 * given, with this end, is taken before the two ranks exchange anything else. take: what one call gave,
 * `bytes` bytes, or for NULL any number, which is dropped; STATUS_END: there are no more. */
enum status comm_processes_give(struct comm *comm, uint32_t to, const void *data, size_t bytes,
                                struct error *err);
enum status comm_processes_take(struct comm *comm, void *data, size_t bytes, struct error *err);

#endif
