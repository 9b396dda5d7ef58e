/* seed.h: chooses the initial centroids. All calls are collective. */
#ifndef CLPIPE_KMEANS_SEED_H
#define CLPIPE_KMEANS_SEED_H

#include "kmeans/checkpoint.h"
#include "kmeans/shard.h"

/* Fills centroids (k x stride values) by greedy k-means++, k-means|| or random rows, depending on
 * config->init; `run` is the index of the restart. k-means++ keeps its state in the checkpoint and
 * resumes from the seeds there. STATUS_FAILED if fewer than k distinct rows were noticed. */
enum status seed_centroids(float *centroids, struct shard *shard,
                           const struct cluster_config *config, uint32_t run,
                           struct checkpoint *checkpoint, struct error *err);

/* Copies given centroids: k x dimension values in the data's own space. */
enum status seed_given(float *centroids, const struct data *data,
                       const struct cluster_config *config, struct error *err);

/* Rows of a source that are clustered by themselves: at most SEED_SET_ROWS. */
struct seed_set {
    uint64_t first, rows;
};
#define SEED_SET_ROWS (KMEANS_PART_BLOCKS * KMEANS_BLOCK_ROWS)

/* seeds[i * k...]: the rows of set i, counted from its first, that seed_centroids chooses for it
 * alone with k-means++, without weights. done[i]: it has k; else the set has fewer distinct rows,
 * or the first device cannot do this. */
enum status seed_sets(uint32_t *seeds, bool *done, const struct seed_set *sets, uint32_t count,
                      const struct cluster_devices *devices, const struct matrix_source *source,
                      const struct cluster_config *config, struct error *err);

/* --- for the ways to choose initial centroids -------------------------------------------------- */

/* What k-means++ keeps of a tile. */
struct seed_tile {
    cl_mem distances;  /* float64 per row; NULL: the host keeps them */
    cl_mem thresholds; /* float32 per row, to compare the filter's scores with */
    cl_mem mask;       /* one bit per candidate */
    cl_mem weights;    /* float64 per row, or NULL */
};

/* Draws of k-means++. */
struct seed_draws {
    const struct cluster_config *config;
    uint32_t stream, trials;
    uint32_t from; /* the seeds chosen so far */
    struct checkpoint *checkpoint;
};
/* The draws of the first run, from the first seed on. */
struct seed_draws seed_draws_of(const struct cluster_config *config);
/* Fills `random` with the draws->trials numbers for seed number `seed`. */
void seed_random(double *random, const struct seed_draws *draws, uint32_t seed);
/* Records in the checkpoint that there are `seeds` seeds; NULL: there is no checkpoint. */
void seed_save(struct checkpoint *checkpoint, uint32_t seeds);

/* Work-groups of seed_exact. */
uint32_t seed_groups(uint32_t rows, uint32_t trials);

/* Chooses the remaining seeds, all on the device: the host waits once for many of them. Requires a
 * single rank, resident rows and float16_usable. blocks: of rows; upto: what remains in each and
 * all earlier ones. */
enum status seed_on_device(float *centroids, struct shard *shard, const struct seed_tile *tiles,
                           const double *upto, uint64_t blocks, const struct seed_draws *draws,
                           struct error *err);

/* k-means++ with random numbers of `stream`. weights: of the rank's rows, or NULL: all 1.
 * checkpoint: NULL keeps no state. */
enum status seed_plus_plus(float *centroids, struct shard *shard, const double *weights,
                           const struct cluster_config *config, uint32_t stream,
                           struct checkpoint *checkpoint, struct error *err);

/* Draws the first row, by weight if there are weights. */
enum status seed_first_row(uint64_t *row, const struct data *data, const double *weights,
                           uint64_t seed, uint32_t stream, struct error *err);
/* Fails because k exceeds the number of distinct rows: CAUSE_DISTINCT, with that number as native. */
enum status seed_too_few(uint32_t k, uint64_t distinct, struct error *err);
void seed_progress(const struct cluster_config *config, const struct comm *comm, uint64_t done,
                   uint64_t total);

#endif
