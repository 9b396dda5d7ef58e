/* assign.h: the canonical nearest centroid of every row: filter first, then the rows in doubt. */
#ifndef CLPIPE_CLUSTER_ASSIGN_H
#define CLPIPE_CLUSTER_ASSIGN_H

#include "cluster/half.h"

struct assign {
    struct lane *lane;
    struct data *data;
    struct filter *filter;
    struct half_filter half;
    cl_program program; /* kmeans_exact; NULL where the host does it */
    cl_kernel exact, distances;
    /* Of the largest tile: */
    cl_mem full, partial;                 /* lists of rows */
    cl_mem full_flagged, partial_flagged; /* those in doubt */
    cl_mem upper;                         /* float32 a row */
    cl_mem counts;                        /* of the four lists */
    cl_mem tile_distances;                /* float64 a row; NULL where the host does it */
    float *centroids;                     /* the host's copy: k x stride; the caller's memory */
    uint64_t flagged;                     /* rows decided by the canonical distance, so far */
    uint64_t searched;                    /* rows times centroids scored, so far */
};

enum status assign_open(struct assign *assign, struct filter *filter, struct error *err);
void assign_close(struct assign *assign);

/* Takes k centroids (k x stride values; they stay the caller's and must stay as they are until the
 * next call). `moved` as in filter_set_centroids: with it, labels and scores of the tiles must be
 * those of the previous centroids. *incremental tells whether tiles may be assigned so. */
enum status assign_centroids(struct assign *assign, bool *incremental, float *centroids, uint32_t k,
                             const uint8_t *moved, struct error *err);

/* The same for centroids that are on the device: see filter_use_centroids. */
enum status assign_use_centroids(struct assign *assign, bool *incremental, uint32_t k,
                                 const uint8_t *moved, struct error *err);

/* Labels an acquired tile. incremental: only rows whose centroid moved are searched in full, the
 * others only among the centroids that moved. Returns when it is done. */
enum status assign_tile(struct assign *assign, struct tile *tile, bool incremental,
                        struct error *err);

/* The canonical distance of each row of an acquired tile to its label's centroid. */
enum status assign_tile_distances(struct assign *assign, struct tile *tile, double *distances,
                                  struct error *err);

#endif
