/* merge_types.h: configuration and report of a merge. */
#ifndef CLPIPE_RESULT_MERGE_TYPES_H
#define CLPIPE_RESULT_MERGE_TYPES_H

#include "base/watch.h"
#include "result/content.h"

struct merge_config {
    const char *const *input;
    unsigned count;
    const char *output;
    /* `output` is the path of an open unnamed file (/proc/self/fd/N), which stays unnamed; parts are
     * found by their absolute paths. */
    bool unnamed;
    /* An output that holds clusterings, imported features, neighbours or selections is not replaced. */
    bool keep_objects;
    bool copy;        /* copy rows; else the output shows the inputs' rows (parts.h) */
    bool compress;    /* deflate copied features; those of compressed inputs always are */
    unsigned threads; /* that deflate */
    const struct store_run *run;
    struct watch watch; /* shows the rows merged so far */
};

struct merge_report {
    uint64_t images, failures;
    unsigned parts;
    bool shards;              /* of one ingest */
    uint64_t left_out;        /* clusterings, imported features, neighbours and selections */
    char first_left_out[320]; /* "A.h5: clusters/kmeans" */
};

#endif
