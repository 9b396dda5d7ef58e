/* engine.h: everything that runs of k-means over the same rows share: the rows, the device's buffers
 * (for the largest k) and the kernels. Each rank has one; all ranks make the same calls. Outcomes
 * have labels and distances of the rank's rows. */
#ifndef CLPIPE_CLUSTER_ENGINE_H
#define CLPIPE_CLUSTER_ENGINE_H

#include "cluster/fit.h"

/* Its parts point to each other: it stays where it was opened. */
struct engine {
    struct cluster_config config; /* k: of the latest run */
    struct shard shard;
    struct fit fit;
    struct checkpoint checkpoint;
};

/* Reads the rows; config->k is the largest k to come. To be closed after an error, too. Errors are
 * those of cluster_run. */
enum status engine_open(struct engine *engine, const struct rank *rank,
                        const struct cluster_config *config, struct error *err);
/* Frees the rows, the device's buffers and the checkpoint's memory; its file stays. Not a collective
 * call. */
void engine_close(struct engine *engine);

/* All restarts for one k, or those that engine->checkpoint does not have yet. What it leaves on the
 * device is that of the last restart, which need not be the best one. After an error there is no
 * outcome; after STATUS_INTERRUPTED, and where a device of several failed, the state is kept. */
enum status engine_run(struct cluster_outcome *out, struct engine *engine, uint32_t k,
                       struct error *err);

/* The outcome of less inertia ends up in `best`, which stays as it is where both are equal. */
void engine_keep_better(struct cluster_outcome *best, struct cluster_outcome *other);

/* Fills an outcome that has its k, centroids, iterations and history only. There is none after an
 * error. */
enum status engine_complete(struct cluster_outcome *out, struct engine *engine, struct error *err);

#endif
