/* export_tree.h: a folder for each cluster, in which every image appears as a link or a copy. */
#ifndef CLPIPE_CLI_EXPORT_TREE_H
#define CLPIPE_CLI_EXPORT_TREE_H

#include "cli/options.h"
#include "file/result.h"

struct tree_counts {
    uint64_t made, missing;
};

/* Makes options->to, whole or not at all: STATUS_FAILED if it is there and not empty, or if no
 * image is where the file says. STATUS_INTERRUPTED: nothing is left behind. */
enum status export_tree(struct tree_counts *counts, struct result *result,
                        const struct result_clusters *clusters, const int32_t *labels,
                        const struct options *options, struct error *err);

#endif
