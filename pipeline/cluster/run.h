/* run.h: cluster_run with a say in what the device decides; for tests. */
#ifndef CLPIPE_CLUSTER_RUN_H
#define CLPIPE_CLUSTER_RUN_H

#include "cluster/cluster.h"
#include "cluster/lane.h"

enum status cluster_run_on(struct cluster_outcome *out, struct ocl_context *ocl,
                           const struct matrix_source *source, const struct cluster_config *config,
                           const struct lane_choice *choice, struct error *err);

#endif
