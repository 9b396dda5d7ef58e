/* comm_threads.h: ranks that are threads of this process. */
#ifndef CLPIPE_CLUSTER_COMM_THREADS_H
#define CLPIPE_CLUSTER_COMM_THREADS_H

#include "cluster/comm.h"

/* Runs `main` once for each rank, rank 0 on the calling thread, and returns when all have returned.
 * One that does not return STATUS_OK has failed, which ends the others' calls of comm.h; the first
 * that did so is *failed (0 where none has). The result and *err are rank 0's, or those of the one
 * that failed first where rank 0 has none. */
enum status comm_run_threads(uint32_t *failed, uint32_t ranks,
                             enum status (*main)(void *context, struct comm *comm,
                                                 struct error *err),
                             void *context, struct error *err);

#endif
