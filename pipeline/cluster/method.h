/* method.h: the methods of k-means: what an iteration is.
 *
 * A method is one file and one row of the table in methods.c. Everything around the iterations
 * (first centroids, restarts, their greatest number, the state that a run resumes from,
 * the last assignment) is the same for all of them: see fit.h. */
#ifndef CLPIPE_CLUSTER_METHOD_H
#define CLPIPE_CLUSTER_METHOD_H

#include "cluster/cluster_types.h"

struct fit;

/* What an iteration did. */
struct method_step {
    double inertia;      /* about the centroids that it began with */
    uint64_t moved;      /* rows that changed their cluster */
    double pruned;       /* the share of pairs of row and centroid that it did not score */
    bool converged;      /* no further iteration is wanted, */
    bool labels_current; /* and the rows' labels are those of the final centroids */
};

struct kmeans_method {
    const char *name;
    bool one_device;  /* works with the rows of one device, which then has all of them */
    bool random;      /* restarts differ even where their first centroids are equal */
    bool keeps_sums;  /* the clusters' sums are part of the state that a run resumes from */
    bool labels_rows; /* an iteration labels all rows, so the last assignment is incremental */
    /* STATUS_USAGE where the options make no sense. NULL: they always do. */
    enum status (*check)(const struct cluster_config *config, struct error *err);
    /* Rows that the sums may hold, a row counted as often as it is added. NULL: each once. */
    uint64_t (*samples)(const struct cluster_config *config);
    /* Prepares iteration `first` and those after it. *out is NULL after an error. */
    enum status (*open)(void **out, struct fit *fit, uint32_t first, struct error *err);
    /* Moves fit->centroids once. After an error they are as they were. */
    enum status (*iterate)(struct method_step *step, void *method, uint32_t iteration,
                           struct error *err);
    void (*close)(void **method); /* accepts a pointer to NULL */
};

extern const struct kmeans_method lloyd_method, minibatch_method;

/* The table, the default method first, NULL last. */
extern const struct kmeans_method *const kmeans_methods[];

/* The method that config->method names; NULL if the table has none of that name. */
const struct kmeans_method *method_of(const struct cluster_config *config);

/* method->samples; 0 where each row counts once. */
uint64_t method_samples(const struct cluster_config *config);

#endif
