/* moves.h: the update where it need not leave the device: resident rows, 64-bit atomics and
 * float64.
 *
 * Sums, counts, centroids and the labels that the sums hold stay on the device; the host gets a few
 * numbers of each cluster. The bits are those of update.c. */
#ifndef CLPIPE_CLUSTER_MOVES_H
#define CLPIPE_CLUSTER_MOVES_H

#include "cluster/filter.h"
#include "cluster/update.h"

struct moves {
    bool used; /* the device can, and the rows are resident */
    struct update *update;
    struct filter *filter;
    cl_program program;
    cl_kernel count, scan, place, sum, centroids;
    cl_mem joins, leaves, cursors; /* k */
    cl_mem counts;       /* k; then entries of the tile, and of all since the last reset */
    cl_mem owners;       /* 2 for each row of the largest tile */
    cl_mem units, means; /* of columns */
    cl_mem facts;        /* k x KMEANS_FACTS */
    double *host_facts;
    cl_int *host_counts;
    cl_uint entries; /* of all, as of the last read */
    bool fresh;      /* no row is in the sums yet */
};

/* Leaves `used` false where it cannot be. */
enum status moves_open(struct moves *moves, struct update *update, struct filter *filter,
                       struct error *err);
void moves_close(struct moves *moves);

/* Forgets all rows; follows update_reset. */
enum status moves_reset(struct moves *moves, struct error *err);

/* Brings the sums up to the labels of one tile. */
enum status moves_tile(struct moves *moves, struct tile *tile, struct error *err);

/* After all tiles: how many rows moved, and update->counts. */
enum status moves_read(uint64_t *moved, struct moves *moves, struct error *err);

/* Moves the device's centroids to the means. drifts[] grows by how far each has moved;
 * update->parts gets the clusters' inertia about the old ones; *shift is the sum of the squared
 * moves. The filter has been given what filter_use_centroids wants. */
enum status moves_centroids(double *shift, double *drifts, struct moves *moves, struct error *err);

/* Brings the centroids (k x stride) to the host. */
enum status moves_read_centroids(struct moves *moves, float *centroids, struct error *err);

/* Brings labels (of all rows) and centroids (k x stride; NULL for none) to the host, and takes back
 * counts and labels after the host has moved rows. */
enum status moves_fetch(struct moves *moves, int32_t *labels, float *centroids, struct error *err);
enum status moves_store(struct moves *moves, const int32_t *labels, struct error *err);

#endif
