/* sweep.h: k-means for several values of k over rows that are read once, measures to choose among
 * them, and agreement with known classes. docs/clustering.md has the definitions. */
#ifndef CLPIPE_KMEANS_SWEEP_H
#define CLPIPE_KMEANS_SWEEP_H

#include "kmeans/cluster_types.h"

/* n rows; `labels` are below k, `classes` below class_count. STATUS_FAILED: out of memory. */
enum status cluster_agree(struct cluster_agreement *out, const int32_t *labels, uint32_t k,
                          const uint32_t *classes, uint32_t class_count, uint64_t n,
                          struct error *err);

/* Runs every value of k and keeps the outcome of the suggested one in `best`, with the seconds of
 * all of them. config->k is ignored. Each value's outcome is that of cluster_run with that k.
 * Errors are those of cluster_run and yield no outcome. */
enum status cluster_sweep_run(struct cluster_outcome *best, struct cluster_sweep *sweep,
                              const struct cluster_devices *devices,
                              const struct matrix_source *source,
                              const struct cluster_config *config,
                              const struct cluster_sweep_config *values, struct error *err);

#endif
