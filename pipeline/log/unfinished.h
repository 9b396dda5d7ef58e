/* unfinished.h: what an unfinished run has left, or is doing, in the work directory of an output;
 * looked at without disturbing it. */
#ifndef CLPIPE_LOG_UNFINISHED_H
#define CLPIPE_LOG_UNFINISHED_H

#include "base/error.h"
#include "base/failure.h"
#include <stdbool.h>
#include <stdint.h>

struct unfinished {
    bool exists;       /* there is a work directory that holds records, or is in use */
    char *path;        /* of the directory */
    bool has_log;      /* it holds a log: a run is unfinished */
    bool in_use;       /* a process of this machine works in it, */
    bool may_be_used;  /* or one of another machine may */
    char holder[128];  /* "process 123 on HOST", where one of the two is set */
    uint64_t by_reason[REASON_COUNT]; /* finished files; REASON_NONE: images */
    uint64_t records;                 /* their sum */
    uint64_t runs;                    /* that have written to the log */
    uint64_t bytes;                   /* of the log */
    int64_t written_ns;               /* when the log was last written, since 1970 */
    char *command, *directory;        /* the command line and where it ran; NULL: not known */
    char *status; /* status.json (ingest/status_file.h) of the process that works there, or NULL */
    unsigned ranks, ranks_done; /* of an ingest by several, whose parts this is the sum of; else 0 */
};

/* The directory F.h5.parts of the parts of such an ingest: shard-I-of-N.h5. */
#define UNFINISHED_PARTS ".parts"
/* The path of one in that directory; free it. NULL without memory. */
char *unfinished_part(const char *parts, unsigned rank, unsigned ranks);

/* Looks. Of the logs a few hundred bytes a block are read; one that is cut off or whose head is damaged does not
 * count. STATUS_FAILED, STATUS_USAGE: something is there that cannot be read. Clear it also after a failure. */
enum status unfinished_look(struct unfinished *out, const char *output, struct error *err);

/* The same of the parts that the ranks of one ingest of `output` have begun last, where that has no work
 * directory of its own. Parts that are all done are unfinished where the output is missing. */
enum status unfinished_look_ranks(struct unfinished *out, const char *output, bool missing,
                                  struct error *err);
void unfinished_clear(struct unfinished *unfinished);

#endif
