/* outcome.h: distances, inertia, sizes and nearest rows of final labels. */
#ifndef CLPIPE_CLUSTER_OUTCOME_H
#define CLPIPE_CLUSTER_OUTCOME_H

#include "cluster/shards.h"

/* Fills an outcome that has its labels, which are the tiles' too. The inertia is summed pairwise
 * within blocks of rows, blocks in order. counts: k, of rows without those of weight 0. */
enum status outcome_measure(struct cluster_outcome *out, struct shards *shards,
                            const uint64_t *counts, struct error *err);

#endif
