/* ingest_ranks.h: one ingest by several processes: ingest --shard mpi.
 *
 * Each rank ingests its share into a part of its own; rank 0 walks for all of them, and merges the
 * parts in the end. The parts of OUT.h5 are OUT.h5.parts/shard-I-of-N.h5. */
#ifndef CLPIPE_CLI_INGEST_RANKS_H
#define CLPIPE_CLI_INGEST_RANKS_H

#include "cli/ingest_options.h"
#include "cli/progress.h"
#include "ingest/ingest_config.h"
#include "sources/place.h"

struct ingest_ranks {
    struct comm *comm; /* NULL: this process works alone, on `own` */
    struct ingest_options
        own;            /* the command's, but for the output and the share; what it points to is the
                             command's or this struct's */
    const char *output; /* the merged file, as the command names it */
    char *parts;        /* directory of the parts */
    char **path, **name; /* of the parts; name: relative to the directory of the merged file */
    struct progress *progress;
    bool divided; /* this rank knows its share: the next exchanges are that of what is removed, */
    size_t sums;  /* of so many numbers, 0: it is over; and that of the outcomes */
};

/* Chooses the parts; STATUS_USAGE and STATUS_FAILED where the output cannot become what is merged of
 * them. All ranks call this and the following functions. Close it also after a failure. */
enum status ingest_ranks_open(struct ingest_ranks *out, const struct options *options,
                              struct error *err);
/* Frees what it holds, not the struct; accepts a zeroed one. */
void ingest_ranks_close(struct ingest_ranks *ranks);

/* Whether all ranks make parts that can be merged: of the same parameters, and of the same sources, which
 * the command names. */
enum status ingest_ranks_agree(struct ingest_ranks *ranks, const char *parameters,
                               const struct places *places, struct error *err);

/* For ingest_step: the walk, the progress, what is skipped. */
void ingest_ranks_configure(struct ingest_config *config, struct ingest_ranks *ranks);

/* After ingest_step has come to `status`, which was no error of this rank: makes *report the sum of all
 * ranks'; if all went through, rank 0 merges. Returns what the whole came to. */
enum status ingest_ranks_merge(struct ingest_report *report, struct ingest_ranks *ranks,
                               enum status status, struct error *err);

#endif
