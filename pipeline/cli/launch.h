/* launch.h: a command as one of the processes that a launcher of MPI has started: --mpi. */
#ifndef CLPIPE_CLI_LAUNCH_H
#define CLPIPE_CLI_LAUNCH_H

#include "cli/options.h"

/* For commands whose processes share the work, and ingests that merge their shards: joins the other
 * processes, where there are any, as options->processes. Where a command does not share its work, those
 * that a launcher has started are refused (STATUS_USAGE), unless a script stands between or with --mpi off. In all but the first the options are those of a process that
 * prints and writes nothing but errors of its own. Threads are divided among the processes of this
 * machine unless their number was given. Before other threads start. */
enum status launch_open(struct options *options, int argc, char *const *argv, struct error *err);

/* Ends the command with the same status and error for all of them; only the first tells it, before
 * processes_close. */
enum status launch_finish(struct options *options, enum status status, struct error *err);

/* After the first has told the error of all, as processes_let_read. */
void launch_told(const struct options *options, enum status status);

/* Before the processes have joined each other: the first alone tells what is wrong with the command line.
 * What may be the trouble of this one alone, memory, ends it by a signal: mpiexec of MPICH would not end
 * the others, who wait for it, otherwise. */
void launch_misuse(const struct error *err);

#endif
