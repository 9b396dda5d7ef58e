/* evaluation.h: the job behind clpipe evaluate: how well features and clusterings of a file agree with
 * the classes of its images. */
#ifndef CLPIPE_CLUSTERING_EVALUATION_H
#define CLPIPE_CLUSTERING_EVALUATION_H

#include "clustering/classes.h"
#include "clustering/machine.h"
#include "file/result.h"
#include "search/ranking.h"

struct evaluation_config {
    const char *file;    /* a clpipe file */
    const char *classes; /* a table (classes.h); NULL: folders */
    /* Features as feature_matrix_open takes them; none: each of the file. */
    const char *const *features;
    unsigned feature_count;
    /* None: the usual one of each feature. */
    const enum cluster_metric *metrics;
    unsigned metric_count;
    /* Rows are projected as in struct clustering_config. */
    bool center;
    uint32_t pca;
    double whiten;
    uint32_t expand; /* rows are replaced by means with so many neighbours (search/expansion.h) */
    bool diffuse;    /* rows are ranked by diffusion (search/diffusion.h) */
    /* Clusterings; none: all of the file. */
    const char *const *names;
    unsigned name_count;
    struct clustering_machine machine; /* no device is used */
};

/* What one feature is worth by one metric. */
struct evaluation_feature {
    char name[FEATURE_NAME_MAX];
    uint32_t dimension;         /* of the rows that were ranked */
    enum cluster_metric metric; /* of the rows, before they were projected */
    struct ranking ranking;
};

struct evaluation_clusters {
    const struct result_clusters *clusters;
    uint64_t rows; /* that have a class and a label */
    struct cluster_agreement agreement;
};

struct evaluation {
    struct result *result;
    struct classes classes;
    struct evaluation_feature *features;
    unsigned feature_count;
    struct evaluation_clusters *clusters;
    unsigned clusters_count;
};

/* STATUS_USAGE: no such file, feature or clustering; STATUS_FAILED: no images, no classes, rows that a
 * metric does not define. Clear it also after a failure. */
enum status evaluation_run(struct evaluation *out, const struct evaluation_config *config,
                           struct error *err);
void evaluation_clear(struct evaluation *evaluation);

#endif
