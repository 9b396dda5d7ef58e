/* engine.h: shared by all k-means runs over the same rows: the rows, the device buffers (for the
 * largest k) and the kernels. Each rank has one; all ranks make the same calls. Outcomes hold
 * labels and distances of the rank's rows. */
#ifndef CLPIPE_KMEANS_ENGINE_H
#define CLPIPE_KMEANS_ENGINE_H

#include "kmeans/fit.h"

/* Its parts point to each other: it must not move. */
struct engine {
    struct cluster_config config; /* k: that of the latest run */
    struct shard shard;
    struct fit fit;
    struct checkpoint checkpoint;
};

/* Reads the rows; config->k is the largest k to come. Close it even after an error. Errors are
 * those of cluster_run. */
enum status engine_open(struct engine *engine, const struct rank *rank,
                        const struct cluster_config *config, struct error *err);
/* Frees rows, device buffers and the checkpoint's memory; leaves its file. Not collective. */
void engine_close(struct engine *engine);

/* Runs all restarts for one k, or those that engine->checkpoint does not have yet. The device is
 * left with the last restart, which need not be the best. An error yields no outcome; on
 * STATUS_INTERRUPTED, or if one of several devices failed, the state is saved. */
enum status engine_run(struct cluster_outcome *out, struct engine *engine, uint32_t k,
                       struct error *err);

/* Puts the outcome with less inertia into `best`, which stays as it is if they are equal. */
void engine_keep_better(struct cluster_outcome *best, struct cluster_outcome *other);

/* The outcome of a run that ended with known's centroids, iterations and history, which it takes over from
 * *known. An error yields none. */
enum status engine_complete(struct cluster_outcome *out, struct engine *engine,
                            struct cluster_outcome *known, struct error *err);

#endif
