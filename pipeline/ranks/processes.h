/* processes.h: the processes that an MPI launcher (mpirun, mpiexec or srun) has started together.
 *
 * The modules that call MPI are installed next to the program, or in ../lib/clpipe from there, as
 * mpi-NAME.so. Only this code loads one; no other use of clpipe needs an MPI library. */
#ifndef CLPIPE_RANKS_PROCESSES_H
#define CLPIPE_RANKS_PROCESSES_H

#include "base/stop.h"
#include "ranks/comm.h"

struct processes;

/* Joins the other processes. choice: "auto": if a launcher has started this one, with the module
 * for it; "openmpi", "mpich": with that module; "off": never. *out is NULL if this process works
 * alone, as it does if there is no launcher. `same` is text that must be equal on all processes;
 * NULL means out of memory and ends all of them. Call it once, before other threads start but after
 * blocking the signals that they must not receive. STATUS_FAILED: no such module, a module for
 * another launcher, started by an MPI program, or the texts differ; if *out is set, finish and
 * close it. If others do not join within a minute, the process prints an error and exits with
 * STATUS_FAILED. */
enum status processes_open(struct processes **out, const char *choice, const char *same,
                           struct error *err);

/* The last collective call, with this process's outcome. Returns status and *err of the first rank
 * that failed. Ends the process if another was lost. Accepts NULL. */
enum status processes_finish(struct processes *processes, enum status status, struct error *err);

/* Leaves the group. Call it once the outcome is reported: when a process exits with an error, a
 * launcher may kill the others. Accepts NULL and a pointer to NULL. */
void processes_close(struct processes **processes);

/* All processes as ranks; if one fails, processes_finish ends the others' calls. NULL: NULL. */
struct comm *processes_comm(const struct processes *processes);

/* Whether this is rank 0, the only one that prints and writes, or a process that works alone. */
bool processes_first(const struct processes *processes);

/* Fails on all processes unless `text` is the same for all; `what`, a plural noun, is for the
 * message. NULL: nothing to compare. */
enum status processes_agree(struct processes *processes, const char *text, const char *what,
                            struct error *err);

/* The rank among the processes on this host, and the number of CPUs for this process: those it may
 * use, divided by the ranks that may also use them. Alone: 0 and 0. */
uint32_t processes_local_rank(const struct processes *processes);
unsigned processes_cpus(const struct processes *processes);

/* The rank in a group of the first `count` ranks; NULL for the others. Both are collective. */
enum status processes_part(struct comm **out, struct processes *processes, uint32_t count,
                           struct error *err);
/* For the only rank that works while all others wait for its next exchange: call it from time to time,
 * on the thread of that exchange. A rank that has failed, or of which a stop was requested
 * (comm_processes_share_stop), stops this one by `stop`. Accepts NULL. */
void processes_watch(struct processes *processes, struct stop *stop);
/* Accepts NULL and a pointer to NULL. */
void processes_leave_part(struct comm **part, struct processes *processes);

/* Waits a moment after an error is printed: a launcher kills all processes when the first exits
 * with an error, and MPICH's mpiexec may do so before it has read the output. */
void processes_let_read(void);

/* The launcher whose environment announces several processes (else NULL), and this one's rank (else
 * 0); usable before anything is loaded. started: the launcher started this process directly,
 * without a script or program in between. */
const char *processes_told(void);
uint32_t processes_told_rank(void);
bool processes_started(void);

/* Describes module number `i`: its name, and its MPI library or why it cannot be loaded. False:
 * there is no such number. */
bool processes_module(unsigned i, const char **name, char *text, size_t size);

#endif
