/* exact.h: decisions by the canonical distance (canonical.h) for the rows of a tile, on the device
 * or, if that has no float64, on the host. One thread. */
#ifndef CLPIPE_KMEANS_EXACT_H
#define CLPIPE_KMEANS_EXACT_H

#include "kmeans/filter.h"

struct exact_ops;

struct exact {
    const struct exact_ops *ops;
    struct filter *filter;
    struct data *data;
    struct lane *lane;
    const float *centroids; /* k x stride, on the host; set before each pass (assign_centroids) */
    /* Unless on the host: */
    char options[64]; /* of the program kmeans_exact, also for seeding */
    cl_kernel label, distances, others;
    cl_mem values; /* float64 per row of the largest tile */
};

struct exact_ops {
    /* Labels `count` listed rows with the nearest of all centroids; limit: for each row of the
     * tile, an upper bound on its nearest centroid's score. */
    enum status (*label)(struct exact *exact, struct tile *tile, cl_mem rows, cl_uint count,
                         cl_mem limit, struct error *err);
    /* Squared distance of each row to its label's centroid, as float64 slices: see fetch_slices. */
    enum status (*distances)(struct exact *exact, struct tile *tile, uint32_t slices,
                             void (*take)(void *context, const struct fetch_slice *slice),
                             void *context, struct error *err);
    /* The squared distance of each row to the nearest centroid other than its label's. */
    enum status (*other_distances)(struct exact *exact, struct tile *tile, double *distances,
                                   const int32_t *labels, uint32_t k, struct error *err);
};

extern const struct exact_ops exact_device, exact_host;

/* On the device unless lane->host_exact. lane_release of *held frees it. */
enum status exact_open(struct exact *exact, struct lane_held **held, struct filter *filter,
                       struct error *err);

#endif
