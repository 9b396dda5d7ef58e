/* levels.h: k-means of rows, and again of the resulting centroids. */
#ifndef CLPIPE_KMEANS_LEVELS_H
#define CLPIPE_KMEANS_LEVELS_H

#include "kmeans/cluster_types.h"

#define CLUSTER_LEVELS 9

struct cluster_levels_config {
    uint32_t count;             /* of levels; 1: of rows alone */
    uint32_t k[CLUSTER_LEVELS]; /* descending */
    uint32_t nearest,
        rounds;     /* how often a level is resampled: from so many rows of each cluster */
    uint32_t split; /* 0, or of two levels: k[1] clusters are made, and each divided into so many */
};

/* A level: labels, distances, sizes, nearest and inertia of its outcome are of all rows, iterations and
 * history of the k-means of what it clusters. */
struct cluster_level {
    struct cluster_outcome outcome;
    int32_t *parents; /* k: clusters of the next level; NULL: it is the last */
};

/* Level 1 is the k-means of the rows, as in cluster_run. Each further one is that of the centroids below, each
 * with weight 1, by the metric (hellinger: euclidean, as they are roots), with the same seed and stop rule;
 * given first centroids and weights are for the rows. A row has the label of its cluster's parent.
 *
 * Resampling, `rounds` times: the rows nearest to each centroid (all of weight 0 left out) are clustered from
 * random centroids with the seed one higher each time, and all rows go to the nearest result.
 *
 * A split: the k-means of the rows with k[1] clusters is level 2. The rows of each of these (those of weight 0
 * left out) are clustered by themselves, from k-means++ with the same seed and stop rule, with k = `split`, or
 * as many as there are different rows. The centroids of all, in the order of their parents, are level 1, and
 * each row is assigned to the nearest of them. Iteration i of level 1 has the sum of the inertias of all parts,
 * for one that has stopped, its last.
 *
 * Errors are those of cluster_run; levels, zeroed before, are to be cleared also after one. In processes but
 * the first they stay zeroed. */
enum status cluster_levels_run(struct cluster_level *levels, const struct cluster_devices *devices,
                               const struct matrix_source *source,
                               const struct cluster_config *config,
                               const struct cluster_levels_config *wanted, struct error *err);
/* Labels rows at every level above the first, whose outcome has their labels. Each other has centroids, room
 * for sizes and nearest, and as labels the parents of the level below, which become that level's `parents`. */
enum status cluster_levels_spread(struct cluster_level *levels, uint32_t count,
                                  const struct matrix_source *source,
                                  const struct cluster_config *config, struct error *err);
/* Frees and resets the outcomes and parents of `count` levels. */
void cluster_levels_clear(struct cluster_level *levels, uint32_t count);

#endif
