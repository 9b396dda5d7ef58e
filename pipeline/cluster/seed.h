/* seed.h: chooses the first centroids. All calls are collective. */
#ifndef CLPIPE_CLUSTER_SEED_H
#define CLPIPE_CLUSTER_SEED_H

#include "cluster/checkpoint.h"
#include "cluster/shard.h"

/* Fills centroids (k x stride values) by greedy k-means++, k-means|| or random rows, depending on
 * config->init; `run` is the index of the restart. k-means++ keeps its state in the checkpoint and
 * resumes from the seeds there. STATUS_FAILED if fewer than k distinct rows were noticed. */
enum status seed_centroids(float *centroids, struct shard *shard,
                           const struct cluster_config *config, uint32_t run,
                           struct checkpoint *checkpoint, struct error *err);

/* Copies given centroids: k x dimension values in the data's own space. */
enum status seed_given(float *centroids, const struct data *data,
                       const struct cluster_config *config, struct error *err);

/* --- for the ways to choose first centroids
 * ------------------------------------------------------ */

/* k-means++ with random numbers of `stream`. weights: of the rank's rows, or NULL: all 1.
 * checkpoint: NULL keeps no state. */
enum status seed_plus_plus(float *centroids, struct shard *shard, const double *weights,
                           const struct cluster_config *config, uint32_t stream,
                           struct checkpoint *checkpoint, struct error *err);

/* Draws the first row, by weight if there are weights. */
enum status seed_first_row(uint64_t *row, const struct data *data, const double *weights,
                           uint64_t seed, uint32_t stream, struct error *err);
/* Fails because k exceeds the number of distinct rows. */
enum status seed_too_few(uint32_t k, uint64_t distinct, struct error *err);
void seed_progress(const struct cluster_config *config, const struct comm *comm, uint64_t done,
                   uint64_t total);

#endif
