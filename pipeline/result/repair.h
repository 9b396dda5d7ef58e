/* repair.h: saves the intact rows of a damaged result, or of the log of an unfinished run. */
#ifndef CLPIPE_RESULT_REPAIR_H
#define CLPIPE_RESULT_REPAIR_H

#include "base/error.h"
#include "result/content.h"

struct repair_config {
    const char *input;
    const char *output; /* NULL: in place; the old file is kept as INPUT.damaged */
    bool dry_run;       /* only look */
    const char *
        unreadable; /* the signal that killed a process reading INPUT, which is then not read again; or
                     * NULL */
    const struct store_run *run;
    /* Receives a line for each problem. */
    void (*broken)(const char *line, void *context);
    void *context;
};

struct repair_report {
    bool from_log;             /* INPUT itself is unreadable or missing: uses the unfinished work */
    bool whole;                /* INPUT has no problems: nothing is written */
    bool written;              /* to the output */
    bool unfinished;           /* INPUT.partial holds work, from which its command can resume */
    char kept[4096];           /* the new name of INPUT; "" if it was not replaced */
    uint64_t images, failures; /* saved */
    uint64_t images_lost, failures_lost; /* rows that had to be dropped */
    uint64_t clusters, clusters_lost;
    uint64_t codebooks_lost; /* codebooks of features whose rows are saved */
    uint64_t damaged_bytes;  /* of the log */
};

/* Reads INPUT and INPUT.partial and writes the intact rows. The command that made the file computes
 * dropped rows again, as new ones. STATUS_FAILED: nothing can be saved, or the output cannot be
 * written; nothing has changed. */
enum status store_repair(struct repair_report *report, const struct repair_config *config,
                         struct error *err);

#endif
