/* candidates.h: the files that codebooks are learned from, chosen by a rule that depends on nothing
 * but the list of files: those whose names promise an image come first, within that those of the
 * smallest hashes of their paths. The order of candidates is by that rule, too. */
#ifndef CLPIPE_INGEST_CANDIDATES_H
#define CLPIPE_INGEST_CANDIDATES_H

#include "base/stop.h"
#include "walk/walk.h"

struct candidate {
    bool unpromised;
    uint64_t hash, sequence; /* of walk_item */
    uint16_t source;
    char *path;
    uint64_t where, bytes;
    int64_t mtime_ns;
};

struct candidates {
    struct candidate *item; /* in order */
    uint32_t count;
    uint64_t files; /* that could have been chosen */
};

/* Reads all items of the walk, keeps the first `most` by the rule, and rewinds the walk. Empty
 * files, those that cannot be looked at, and those of sources that are not looked at, are no
 * candidates. STATUS_INTERRUPTED: `stop` came first. Clear it also after a failure. */
enum status candidates_choose(struct candidates *out, struct walk *walk, uint32_t most,
                              struct stop *stop, struct error *err);
void candidates_clear(struct candidates *candidates);

#endif
