/* run.h: what the entries of the engine share, and cluster_run and
 * cluster_sweep_run with a say in what the device
 * decides, for tests. */
#ifndef CLPIPE_CLUSTER_RUN_H
#define CLPIPE_CLUSTER_RUN_H

#include "cluster/cluster.h"
#include "cluster/lane.h"
#include "cluster/sweep.h"

enum status cluster_run_on(struct cluster_outcome *out, struct ocl_context *ocl,
                           const struct matrix_source *source, const struct cluster_config *config,
                           const struct lane_choice *choice, struct error *err);

enum status cluster_sweep_run_on(struct cluster_outcome *best, struct cluster_sweep *sweep,
                                 struct ocl_context *ocl, const struct matrix_source *source,
                                 const struct cluster_config *config,
                                 const struct cluster_sweep_config *values,
                                 const struct lane_choice *choice, struct error *err);

/* Whether the options and the shape of the data make sense; errors are those of cluster_run. */
enum status cluster_check(const struct matrix_source *source, const struct cluster_config *config,
                          uint32_t k, struct error *err);

#endif
