/* minibatch.h: approximate iterations over random batches of rows. */
#ifndef CLPIPE_CLUSTER_MINIBATCH_H
#define CLPIPE_CLUSTER_MINIBATCH_H

#include "cluster/lloyd.h"

/* More rows than this in all batches together leave too few bits for each value of a sum. */
#define MINIBATCH_SAMPLES_MAX (1ull << 40)

/* Iterates from lloyd->centroids; leaves the sums as they are. out->iterations, converged and
 * inertia_history (of each batch, about the centroids that it met) are filled. */
enum status minibatch_iterate(struct lloyd *lloyd, struct cluster_outcome *out, struct error *err);

#endif
