/* cluster.h: k-means over a matrix of float32 rows, in OpenCL. docs/clustering.md has the
 * definition that makes the result the same on every device. */
#ifndef CLPIPE_KMEANS_CLUSTER_H
#define CLPIPE_KMEANS_CLUSTER_H

#include "kmeans/cluster_types.h"

/* Euclidean k-means from one k-means++ start, k 10, 256 MiB, one thread. */
void cluster_config_default(struct cluster_config *config);

/* Runs, or resumes if config->checkpoint holds the state of the same run; leaves that file. If one
 * of several devices fails, the others resume from there with a notice, or start again if no state
 * is kept. STATUS_USAGE: k < 1 or above INT32_MAX, or no such method; STATUS_FAILED: no rows, k
 * larger than the number of distinct rows, NaN or infinite values (naming the row), invalid weights,
 * zero rows under cosine, negative values under hellinger, device errors; STATUS_INTERRUPTED. */
enum status cluster_run(struct cluster_outcome *out, const struct cluster_devices *devices,
                        const struct matrix_source *source, const struct cluster_config *config,
                        struct error *err);

/* Computes labels and squared distances of rows to given centroids (k x dimension, in the metric's
 * space) into the caller's arrays, one value per row; both are NULL in processes other than the
 * first. Errors as for cluster_run. */
enum status cluster_assign(int32_t *labels, float *distances, const struct cluster_devices *devices,
                           const struct matrix_source *source, const float *centroids, uint32_t k,
                           const struct cluster_config *config, struct error *err);

#endif
