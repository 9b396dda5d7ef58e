/* cluster.h: k-means over a matrix of float32 rows, in OpenCL. See docs/clustering.md for the
 * definition that makes the answer the same on every device. */
#ifndef CLPIPE_CLUSTER_CLUSTER_H
#define CLPIPE_CLUSTER_CLUSTER_H

#include "cluster/cluster_types.h"

/* One run of Euclidean k-means from k-means++, k 10, 256 MiB, one thread. */
void cluster_config_default(struct cluster_config *config);

/* Runs, or resumes where config->checkpoint has the state of the same run; the file stays when it is
 * done. Where one of several devices fails the others resume from there, with a notice, or begin
 * again if no state is kept. STATUS_USAGE: k < 1; STATUS_FAILED: no rows, k larger than the number
 * of distinct rows, NaN or infinite values (which row), invalid weights, zero rows under
 * cosine, negative values under hellinger, device errors; STATUS_INTERRUPTED. */
enum status cluster_run(struct cluster_outcome *out, const struct cluster_devices *devices,
                        const struct matrix_source *source, const struct cluster_config *config,
                        struct error *err);

/* Labels and squared distances of rows to given centroids (k x dimension, in the metric's space).
 * Both are NULL in processes but the first. */
enum status cluster_assign(int32_t *labels, float *distances, const struct cluster_devices *devices,
                           const struct matrix_source *source, const float *centroids, uint32_t k,
                           const struct cluster_config *config, struct error *err);

#endif
