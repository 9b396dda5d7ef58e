/* run.h: what the entries of k-means share, and cluster_run and cluster_sweep_run on one device with
 * a say in what it decides, for tests. */
#ifndef CLPIPE_CLUSTER_RUN_H
#define CLPIPE_CLUSTER_RUN_H

#include "cluster/cluster_types.h"
#include "cluster/shard.h"

/* The most ranks that a test can make of one device. */
#define RUN_RANKS 4

/* Ranks are devices in threads of this process, the device as often as choice->ranks says. */
enum status cluster_run_on(struct cluster_outcome *out, struct ocl_context *ocl,
                           const struct matrix_source *source, const struct cluster_config *config,
                           const struct lane_choice *choice, struct error *err);

enum status cluster_sweep_run_on(struct cluster_outcome *best, struct cluster_sweep *sweep,
                                 struct ocl_context *ocl, const struct matrix_source *source,
                                 const struct cluster_config *config,
                                 const struct cluster_sweep_config *values,
                                 const struct lane_choice *choice, struct error *err);

/* What runs on the ranks of this process. */
struct run_job {
    const struct matrix_source *source;
    const struct cluster_config *config;
    const struct lane_choice *choice; /* NULL: what the devices decide */
    /* Called on all ranks; rank 0 fills the outcome. */
    enum status (*main)(void *context, const struct rank *rank, struct error *err);
    void *context;
};

/* Runs the job with a rank for each device, as far as there are blocks of rows for them, and again
 * without a device that failed while there are others; or as one of the processes of the
 * configuration, on the first device. */
enum status cluster_run_ranks(const struct run_job *job, struct ocl_context *const *contexts,
                              uint32_t count, struct error *err);

/* Puts the rank's outcome into the one of all rows, which is zeroed before; *own is empty
 * afterwards. All ranks call it. */
enum status cluster_hand_over(struct cluster_outcome *all, struct cluster_outcome *own,
                              const struct shard *shard, struct error *err);

/* Whether value i, a smaller k than the suggested one, is as good as that, or that has no score. */
bool cluster_sweep_prefers(const struct cluster_sweep *sweep, uint32_t i);

/* Whether the options and the shape of the data make sense; errors are those of cluster_run. */
enum status cluster_check(const struct matrix_source *source, const struct cluster_config *config,
                          uint32_t k, struct error *err);

/* Whether an error came from a device: not from rows, memory or a stop. */
bool cluster_device_failed(const struct error *err);

#endif
