/* merge_inputs.h: the input files of a merge, checked and in order. */
#ifndef CLPIPE_RESULT_MERGE_INPUTS_H
#define CLPIPE_RESULT_MERGE_INPUTS_H

#include "result/merge_types.h"
#include "result/parts.h"
#include "result/result_internal.h"

struct merge_input {
    struct part part; /* for the manifest; owns its texts but the path */
    uint64_t failures;
    bool codes, compressed, sidecars;
    bool merged; /* it is itself a merged file */
    uint32_t thumbnail_size;
    unsigned sources;
    unsigned first_source;   /* in the merged file: number of its first source */
    struct list_share share; /* count 0: not a shard */
};

struct merge_inputs {
    struct merge_input *input; /* in the order of their rows */
    struct part *part;         /* of each */
    unsigned count;
    struct result *first; /* the first of them, open, for what all have in common */
    char **source, **directory;
    unsigned source_count;
    uint64_t images, failures;
    hid_t replaced;    /* the file that the merge replaces, open without its parts; invalid: none */
    char dropped[320]; /* its clusterings and other objects (objects_names) */
};

/* Clear it even after a failure. Errors are those of merge_files. */
enum status merge_inputs_open(struct merge_inputs *out, struct merge_report *report,
                              const struct merge_config *config, struct error *err);
void merge_inputs_clear(struct merge_inputs *inputs);

/* Opens the file to be replaced, without its parts; *file is invalid if there is none.
 * STATUS_FAILED: not a clpipe file. */
enum status merge_open_output(hid_t *file, const char *output, struct error *err);

#endif
