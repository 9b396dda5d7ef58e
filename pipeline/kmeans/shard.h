/* shard.h: a rank's range of rows (its share, data.share) on the device that labels and sums them.
 *
 * Ranges are whole chunks of rows, so that sums over blocks and chunks equal those of a single rank
 * (comm.h, transform.h). Per-row state (label, bounds, norm) stays where the row is. */
#ifndef CLPIPE_KMEANS_SHARD_H
#define CLPIPE_KMEANS_SHARD_H

#include "kmeans/assign.h"
#include "kmeans/device_update.h"

/* What a rank works with. Everything belongs to the caller. */
struct rank {
    struct comm *comm;
    struct lane *lane;
    const struct matrix_source *source; /* only one rank may read at a time */
};

/* Must not move: its parts point to each other. */
struct shard {
    struct comm *comm;
    struct lane *lane;
    struct lane_held *held; /* what its parts own */
    struct data data;
    struct filter filter;
    struct assign assign;
    struct update update; /* of its own rows; only after shard_open_update */
    struct device_update device_update;
    int32_t *tile_labels;   /* for the largest tile; free for any pass */
    double *tile_distances; /* likewise */
    uint64_t moved;         /* rows, in the last pass that moved any */
};

/* Reads the rank's rows and opens their assignment to up to config->k centroids. Ranks get rows in
 * proportion to their devices' compute units and clock, at least one chunk each; there must be as
 * many chunks as ranks. Collective. Close it even after an error. */
enum status shard_open(struct shard *shard, const struct rank *rank,
                       const struct cluster_config *config, struct error *err);
/* Opens the sums that follow the labels. */
enum status shard_open_update(struct shard *shard, const struct cluster_config *config,
                              struct error *err);
void shard_close(struct shard *shard);

/* data_rows for any rows: all ranks ask for the same rows, and get them. */
enum status shard_rows(struct shard *shard, float *out, const uint64_t *rows, uint32_t count,
                       struct error *err);

/* Collects per-row values, `each` bytes a row, in rank 0's `all`: comm_collect. Collective. */
enum status shard_collect(const struct shard *shard, void *all, const void *own, size_t each,
                          struct error *err);

/* The same on all ranks; each has already put its own values in place. */
enum status shard_gather(const struct shard *shard, void *all, size_t each, struct error *err);

/* Whether the rank has that row. */
bool shard_has_row(const struct shard *shard, uint64_t row);

#endif
