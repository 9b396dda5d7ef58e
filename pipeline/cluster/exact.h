/* exact.h: what the canonical distance (canonical.h) decides about the rows of a tile, on the device
 * or, where that has no float64, on the host. */
#ifndef CLPIPE_CLUSTER_EXACT_H
#define CLPIPE_CLUSTER_EXACT_H

#include "cluster/filter.h"

struct exact_ops;

/* The first member of what a row of the table has. */
struct exact {
    const struct exact_ops *ops;
    struct filter *filter;
    struct data *data;
    struct lane *lane;
    const float *centroids; /* k x stride, on the host; set before each pass (assign_centroids) */
    cl_program program;     /* kmeans_exact, for seeding; NULL where the host evaluates */
};

struct exact_ops {
    const char *name;
    bool (*possible)(const struct lane *lane);
    enum status (*open)(struct exact **out, struct filter *filter, struct error *err);
    void (*close)(struct exact *exact);
    /* Labels `count` listed rows by the nearest of all centroids; limit: a score for each row of the
     * tile that its nearest centroid does not exceed. */
    enum status (*label)(struct exact *exact, struct tile *tile, cl_mem rows, cl_uint count,
                         cl_mem limit, struct error *err);
    /* The distance of each row to its label's centroid, float64, in slices: see fetch_slices. */
    enum status (*distances)(struct exact *exact, struct tile *tile, uint32_t slices,
                             void (*take)(void *context, const struct fetch_slice *slice),
                             void *context, struct error *err);
    /* The distance of each row to the nearest centroid but that of its label. */
    enum status (*other_distances)(struct exact *exact, struct tile *tile, double *distances,
                                   const int32_t *labels, uint32_t k, struct error *err);
};

extern const struct exact_ops exact_device, exact_host;

/* The first of both that is possible. */
enum status exact_open(struct exact **out, struct filter *filter, struct error *err);
/* Accepts a pointer to NULL, and NULLs. */
void exact_close(struct exact **exact);

#endif
