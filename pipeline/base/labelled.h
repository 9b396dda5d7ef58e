/* labelled.h: cluster sizes, nearest rows and inertia, from the labels and distances of rows; measures
 * of clusters. */
#ifndef CLPIPE_BASE_LABELLED_H
#define CLPIPE_BASE_LABELLED_H

#include <stdbool.h>
#include <stdint.h>

/* sizes[k]: rows per cluster. nearest[k x n]: the n rows nearest to each centroid, nearest first,
 * ties by row number; -1 if there are fewer. labels and distances: one per row; only labels of the
 * k clusters from `first` on count. */
void labelled_count(uint64_t *sizes, int64_t *nearest, uint32_t n, const int32_t *labels,
                    const float *distances, uint64_t rows, uint32_t first, uint32_t k);

/* The sum of the distances of rows with a label (not below 0), each times its weight; weights may be
 * NULL: all 1. Added in the order of rows. */
double labelled_inertia(const int32_t *labels, const float *distances, const float *weights,
                        uint64_t rows);

/* Agreement of clusters with classes. */
struct cluster_agreement {
    double purity, nmi, ari;
};

/* Compactness and separation of clusters; NaN if a measure is undefined. */
struct cluster_measures {
    double silhouette; /* of the sample */
    double simplified_silhouette, davies_bouldin, calinski_harabasz;
};

/* The clusters of one k. */
struct cluster_sweep_value {
    uint32_t k, iterations;
    uint8_t converged; /* 0 or 1 */
    double inertia;
    struct cluster_measures measures;
    struct cluster_agreement agreement; /* NaN without classes */
};

/* Clusterings of the same rows with several values of k, of which one is suggested. */
struct cluster_sweep {
    uint32_t count;
    struct cluster_sweep_value *values; /* k ascending; NULL: there is no sweep */
    uint32_t sample;                    /* rows in the silhouette's sample */
    bool has_classes;                   /* the values have an agreement */
    char measure[24];   /* by which k was chosen: "silhouette" or "simplified_silhouette" */
    char reason[256];   /* why this k: a sentence without its full stop */
    uint32_t suggested; /* index into values; while k-means runs */
};
/* Frees the values and resets it. */
void cluster_sweep_clear(struct cluster_sweep *sweep);
/* The measure of value i by which k was chosen. */
double cluster_sweep_score(const struct cluster_sweep *sweep, uint32_t i);

#endif
