/* labelling.h: the job that labels rows by the centroids of a clustering. */
#ifndef CLPIPE_CLUSTERING_LABELLING_H
#define CLPIPE_CLUSTERING_LABELLING_H

#include "clustering/clustering.h"

struct labelling_config {
    const char *centroids;       /* the clpipe file that holds them, */
    const char *name;            /* and the name of the clustering; NULL: the only one */
    const char *input, *feature; /* as matrix_input_open takes them; feature NULL: the clustered
                                    one */
    const char *output;          /* a file of its own, or NULL: the input */
    const char *paths;           /* the list of path_list.h: of the rows; NULL: none */
    bool replace;                /* an earlier result of that name that was made otherwise */
    bool verify_input;           /* all rows are read before a result counts as made from them */
    struct clustering_machine machine;
};

/* Runs, or finds the labels in the file; errors and report as clustering_run. STATUS_FAILED: the
 * rows are not the feature that was clustered. */
enum status labelling_run(struct clustering_report *report, const struct labelling_config *config,
                          struct error *err);

#endif
