/* levels.h: k-means of rows, and again of the resulting centroids. */
#ifndef CLPIPE_KMEANS_LEVELS_H
#define CLPIPE_KMEANS_LEVELS_H

#include "kmeans/cluster_types.h"

#define CLUSTER_LEVELS 9

struct cluster_levels_config {
    uint32_t count;             /* of levels; 1: of rows alone */
    uint32_t k[CLUSTER_LEVELS]; /* descending */
    uint32_t rounds;            /* of resampling each level; 0: none */
    uint32_t nearest;           /* rows of each cluster that a round takes */
    uint32_t split; /* 0; else, of two levels, each of the k[1] clusters is divided into so many */
};

/* A level. In its outcome, labels, distances, sizes, nearest and inertia refer to the rows;
 * iterations and history to the k-means of the level. */
struct cluster_level {
    struct cluster_outcome outcome;
    int32_t *parents; /* k: clusters of the next level; NULL: it is the last */
};

/* Level 1 is the k-means of the rows, as in cluster_run. Each further level is the k-means of the
 * centroids below it, each with weight 1, by the same metric (hellinger: euclidean, as centroids are
 * of roots), seed and stop rule; given initial centroids and weights apply to level 1. The label of a
 * row is the parent of its cluster in the level below.
 *
 * Resampling, `rounds` times: the `nearest` rows of each centroid (none of weight 0) are clustered
 * from k-means++, with the seed one higher each time; then all rows are assigned to the resulting
 * centroids.
 *
 * A split: level 2 is the k-means of the rows with k[1] clusters. The rows of each (none of weight 0)
 * are clustered by themselves, from k-means++ with the same seed and stop rule, with k = `split`, or
 * the number of distinct rows if that is smaller. All the centroids, in the order of their parents,
 * are level 1, and each row is assigned to the nearest of them. The inertia of iteration i of level 1
 * is the sum over the parts; a part that has stopped adds its last.
 *
 * Errors are those of cluster_run. The caller zeroes the levels before, and clears them even after an
 * error. In processes other than the first they stay zeroed. */
enum status cluster_levels_run(struct cluster_level *levels, const struct cluster_devices *devices,
                               const struct matrix_source *source,
                               const struct cluster_config *config,
                               const struct cluster_levels_config *wanted, struct error *err);
/* Labels rows at every level above the first, whose outcome has their labels. Each of these levels
 * has centroids, room for sizes and nearest, and as labels the parents of the level below, which
 * become that level's `parents`. */
enum status cluster_levels_spread(struct cluster_level *levels, uint32_t count,
                                  const struct matrix_source *source,
                                  const struct cluster_config *config, struct error *err);
/* Frees and resets the outcomes and parents of `count` levels. */
void cluster_levels_clear(struct cluster_level *levels, uint32_t count);

#endif
