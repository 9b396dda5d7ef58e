/* clustering_report.h: the report of jobs that store clusters. */
#ifndef CLPIPE_JOBS_CLUSTERING_REPORT_H
#define CLPIPE_JOBS_CLUSTERING_REPORT_H

#include "kmeans/levels.h"
#include "result/words.h"

/* The outcome, for summaries and reports. */
struct clustering_report {
    uint32_t mini_batch, n_init;
    bool found; /* the result already existed: nothing was computed */
    double seconds;
    char device[256];
    struct result_clusters clusters; /* of rows: name, feature, metric and agreement */
    char *output;                    /* the file that contains it */
    bool in_input;                   /* it is the input */
    struct result *images;           /* the open clpipe file whose images the rows are; or NULL */
    unsigned level_count;            /* 1: it has no levels */
    struct cluster_level level[CLUSTER_LEVELS]; /* that of the rows, and those above: when done,
                                                 * without centroids, labels and distances */
    char level_name[CLUSTER_LEVELS][FEATURE_NAME_MAX];
    struct cluster_sweep sweep; /* values NULL: k was given */
    struct words *words;        /* for its clusters, or NULL */
};
/* Frees its texts, arrays and files and zeroes it. */
void clustering_report_clear(struct clustering_report *report);

#endif
