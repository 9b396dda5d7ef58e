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

/* --- for the ways to first centroids; all ranks make the same calls ------------------------------ */

/* k-means++ with random numbers of `stream`. weights: of the rank's rows, or NULL: 1 each. checkpoint:
 * NULL keeps no state. */
enum status seed_plus_plus(float *centroids, struct shard *shard, const double *weights,
                           const struct cluster_config *config, uint32_t stream,
                           struct checkpoint *checkpoint, struct error *err);

/* A row to begin with, by weight where there are weights. */
enum status seed_first_row(uint64_t *row, const struct data *data, const double *weights,
                           uint64_t seed, uint32_t stream, struct error *err);
/* k is too large for `distinct` different rows. */
enum status seed_too_few(uint32_t k, uint64_t distinct, struct error *err);
void seed_progress(const struct cluster_config *config, const struct comm *comm, uint64_t done,
                   uint64_t total);

#endif
