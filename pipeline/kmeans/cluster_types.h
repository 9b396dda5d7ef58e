/* cluster_types.h: input and output of a clustering; cluster.h and sweep.h have the functions. */
#ifndef CLPIPE_CLUSTER_TYPES_H
#define CLPIPE_CLUSTER_TYPES_H

#include "base/labelled.h"
#include "base/watch.h"
#include "matrix/matrix.h"
#include <stdint.h>

struct lane_choice;
struct ocl_context;
struct processes;
struct row_tree;

/* Contexts of one or more devices, the best one first. They do not affect the outcome. */
struct cluster_devices {
    struct ocl_context *const *contexts;
    uint32_t count;
};

enum cluster_metric { METRIC_EUCLIDEAN, METRIC_COSINE, METRIC_HELLINGER };
enum cluster_init { INIT_KMEANSPP, INIT_KMEANS_PARALLEL, INIT_RANDOM, INIT_GIVEN };

struct checkpoint_fits;

/* Where a run saves its state in order to resume; see checkpoint.h. */
struct checkpoint_config {
    const char *path;
    double seconds;         /* between two saves */
    const char *parameters; /* text that identifies the options */
    /* Digest of the rows, once all have been read in order. */
    enum status (*rows)(void *context, char hex[65], struct error *err);
    void *context;
    struct checkpoint_fits *fits; /* of a job with several fits; NULL: there is one */
};

struct cluster_config {
    uint32_t k;
    enum cluster_metric metric;
    enum cluster_init init;
    const float *initial; /* INIT_GIVEN: k x dimension, in the data's own space */
    const float *weights; /* one per row, or NULL: all 1; see weights.h */
    uint64_t seed;
    uint32_t n_init, max_iter;
    double tol;             /* 0: until no label changes */
    const char *method;     /* how to iterate: "lloyd" (NULL) or "mini-batch"; see method.h */
    uint32_t mini_batch;    /* rows per batch */
    uint64_t memory;        /* host bytes */
    uint64_t device_memory; /* 0: all of the device's memory */
    unsigned threads;
    /* Shows "rows read", "first centroids", "rows labelled" and "clusters divided"; total is 0 while
     * unknown. */
    struct watch watch;
    /* Called after each iteration with the watch's context; may be NULL. pruned: share of all (row,
     * centroid) pairs that were not scored. */
    void (*iteration)(void *context, uint32_t iteration, double inertia, uint64_t moved,
                      double pruned, double seconds);
    /* Afterwards, round the centroids to whole numbers, halves up: labels and distances are those of
     * the rounded ones, all else that of the run. */
    bool whole;
    const struct checkpoint_config *checkpoint; /* NULL: no state is kept */
    /* The processes that share the rows, one device each (processes.h); NULL: this process has all
     * rows. Rank 0 gets the outcome. */
    struct processes *processes;
    /* The digest that reading the source's rows updates, or NULL. Each process digests its own
     * rows; at the end all have the digest of all rows. */
    struct row_tree *reading;
    const struct lane_choice *choice; /* NULL: the devices decide; else forced by tests */
};

/* The outcome; it owns its arrays. Centroids and distances are in the metric's space (hellinger:
 * that of the square roots; cosine: that of unit vectors). */
struct cluster_outcome {
    uint32_t k, dimension, iterations;
    uint64_t rows;
    bool converged;
    double inertia;
    float *centroids;        /* k x dimension */
    int32_t *labels;         /* rows */
    float *distances;        /* rows, squared */
    uint64_t *sizes;         /* k */
    int64_t *nearest;        /* k x 3 rows nearest to the centroid; -1 if there are fewer */
    double *inertia_history; /* one per iteration; NULL if there were none */
    double pruned;           /* share of pairs not scored, over all assignments */
    double seconds_read, seconds_build, seconds_init, seconds_iterate;
    uint64_t iterations_resumed; /* made before resuming, over all restarts and values of k */
};

/* An outcome that has only its centroids and its history, zeroed; or a copy of them, which uses the centroids'
 * memory of *out, zeroed or an earlier copy of as many. Clear it even after a failure. */
enum status cluster_outcome_open(struct cluster_outcome *out, uint32_t k, uint32_t dimension,
                                 uint32_t iterations, struct error *err);
enum status cluster_outcome_copy(struct cluster_outcome *out, const struct cluster_outcome *from,
                                 struct error *err);
/* Frees an outcome's arrays and zeroes it. */
void cluster_outcome_clear(struct cluster_outcome *outcome);

struct cluster_sweep_config {
    uint32_t first, last, step; /* values of k: first, first + step, ... up to last */
    const uint32_t *classes;    /* a class per row, or NULL */
    uint32_t class_count;
    /* Called before each value with the context of the clustering's watch; may be NULL. */
    void (*progress)(void *context, uint32_t k, uint32_t done, uint32_t count);
};

#endif
