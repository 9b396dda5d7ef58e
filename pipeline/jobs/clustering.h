/* clustering.h: the clustering job, from INPUT to /clusters/NAME, and the one that assigns rows to the
 * centroids of a clustering (labelling.c). The diagram at the top of clustering.c shows the flow. */
#ifndef CLPIPE_JOBS_CLUSTERING_H
#define CLPIPE_JOBS_CLUSTERING_H

#include "base/parse.h"
#include "jobs/cluster_job.h"

/* The default tolerance, as in scikit-learn. */
#define CLUSTERING_TOL 1e-4

struct clustering_config {
    struct cluster_job_config job;
    struct number_range k;               /* several: keeps the best one, and the measures of all */
    struct cluster_levels_config levels; /* count 0: only k; else k is that of the first level */
    bool lower_k;   /* k is a default: lower it to the number of distinct rows, or */
    bool usual_k;   /* to clustering_usual_k, with a notice */
    int metric;     /* enum cluster_metric; -1: the default for the rows */
    bool as_preset; /* project as the preset defines; else: */
    struct clustering_projection projection;
    bool usual_pca;      /* its pca is a default: no components if all rows are equal */
    const char *init;    /* kmeans++, kmeans-parallel, random, or a .npy file */
    const char *method;  /* of kmeans/method.h; NULL: the one that mini_batch implies */
    const char *weights; /* as matrix_input_vector takes them, or NULL */
    uint64_t seed;
    /* n_init 0: 1 or, with `restarts`, clustering_usual_restarts. tol below 0: CLUSTERING_TOL, for
     * mini-batches 0. Both default to the values of a stored clustering that is otherwise the
     * same. */
    uint64_t n_init;
    bool restarts;
    uint64_t max_iter, mini_batch; /* mini_batch: rows per batch; 0: all rows */
    double tol;
    double checkpoint_seconds; /* between saved states; 0: none are saved */
    bool by_run;               /* as in struct result_clustering; such a result is replaced */
};

/* Runs, or finds the result in the file. STATUS_USAGE: the name belongs to a result made with other
 * parameters, or an option is invalid for these rows; else as cluster_run. Clear the report even
 * after a failure. */
enum status clustering_run(struct clustering_report *report, const struct clustering_config *config,
                           struct error *err);

/* Labels the rows by the clusters config->name (NULL: the only ones) of the clpipe file `centroids`,
 * or finds the labels in the file; errors and report as for clustering_run, but without seconds.
 * config->feature NULL: the clustered one. STATUS_FAILED: the rows are not of the clustered feature. */
enum status labelling_run(struct clustering_report *report, const char *centroids,
                          const struct cluster_job_config *config, struct error *err);

/* The default k: 10, but at least five images per cluster on average, and at least 2. */
uint32_t clustering_usual_k(uint64_t rows);

/* 10 runs from different initial centroids if that is cheap: rows x dimension x the sum of all
 * values of k is at most 2^31; else 1. */
uint32_t clustering_usual_restarts(uint64_t rows, uint32_t dimension, const struct number_range *k);

/* STATUS_USAGE unless `name` can name a dataset: letters, digits, "_", "-" and ".". */
enum status clustering_check_name(const char *name, struct error *err);

#endif
