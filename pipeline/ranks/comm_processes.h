/* comm_processes.h: ranks that are processes, communicating through an MPI module. */
#ifndef CLPIPE_RANKS_COMM_PROCESSES_H
#define CLPIPE_RANKS_COMM_PROCESSES_H

#include "base/stop.h"
#include "ranks/comm.h"
#include "ranks/mpi_table.h"

/* Allocates a rank for comm_processes_open, or returns NULL: done early, so that no other rank
 * waits for one that is out of memory. Close it. */
struct comm *comm_processes_reserve(void);

/* Initialises this process's rank in a group, which it takes over. Calls come from one thread. */
void comm_processes_open(struct comm *reserved, const struct mpi_table *mpi, void *group,
                         uint32_t rank, uint32_t size);
/* Accepts NULL and a pointer to NULL; sets *comm to NULL. */
void comm_processes_close(struct comm **comm);

/* comm_fail, also for a single rank. */
void comm_processes_fail(struct comm *comm, const struct error *err);

/* After a failed call or comm_fail: sets *err to the error that ended it, the same on all ranks,
 * and returns its status. */
enum status comm_processes_error(const struct comm *comm, struct error *err);

/* Whether MPI itself failed or this rank had to drop out: nothing more is exchanged. lose: drops
 * out because of *err. */
bool comm_processes_lost(const struct comm *comm);
void comm_processes_lose(struct comm *comm, const struct error *err);

/* Checks the result of a module call: an error means that MPI itself failed. */
enum status comm_processes_check(struct comm *comm, int code, struct error *err);

/* Waits until all ranks have called it, with STATUS_OK or with the error that ends them. */
enum status comm_processes_meet(struct comm *comm, struct error *err);

/* For ranks that work independently until their next exchange: call it from time to time; it does
 * not wait. An error is that of a failed rank and ends all calls. */
enum status comm_processes_watch(struct comm *comm, struct error *err);
/* From now on a stop of one rank, noticed while watching or waiting, stops all ranks, with its
 * cause. */
void comm_processes_share_stop(struct comm *comm, struct stop *stop);

/* Bytes from rank 0 to another rank, at most 1 GiB per call; 0 bytes: the end. Everything given,
 * including the end, must be taken before the two ranks exchange anything else. take: receives one
 * call's `bytes` bytes or, if data is NULL, any number and drops them; STATUS_END: the end. */
enum status comm_processes_give(struct comm *comm, uint32_t to, const void *data, size_t bytes,
                                struct error *err);
enum status comm_processes_take(struct comm *comm, void *data, size_t bytes, struct error *err);

#endif
