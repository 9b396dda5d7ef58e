/* seed.h: first centroids. */
#ifndef CLPIPE_CLUSTER_SEED_H
#define CLPIPE_CLUSTER_SEED_H

#include "cluster/checkpoint.h"
#include "cluster/shard.h"

/* k-means++ (the greedy one), k-means|| or random rows, by config->init, into centroids (k x stride
 * values); `run` counts the restarts. k-means++ keeps its state in the checkpoint, and resumes
 * where that has some seeds. All ranks call it. STATUS_FAILED if there are fewer than k distinct rows and that was
 * noticed. */
enum status seed_centroids(float *centroids, struct shard *shard,
                           const struct cluster_config *config, uint32_t run,
                           struct checkpoint *checkpoint, struct error *err);

/* Given centroids: k x dimension values in the data's own space. */
enum status seed_given(float *centroids, const struct data *data,
                       const struct cluster_config *config, struct error *err);

#endif
