/* cluster_on.h: runs k-means on one device with forced choices; several ranks share the device. */
#ifndef CLPIPE_TESTS_CLUSTER_ON_H
#define CLPIPE_TESTS_CLUSTER_ON_H

#include "kmeans/cluster.h"
#include "kmeans/sweep.h"
#include "ocl/lane.h"

/* Maximum number of ranks. */
#define RUN_RANKS 4

static inline struct cluster_config force(const struct cluster_config *config,
                                          const struct lane_choice *choice)
{
    struct cluster_config forced = *config;
    forced.choice = choice;
    return forced;
}

static inline enum status cluster_run_on(struct cluster_outcome *out, struct ocl_context *ocl,
                                         const struct matrix_source *source,
                                         const struct cluster_config *config,
                                         const struct lane_choice *choice, struct error *err)
{
    struct ocl_context *const same[RUN_RANKS] = {ocl, ocl, ocl, ocl};
    const struct cluster_config forced = force(config, choice);
    return cluster_run(out, &(struct cluster_devices){same, choice->ranks}, source, &forced, err);
}

static inline enum status cluster_sweep_run_on(struct cluster_outcome *best,
                                               struct cluster_sweep *sweep, struct ocl_context *ocl,
                                               const struct matrix_source *source,
                                               const struct cluster_config *config,
                                               const struct cluster_sweep_config *values,
                                               const struct lane_choice *choice, struct error *err)
{
    struct ocl_context *const same[RUN_RANKS] = {ocl, ocl, ocl, ocl};
    const struct cluster_config forced = force(config, choice);
    return cluster_sweep_run(best, sweep, &(struct cluster_devices){same, choice->ranks}, source,
                             &forced, values, err);
}

#endif
