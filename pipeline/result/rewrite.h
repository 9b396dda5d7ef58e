/* rewrite.h: writes a whole result file, for all commands: rows of inputs in the order of a list
 * (move_rows.h), then everything else.
 *
 *   logs, finished files ─> lists of rows ─> columns and features ─┐
 *   content: parameters, sources, codebooks ───────────────────────┼─> F.h5.tmp ─> sync ─> rename
 *   the file that is replaced: objects, runs, data of others ──────┘ */
#ifndef CLPIPE_RESULT_REWRITE_H
#define CLPIPE_RESULT_REWRITE_H

#include "result/foreign.h"
#include "result/row_map.h"
#include "result/sidecars.h"

struct carry;

struct rewrite {
    const char *output;
    bool unnamed; /* `output` is the path of an open unnamed file, which stays unnamed */
    const struct new_rows *rows;
    bool compress;    /* features are deflated */
    unsigned threads; /* for reading, deflating and writing rows */
    /* Files whose rows are shown (parts.h) instead of being copied; NULL: all rows are in the file. */
    const struct part *parts;
    unsigned part_count;
    struct sidecars *sidecars; /* sidecar texts, in the order of the rows; NULL: none */
    const struct store_run *run;
    int64_t began; /* start of the run (clock_now()), to compute its seconds; 0: `run` has them */
    /* The existing file, or NULL; what other programs have added to it is kept. */
    struct result *replaced;
    /* Without `replaced`: the file whose data of other programs is kept; not positive: none. */
    hid_t others_of;
    const struct row_map *map; /* if `replaced` is set: the old row of each row */
    /* other objects, and runs, kept from `replaced` (this sets its file and path); NULL: none */
    struct carry *carry;
    struct result *classes_of; /* without `carry`: result whose classes are copied; NULL: none */
    struct watch watch;        /* shows parts of the rows */
};

struct rewrite_report {
    struct foreign_copied foreign;
    uint64_t run; /* the number of this run */
};

/* Writes the file; nothing under its name has changed after a failure. */
enum status rewrite_file(struct rewrite_report *report, const struct rewrite *rewrite,
                         struct error *err);

#endif
