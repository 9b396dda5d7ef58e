/* cluster.h: k-means over a matrix of float32 rows, in OpenCL. See docs/clustering.md for the
 * definition that makes the answer the same on every device. */
#ifndef CLPIPE_CLUSTER_CLUSTER_H
#define CLPIPE_CLUSTER_CLUSTER_H

#include "base/stop.h"
#include "matrix/matrix.h"
#include <stdint.h>

struct ocl_context;

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
     * `phase` is "rows read", "first centroids" or "rows labelled"; total is 0 while it is not known
     * it. */
    void (*phase)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *progress_context;                     /* of both */
    const struct checkpoint_config *checkpoint; /* NULL: no state is kept */
};

/* One run of Euclidean k-means from k-means++, k 10, 256 MiB, one thread. */
void cluster_config_default(struct cluster_config *config);

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

/* Runs, or resumes where config->checkpoint has the state of the same run; the file stays when it is
 * done. Where one of several devices fails the others resume from there, with a notice, or begin
 * again if no state is kept. STATUS_USAGE: k < 1; STATUS_FAILED: no rows, k larger than the number
 * of distinct rows, NaN or infinite values (which row), invalid weights, zero rows under
 * cosine, negative values under hellinger, device errors; STATUS_INTERRUPTED. */
enum status cluster_run(struct cluster_outcome *out, const struct cluster_devices *devices,
                        const struct matrix_source *source, const struct cluster_config *config,
                        struct error *err);

/* Labels and squared distances of rows to given centroids (k x dimension, in the metric's space).
 */
enum status cluster_assign(int32_t *labels, float *distances, const struct cluster_devices *devices,
                           const struct matrix_source *source, const float *centroids, uint32_t k,
                           const struct cluster_config *config, struct error *err);

/* Frees what an outcome holds, and makes it an empty one. */
void cluster_outcome_clear(struct cluster_outcome *outcome);

#endif
