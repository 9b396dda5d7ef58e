/* method.h: the k-means methods, which define an iteration.
 *
 * A method is one file and one row of KMEANS_METHODS. Everything around the iterations
 * (initial centroids, restarts, the iteration limit, the state to resume from, the last assignment)
 * is common to all: see fit.h. */
#ifndef CLPIPE_KMEANS_METHOD_H
#define CLPIPE_KMEANS_METHOD_H

#include "kmeans/cluster_types.h"

struct fit;

/* The outcome of an iteration. */
struct method_step {
    double inertia;      /* about the centroids before it */
    uint64_t moved;      /* rows that changed their cluster */
    double pruned;       /* the share of (row, centroid) pairs that were not scored */
    bool converged;      /* no further iteration is needed */
    bool labels_current; /* the rows' labels are those of the final centroids */
};

struct kmeans_method {
    const char *name;
    bool one_device;  /* needs all rows on one device */
    bool random;      /* restarts differ even with the same initial centroids */
    bool keeps_sums;  /* resuming needs the clusters' sums */
    bool labels_rows; /* an iteration labels all rows, so the last assignment is incremental */
    /* STATUS_USAGE if the options are invalid. NULL: they never are. */
    enum status (*check)(const struct cluster_config *config, struct error *err);
    /* Maximum number of rows in the sums, counted each time they are added. NULL: each once. */
    uint64_t (*samples)(const struct cluster_config *config);
    /* Prepares the iterations from `first` on. *out is NULL after an error. */
    enum status (*open)(void **out, struct fit *fit, uint32_t first, struct error *err);
    /* Moves fit->centroids once. An error leaves them unchanged. */
    enum status (*iterate)(struct method_step *step, void *method, uint32_t iteration,
                           struct error *err);
    void (*close)(void **method); /* accepts a pointer to NULL */
};

/* All methods, the default first: NAME_method is a struct kmeans_method, and WORD its name. */
#define KMEANS_METHODS(METHOD) METHOD(lloyd, "lloyd") METHOD(minibatch, "mini-batch")

#define DECLARE_METHOD(name, word) extern const struct kmeans_method name##_method;
KMEANS_METHODS(DECLARE_METHOD)
#undef DECLARE_METHOD
/* All of them, followed by NULL. */
extern const struct kmeans_method *const kmeans_methods[];

/* The method named by config->method; NULL if there is none. */
const struct kmeans_method *method_of(const struct cluster_config *config);

/* method->samples; 0: each row counts once. */
uint64_t method_samples(const struct cluster_config *config);

#endif
