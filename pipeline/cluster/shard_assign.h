/* shard_assign.h: one device's part of a pass of k-means: its rows are assigned, and the sums
 * follow. */
#ifndef CLPIPE_CLUSTER_SHARD_ASSIGN_H
#define CLPIPE_CLUSTER_SHARD_ASSIGN_H

#include "cluster/shard.h"

/* Assigns the rows of a shard to the centroids that it has been given (assign.h); shard->moved is
 * how many changed their label. labels: of all rows, where the shard does not use device_update.h, which
 * keeps them on the device. move: its centroids go to the means, and the next pass is planned
 * (device_update.h); only where it uses that. Where shard->exchange is used, shard_move does so. */
enum status shard_assign(struct shard *shard, int32_t *labels, bool incremental, bool move,
                         struct error *err);

/* After shard_assign with a move, where shard->exchange is used: moves the centroids to the means of
 * all ranks' rows, and plans the next pass; no cluster is empty. All ranks call it. */
enum status shard_move(struct shard *shard, struct error *err);

#endif
