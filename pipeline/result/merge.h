/* merge.h: merges several results: shards of one ingest (ingest --shard), or ingests of different
 * sources. Rows, failures, sources and identity are those of a single ingest of everything. */
#ifndef CLPIPE_RESULT_MERGE_H
#define CLPIPE_RESULT_MERGE_H

#include "base/watch.h"

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

/* STATUS_USAGE: the inputs do not belong together; the message says why. STATUS_FAILED: one cannot
 * be read, or the output cannot be written. The output appears only when it is complete. Data of
 * other programs in the file that it replaces is kept; a notice names its clusterings and other
 * objects, which are not. */
enum status merge_files(struct merge_report *report, const struct merge_config *config,
                        struct error *err);

/* Checks, before the inputs exist, that `output` may become the merge of `count` parts with these
 * names relative to its directory. *current: it already is that merge, and the parts are unchanged.
 * STATUS_USAGE: it is another result; STATUS_FAILED: it is not a clpipe file. */
enum status merge_look(bool *current, const char *output, const char *const *name, unsigned count,
                       struct error *err);

#endif
