/* evaluation.h: the job behind clpipe evaluate: how well features and clusterings of a file agree with
 * the classes of its images. */
#ifndef CLPIPE_JOBS_EVALUATION_H
#define CLPIPE_JOBS_EVALUATION_H

#include "base/held.h"
#include "base/text.h"
#include "jobs/classes.h"
#include "jobs/machine.h"
#include "neighbours/ranking.h"

struct evaluation_config {
    const char *file;    /* a clpipe file */
    const char *classes; /* a table (classes.h); NULL: folders */
    /* Features as for feature_matrix_open; none: all features of the file. */
    struct text_list features;
    /* Metrics; none: the default of each feature. */
    const enum cluster_metric *metrics;
    unsigned metric_count;
    struct clustering_projection projection;
    uint64_t expand; /* replace rows by means with this many neighbours (neighbours/expansion.h) */
    bool diffuse;    /* rank rows by diffusion (neighbours/diffusion.h) */
    /* Clusterings; none: all clusterings of the file. */
    struct text_list names;
    struct clustering_machine machine; /* no device is used */
};

/* The quality of one feature under one metric. */
struct evaluation_feature {
    char name[FEATURE_NAME_MAX];
    uint32_t dimension;         /* of the ranked rows */
    enum cluster_metric metric; /* of the rows, before projection */
    struct ranking ranking;
};

struct evaluation_clusters {
    const struct result_clusters *clusters;
    uint64_t rows; /* with a class and a label */
    struct cluster_agreement agreement;
};

struct evaluation {
    struct result *result;
    struct classes classes;
    struct evaluation_feature *features;
    unsigned feature_count;
    struct evaluation_clusters *clusters;
    unsigned clusters_count;
    struct held held; /* features and clusters */
};

/* STATUS_USAGE: no such file, feature or clustering; STATUS_FAILED: no images, no classes, rows
 * undefined in a metric. Clear it even after a failure. */
enum status evaluation_run(struct evaluation *out, const struct evaluation_config *config,
                           struct error *err);
/* Frees its arrays, closes the file and zeroes the struct. */
void evaluation_clear(struct evaluation *evaluation);

#endif
