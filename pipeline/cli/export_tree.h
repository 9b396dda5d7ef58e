/* export_tree.h: a folder for each cluster, in which every image appears as a link or a copy. */
#ifndef CLPIPE_CLI_EXPORT_TREE_H
#define CLPIPE_CLI_EXPORT_TREE_H

#include "cli/export_table.h"

struct tree_counts {
    uint64_t made, missing, unlabelled;
    uint64_t archived; /* of those that are missing */
};

/* Makes options->to, whole or not at all: STATUS_FAILED if it is there and neither empty nor an earlier
 * tree without anything of others, or if no image is where the file says. The clusters are those of the
 * images of the file. STATUS_INTERRUPTED: nothing is left behind. */
enum status export_tree(struct tree_counts *counts, struct export *export, struct error *err);

#endif
