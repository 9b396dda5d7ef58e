/* outcome.h: distances, inertia, sizes and nearest rows for final labels. */
#ifndef CLPIPE_KMEANS_OUTCOME_H
#define CLPIPE_KMEANS_OUTCOME_H

#include "kmeans/shard.h"

/* Completes an outcome of the rank's rows that has its labels, which the tiles have, too. The
 * inertia is summed pairwise within blocks of rows, blocks in order. counts: k, without rows of
 * weight 0. Collective. */
enum status outcome_measure(struct cluster_outcome *out, struct shard *shard,
                            const uint64_t *counts, struct error *err);

#endif
