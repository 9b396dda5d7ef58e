/* shard.h: a range of the rows on the device that labels and sums them: what one rank has.
 *
 * Ranges are whole chunks of rows, so that sums over blocks and chunks are those of one rank (comm.h). What is
 * known of a row (label, bounds, norm) stays where the row is. */
#ifndef CLPIPE_CLUSTER_SHARD_H
#define CLPIPE_CLUSTER_SHARD_H

#include "cluster/assign.h"
#include "cluster/comm.h"
#include "cluster/device_update.h"

/* What a rank works with. Everything belongs to the caller. */
struct rank {
    struct comm *comm;
    struct lane *lane;
    const struct matrix_source *source; /* may be read by one rank at a time */
};

/* Stays where it was opened: its parts point to each other. */
struct shard {
    struct comm *comm;
    struct lane *lane;
    struct lane_held *held;
    struct data data;
    struct filter filter;
    struct assign assign;
    struct update update; /* of its own rows; only after shard_open_update */
    struct device_update device_update;
    int32_t *tile_labels;   /* of the largest tile: free for any pass */
    double *tile_distances; /* likewise */
    uint64_t moved;         /* rows, in the last pass that moved any */
};

/* Reads the rank's rows and makes what labels them, for up to config->k centroids. Ranks get rows in
 * proportion to their devices' compute units and clock, at least a chunk each, of which there must
 * be as many as ranks. All ranks call it. To be closed after an error, too. */
enum status shard_open(struct shard *shard, const struct rank *rank,
                       const struct cluster_config *config, struct error *err);
/* Makes what follows the labels with sums. */
enum status shard_open_update(struct shard *shard, const struct cluster_config *config,
                              struct error *err);
void shard_close(struct shard *shard);

/* data_rows for any rows: all ranks call it for the same ones, and get them. */
enum status shard_rows(struct shard *shard, float *out, const uint64_t *rows, uint32_t count,
                       struct error *err);

/* Brings what the ranks have of their rows, `each` bytes a row, to rank 0's `all`: comm_collect. All
 * ranks call it. */
enum status shard_collect(const struct shard *shard, void *all, const void *own, size_t each,
                          struct error *err);

/* The same for all ranks, which have theirs in its place already. */
enum status shard_gather(const struct shard *shard, void *all, size_t each, struct error *err);

/* Whether the rank has that row. */
bool shard_has_row(const struct shard *shard, uint64_t row);

#endif
