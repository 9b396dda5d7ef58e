/* candidates.h: chooses the files for learning codebooks. The choice depends only on the list of
 * files: names with image extensions come first, then files are ordered by the hash of their path.
 * Candidates are in this order, too. */
#ifndef CLPIPE_INGEST_CANDIDATES_H
#define CLPIPE_INGEST_CANDIDATES_H

#include "base/stop.h"
#include "sources/walk.h"

struct candidate {
    bool unpromised;
    uint64_t hash, sequence; /* as in walk_item */
    uint16_t source;
    char *path;
    uint64_t where, bytes;
    int64_t mtime_ns;
};

struct candidates {
    struct candidate *item; /* in order */
    uint32_t count;
    uint32_t unread; /* files and directories that could not be read */
    bool trimmed;    /* internal: the first items are the smallest so far, in order */
};

/* Reads all items of the walk, selects the first `most` in that order, and rewinds the walk. Empty
 * or unreadable files and those of unread sources are not eligible. STATUS_INTERRUPTED: stopped.
 * Call candidates_clear even after a failure. */
enum status candidates_choose(struct candidates *out, struct walk *walk, uint32_t most,
                              struct stop *stop, struct error *err);
void candidates_clear(struct candidates *candidates); /* frees its items */

#endif
