/* ingest_ranks.h: one ingest by several processes: ingest --shard mpi.
 *
 * Each rank ingests its share into a part of its own; rank 0 walks for all of them and merges the
 * parts at the end. The parts of OUT.h5 are OUT.h5.parts/shard-I-of-N.h5. */
#ifndef CLPIPE_CLI_INGEST_RANKS_H
#define CLPIPE_CLI_INGEST_RANKS_H

#include "cli/ingest_options.h"
#include "cli/progress.h"
#include "ingest/ingest_config.h"
#include "sources/place.h"

struct ingest_ranks {
    struct comm *comm;         /* NULL: this process works alone, on `own` */
    struct ingest_options own; /* the command's, except output and share; its pointers belong to the
                         * command or to this struct */
    const char *output;        /* the merged file, as given */
    char *parts;               /* directory of the parts */
    char **path, **name; /* of the parts; name: relative to the directory of the merged file */
    struct progress *progress;
    bool divided; /* this rank knows its share; two exchanges follow: the sum of removed images, */
    size_t sums;  /* of `sums` numbers (0: already done), and that of the outcomes */
};

/* Chooses the parts; STATUS_USAGE or STATUS_FAILED if the output cannot be merged from them. All
 * ranks call this and the following functions. Close it even after a failure. */
enum status ingest_ranks_open(struct ingest_ranks *out, const struct options *options,
                              struct error *err);
/* Frees what it holds, not the struct; accepts a zeroed one. */
void ingest_ranks_close(struct ingest_ranks *ranks);

/* Checks that the parts of all ranks can be merged: the same parameters, and the same sources, all given
 * on the command line. */
enum status ingest_ranks_agree(struct ingest_ranks *ranks, const char *parameters,
                               const struct places *places, struct error *err);

/* Sets walk, progress and skipped paths for ingest_step. */
void ingest_ranks_configure(struct ingest_config *config, struct ingest_ranks *ranks);

/* After ingest_step has returned `status` without an error of this rank: makes *report the sum over all
 * ranks; if all succeeded, rank 0 merges. Returns the status of the whole ingest. */
enum status ingest_ranks_merge(struct ingest_report *report, struct ingest_ranks *ranks,
                               enum status status, struct error *err);

#endif
