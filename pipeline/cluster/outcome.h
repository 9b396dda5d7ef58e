/* outcome.h: distances, inertia, sizes and nearest rows of final labels. */
#ifndef CLPIPE_CLUSTER_OUTCOME_H
#define CLPIPE_CLUSTER_OUTCOME_H

#include "cluster/shard.h"

/* Fills an outcome (of the rank's rows) that has its labels, which are the tiles' too. The inertia is
 * summed pairwise within blocks of rows, blocks in order. counts: k, of rows without those of weight
 * 0. All ranks call it. */
enum status outcome_measure(struct cluster_outcome *out, struct shard *shard,
                            const uint64_t *counts, struct error *err);

#endif
