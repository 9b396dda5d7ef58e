/* sweep.h: k-means for several values of k over rows that are read once, what speaks for each
 * value, and how well clusters agree with classes that are known. docs/clustering.md has the
 * definitions. */
#ifndef CLPIPE_CLUSTER_SWEEP_H
#define CLPIPE_CLUSTER_SWEEP_H

#include "cluster/cluster.h"

/* How well clusters agree with classes. */
struct cluster_agreement {
    double purity, nmi, ari;
};

/* `labels` are below k, `classes` below class_count; n rows. */
enum status cluster_agree(struct cluster_agreement *out, const int32_t *labels, uint32_t k,
                          const uint32_t *classes, uint32_t class_count, uint64_t n,
                          struct error *err);

/* How compact clusters are and how far apart; NaN where a measure is not defined. */
struct cluster_measures {
    double silhouette; /* of the sample */
    double simplified_silhouette, davies_bouldin, calinski_harabasz;
};

struct cluster_sweep_value {
    uint32_t k, iterations;
    bool converged;
    double inertia;
    struct cluster_measures measures;
    struct cluster_agreement agreement; /* NaN without classes */
};

struct cluster_sweep_config {
    uint32_t first, last, step; /* values of k: first, first + step, ... up to last */
    const uint32_t *classes;    /* a class for each row, or NULL */
    uint32_t class_count;
    /* Called before each value, may be NULL; its context is the clustering's progress_context. */
    void (*progress)(void *context, uint32_t k, uint32_t done, uint32_t count);
};

struct cluster_sweep {
    uint32_t count;
    struct cluster_sweep_value *values; /* k ascending */
    uint32_t sample;                    /* rows of the silhouette */
    bool simplified;                    /* k was chosen by the simplified silhouette */
    uint32_t suggested;                 /* index into values */
    char reason[240];                   /* why that k: one sentence without its full stop */
};

/* Runs for every value and keeps the outcome of the suggested one in `best`, with the seconds of
 * all of them. config->k is not used. Each value's outcome is that of cluster_run with that k.
 * Errors are those of cluster_run; there is no outcome then. */
enum status cluster_sweep_run(struct cluster_outcome *best, struct cluster_sweep *sweep,
                              const struct cluster_devices *devices,
                              const struct matrix_source *source,
                              const struct cluster_config *config,
                              const struct cluster_sweep_config *values, struct error *err);
void cluster_sweep_clear(struct cluster_sweep *sweep);

#endif
