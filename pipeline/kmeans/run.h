/* run.h: shared by the entry points of k-means. */
#ifndef CLPIPE_KMEANS_RUN_H
#define CLPIPE_KMEANS_RUN_H

#include "kmeans/cluster_types.h"
#include "kmeans/shard.h"

/* A job for the ranks of this process. */
struct run_job {
    const struct matrix_source *source;
    const struct cluster_config *config;
    /* Called on all ranks; rank 0 fills the outcome. */
    enum status (*main)(void *context, const struct rank *rank, struct error *err);
    void *context;
    bool all_ranks; /* even with a method that uses one device: `main` uses the others */
};

/* Runs the job with one rank per device, as long as there are chunks of rows for each, and again
 * without a device that failed while others are left; or as one of the processes of the
 * configuration, on the first device. */
enum status cluster_run_ranks(const struct run_job *job, const struct cluster_devices *devices,
                              struct error *err);

/* Merges the rank's outcome into the zeroed one of all rows; *own is empty then. Collective. */
enum status cluster_hand_over(struct cluster_outcome *all, struct cluster_outcome *own,
                              const struct shard *shard, struct error *err);

struct engine;
/* A rank's part of cluster_run on the rows of its engine, for engine->config; may be called
 * repeatedly. known: completes the outcome of a run that ended with known->centroids, iterations
 * and history, by one assignment, after which a cluster without rows gets one; the checkpoint keeps
 * nothing of it. Takes these arrays over. NULL: runs k-means. */
enum status cluster_fit(struct cluster_outcome *out, struct engine *engine, const struct rank *rank,
                        struct cluster_outcome *known, struct error *err);

/* Whether value i, a smaller k than the suggested one, is as good, or the suggested one has no
 * score. */
bool cluster_sweep_prefers(const struct cluster_sweep *sweep, uint32_t i);

/* Checks the options and the shape of the data; errors are those of cluster_run. */
enum status cluster_check(const struct matrix_source *source, const struct cluster_config *config,
                          uint32_t k, struct error *err);

/* Whether an error came from a device: not from rows, memory or a stop. */
bool cluster_device_failed(const struct error *err);

#endif
