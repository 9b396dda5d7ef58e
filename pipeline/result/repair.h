/* repair.h: what can be saved of a damaged result, or of the log of an unfinished run. */
#ifndef CLPIPE_RESULT_REPAIR_H
#define CLPIPE_RESULT_REPAIR_H

#include "base/error.h"
#include "result/content.h"

struct repair_config {
    const char *input;
    const char *output; /* NULL: in place; what was there is kept as INPUT.damaged */
    bool dry_run;       /* only look */
    const char *
        unreadable; /* the signal by which reading INPUT ended a process, which is not tried; or NULL */
    const struct store_run *run;
    /* Gets a line for each thing that is wrong. */
    void (*broken)(const char *line, void *context);
    void *context;
};

struct repair_report {
    bool from_log; /* INPUT itself cannot be read, or is not there: the unfinished work is taken */
    bool whole;    /* nothing is wrong with INPUT: nothing is written */
    bool written;  /* to the output */
    bool unfinished; /* INPUT.partial holds work: the command that began it goes on from there */
    char kept[4096]; /* the new name of INPUT; "" if it was not replaced */
    uint64_t images, failures;           /* saved */
    uint64_t images_lost, failures_lost; /* rows that had to be dropped */
    uint64_t clusters, clusters_lost;
    uint64_t codebooks_lost; /* of features whose rows are saved */
    uint64_t damaged_bytes;  /* of the log */
};

/* Looks at INPUT and INPUT.partial and writes what is right. Rows that are dropped are made again
 * by the command that made the file: for it they are new. STATUS_FAILED: nothing can be saved, or
 * it cannot be written; nothing has changed then. */
enum status store_repair(struct repair_report *report, const struct repair_config *config,
                         struct error *err);

#endif
