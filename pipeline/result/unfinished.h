/* unfinished.h: inspects the work directory of an output, left by an unfinished run or in use,
 * without side effects. */
#ifndef CLPIPE_RESULT_UNFINISHED_H
#define CLPIPE_RESULT_UNFINISHED_H

#include "base/error.h"
#include "base/failure.h"
#include <stdbool.h>
#include <stdint.h>

struct unfinished {
    bool exists;                      /* a work directory with records, or in use */
    char *path;                       /* of the directory */
    bool has_log;                     /* it has a log: a run is unfinished */
    bool in_use;                      /* by a process on this machine */
    bool may_be_used;                 /* by a process on another machine */
    char holder[128];                 /* "process 123 on HOST", if one of the two is set */
    uint64_t by_reason[REASON_COUNT]; /* finished items; REASON_NONE: images */
    uint64_t records;                 /* their sum */
    uint64_t runs;                    /* number of runs that have written to the logs */
    uint64_t bytes;                   /* of the logs */
    int64_t written_ns;               /* last write to the logs, since 1970 */
    char *command, *directory;        /* command line and its working directory; NULL: unknown */
    char *status;               /* status.json (ingest/status_file.h) of a process at work there,
                                 * or NULL */
    unsigned ranks, ranks_done; /* if it is the sum of an ingest's parts; else 0 */
};

/* Suffix of the directory F.h5.parts with the parts of such an ingest, shard-I-of-N.h5. */
#define UNFINISHED_PARTS ".parts"
/* The path of a part in that directory; the caller frees it. NULL: no memory. */
char *unfinished_part(const char *parts, unsigned rank, unsigned ranks);

/* Inspects the work directory. Reads a few hundred bytes per block of the logs; truncated blocks
 * and damaged headers are ignored. STATUS_FAILED, STATUS_USAGE: something there cannot be read.
 * Call unfinished_clear even after a failure. */
enum status unfinished_look(struct unfinished *out, const char *output, struct error *err);

/* The same for the newest parts of an ingest of `output` by several ranks, if it has no work
 * directory of its own. If the output is missing, the parts count as unfinished even if all are
 * done. */
enum status unfinished_look_ranks(struct unfinished *out, const char *output, bool missing,
                                  struct error *err);
void unfinished_clear(struct unfinished *unfinished);

#endif
