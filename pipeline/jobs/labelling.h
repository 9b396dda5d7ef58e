/* labelling.h: the job that assigns rows to the centroids of a clustering. */
#ifndef CLPIPE_JOBS_LABELLING_H
#define CLPIPE_JOBS_LABELLING_H

#include "jobs/clustering.h"

struct labelling_config {
    const char *centroids;       /* the clpipe file with the centroids, */
    const char *name;            /* and the name of the clustering; NULL: the only one */
    const char *input, *feature; /* as matrix_input_open takes them; feature NULL: the clustered
                                    one */
    const char *output;          /* a separate file, or NULL: the input */
    const char *paths;           /* list of the rows' paths (path_list.h); NULL: none */
    bool replace;                /* replace a result of that name made with other parameters */
    bool verify_input;           /* read all rows before trusting a stored result */
    struct clustering_machine machine;
};

/* Labels the rows, or finds the labels in the file; errors and report as for clustering_run.
 * STATUS_FAILED: the rows are not of the clustered feature. */
enum status labelling_run(struct clustering_report *report, const struct labelling_config *config,
                          struct error *err);

#endif
