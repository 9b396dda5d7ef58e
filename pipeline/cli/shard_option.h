/* shard_option.h: --shard: which share of the list a process takes.
 *
 *     I/N       share I, from 0 to N - 1
 *     slurm/N   I is the number of the Slurm array's task
 *     mpi       rank and size as the launcher (mpirun, srun) put them into the environment */
#ifndef CLPIPE_CLI_SHARD_OPTION_H
#define CLPIPE_CLI_SHARD_OPTION_H

#include "base/error.h"
#include "base/list_share.h"

#define SHARD_PLACE "{shard}"

/* Fills index and count; STATUS_USAGE: `text` is invalid, or its launcher or task is missing. */
enum status shard_option_read(struct list_share *out, const char *text, struct error *err);

/* `name` with each "{shard}" replaced by the index, with as many digits as the last index has. The
 * caller frees it; NULL: no memory. */
char *shard_option_name(const char *name, const struct list_share *share);

#endif
