/* comm_processes.h: ranks that are processes, through a module for MPI. */
#ifndef CLPIPE_CLUSTER_COMM_PROCESSES_H
#define CLPIPE_CLUSTER_COMM_PROCESSES_H

#include "cluster/comm.h"
#include "mpi/mpi_table.h"

/* This process' rank in a group, which is released with it. Its calls are for one thread. */
enum status comm_processes_open(struct comm **out, const struct mpi_table *mpi, void *group,
                                uint32_t rank, uint32_t size, struct error *err);
/* Accepts NULL and NULLs. */
void comm_processes_close(struct comm **comm);

/* comm_fail, also where there is one rank. */
void comm_processes_fail(struct comm *comm, const struct error *err);

/* After a call that has failed, or comm_fail: makes *err the error that ended it, which is the same
 * on all ranks, and returns its status. */
enum status comm_processes_error(const struct comm *comm, struct error *err);

/* Whether MPI itself has failed, so that nothing more can be exchanged. */
bool comm_processes_lost(const struct comm *comm);

/* Waits until all ranks have come here: with STATUS_OK, or with the error that ends them. */
enum status comm_processes_meet(struct comm *comm, struct error *err);

#endif
