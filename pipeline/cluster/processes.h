/* processes.h: this process among those that a launcher of MPI has started with it: mpirun, mpiexec
 * or srun.
 *
 * The modules that call MPI lie beside the program, or in ../lib/clpipe of it, as mpi-NAME.so. One is
 * loaded only here; no other use of clpipe needs an MPI library. */
#ifndef CLPIPE_CLUSTER_PROCESSES_H
#define CLPIPE_CLUSTER_PROCESSES_H

#include "cluster/comm.h"

struct processes;

/* Joins the other processes. choice: "auto": where a launcher has started this one, by the module for
 * that; "openmpi", "mpich": by that module; "off": not. *out is NULL where this process works alone,
 * which it does without a launcher, too. `same` is text that must be equal on all of them. Before
 * other threads start, but with the signals blocked that other threads must not get; once. `same` may be
 * NULL, for want of memory, which ends all of them. STATUS_FAILED: there is no such module, or it is not
 * that of the launcher, or an MPI program has started this one. What *out is then, finish and close. Where
 * others do not come within a minute the process ends with a line and STATUS_FAILED. */
enum status processes_open(struct processes **out, const char *choice, const char *same,
                           struct error *err);

/* The last call of all of them, with the outcome of this process. The result, and *err, are those of
 * the first rank that has failed. Ends the process where another was lost. Accepts NULL. */
enum status processes_finish(struct processes *processes, enum status status, struct error *err);

/* Leaves them, after the outcome has been told: once a process has ended with an error, a launcher may
 * end those that have not. Accepts NULLs. */
void processes_close(struct processes **processes);

/* All of them; one that fails on its way ends the others' calls in processes_finish. NULL: NULL. */
struct comm *processes_comm(const struct processes *processes);

/* Whether this is rank 0, which alone prints and writes; a process that works alone is. */
bool processes_first(const struct processes *processes);

/* Fails on all of them unless `text` is the same for all: what it is, for the message, is a plural. NULL:
 * nothing is compared. */
enum status processes_agree(struct processes *processes, const char *text, const char *what,
                            struct error *err);

/* The rank among those on this host, and how many of its CPUs are for this process: those it may use,
 * divided by the ranks that may use them as well. Alone: 0, and 0. */
uint32_t processes_local_rank(const struct processes *processes);
unsigned processes_cpus(const struct processes *processes);

/* The rank in a group of the first `count` ranks; NULL for the others. All call it, and leave it. */
enum status processes_part(struct comm **out, struct processes *processes, uint32_t count,
                           struct error *err);
/* Accepts NULLs. */
void processes_leave_part(struct comm **part, struct processes *processes);

/* Waits a moment after an error was told: a launcher ends all processes with the first that ends by an
 * error, and mpiexec of MPICH may do so before it has read what was written. */
void processes_let_read(void);

/* The launcher whose environment tells of several processes (else NULL), and this one's rank (else 0);
 * before anything is loaded. started: no script or program between them has started this one. */
const char *processes_told(void);
uint32_t processes_told_rank(void);
bool processes_started(void);

/* Number `i` of the modules: its name, and what library it is with, or why it cannot be loaded. False:
 * there are no more. */
bool processes_module(unsigned i, const char **name, char *text, size_t size);

#endif
