/* run.h: what the entries of the engine share, and cluster_run and cluster_sweep_run on one device
 * with a say in what it decides, for tests. */
#ifndef CLPIPE_CLUSTER_RUN_H
#define CLPIPE_CLUSTER_RUN_H

#include "cluster/cluster.h"
#include "cluster/shards.h"
#include "cluster/sweep.h"

/* The device as often as choice says. */
enum status cluster_run_on(struct cluster_outcome *out, struct ocl_context *ocl,
                           const struct matrix_source *source, const struct cluster_config *config,
                           const struct lane_choice *choice, struct error *err);

enum status cluster_sweep_run_on(struct cluster_outcome *best, struct cluster_sweep *sweep,
                                 struct ocl_context *ocl, const struct matrix_source *source,
                                 const struct cluster_config *config,
                                 const struct cluster_sweep_config *values,
                                 const struct lane_choice *choice, struct error *err);

/* Runs `once` on the devices, and again without one that failed as long as there are others. */
enum status
cluster_on_devices(const struct shard_devices *devices,
                   enum status (*once)(void *context, const struct shard_devices *devices,
                                       const struct ocl_context **failed, struct error *err),
                   void *context, struct error *err);

/* Whether the options and the shape of the data make sense; errors are those of cluster_run. */
enum status cluster_check(const struct matrix_source *source, const struct cluster_config *config,
                          uint32_t k, struct error *err);

#endif
