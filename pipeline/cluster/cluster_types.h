/* cluster_types.h: what goes into a clustering and what comes out of it; cluster.h and sweep.h have the
 * functions. */
#ifndef CLPIPE_CLUSTER_TYPES_H
#define CLPIPE_CLUSTER_TYPES_H

#include "base/stop.h"
#include "matrix/matrix.h"
#include <stdint.h>

struct ocl_context;
struct processes;
struct row_tree;

/* Contexts of one or several devices, the best one first. The outcome does not depend on them. */
struct cluster_devices {
    struct ocl_context *const *contexts;
    uint32_t count;
};

enum cluster_metric { METRIC_EUCLIDEAN, METRIC_COSINE, METRIC_HELLINGER };
enum cluster_init { INIT_KMEANSPP, INIT_KMEANS_PARALLEL, INIT_RANDOM, INIT_GIVEN };

/* Where a run saves its state, so that it can be resumed; see checkpoint.h. */
struct checkpoint_config {
    const char *path;
    double seconds;         /* between two times */
    const char *parameters; /* text that is equal for equal options */
    /* Digests the rows, all of which were read in order before. */
    enum status (*rows)(void *context, char hex[65], struct error *err);
    void *context;
};

struct cluster_config {
    uint32_t k;
    enum cluster_metric metric;
    enum cluster_init init;
    const float *initial; /* INIT_GIVEN: k x dimension, in the data's own space */
    const float *weights; /* of the rows, or NULL: 1 each; see weights.h */
    uint64_t seed;
    uint32_t n_init, max_iter;
    double tol;             /* 0: until no label changes */
    const char *method;     /* how to iterate: "lloyd" (NULL) or "mini-batch"; see method.h */
    uint32_t mini_batch;    /* rows of a batch */
    uint64_t memory;        /* host bytes */
    uint64_t device_memory; /* 0: what the device has */
    unsigned threads;
    struct stop *stop;
    /* Called after each iteration, may be NULL. pruned: the share of all pairs of row and centroid
     * that it did not score. */
    void (*progress)(void *context, uint32_t iteration, double inertia, uint64_t moved,
                     double pruned, double seconds);
    /* Called now and then by what comes before the iterations, and by cluster_assign; may be NULL.
     * `phase` is "rows read", "first centroids" or "rows labelled"; total is 0 as long as it is
     * unknown. */
    void (*phase)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *progress_context;                     /* of both */
    const struct checkpoint_config *checkpoint; /* NULL: no state is kept */
    /* The processes that share the rows, one device each (processes.h); NULL: this one has all of
     * them. Rank 0 gets the outcome. */
    struct processes *processes;
    /* The digest that reading the source's rows fills, or NULL: each process reads its own rows, and at
     * the end all have that of all rows. */
    struct row_tree *reading;
};

/* The outcome; arrays are owned by it. Centroids and distances are in the metric's space
 * (hellinger: of the square roots; cosine: of the unit vectors). */
struct cluster_outcome {
    uint32_t k, dimension, iterations;
    uint64_t rows;
    bool converged;
    double inertia;
    float *centroids;        /* k x dimension */
    int32_t *labels;         /* rows */
    float *distances;        /* rows, squared */
    uint64_t *sizes;         /* k */
    int64_t *nearest;        /* k x 3 rows nearest to the centroid, -1 where there are fewer */
    double *inertia_history; /* iterations; NULL where there were none */
    double pruned;           /* over all assignments: the share of pairs that were not scored */
    double seconds_read, seconds_build, seconds_init, seconds_iterate;
    uint64_t iterations_resumed; /* made before, of all restarts and values of k */
};

/* Frees what an outcome holds, and makes it an empty one. */
void cluster_outcome_clear(struct cluster_outcome *outcome);

/* How well clusters agree with classes. */
struct cluster_agreement {
    double purity, nmi, ari;
};

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

#endif
