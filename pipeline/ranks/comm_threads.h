/* comm_threads.h: ranks that are threads of this process. */
#ifndef CLPIPE_RANKS_COMM_THREADS_H
#define CLPIPE_RANKS_COMM_THREADS_H

#include "ranks/comm.h"

/* Runs `main` once per rank, rank 0 on the calling thread, and returns when all have returned. A
 * rank that does not return STATUS_OK has failed, which ends the other ranks' comm.h calls; *failed
 * is the first of these (0 if none). Returns rank 0's status and *err or, if rank 0 has none, those
 * of the first that failed. */
enum status comm_run_threads(uint32_t *failed, uint32_t ranks,
                             enum status (*main)(void *context, struct comm *comm,
                                                 struct error *err),
                             void *context, struct error *err);

#endif
