/* affinities.h: the attraction between rows: a symmetric sparse matrix. */
#ifndef CLPIPE_NEIGHBOURS_AFFINITIES_H
#define CLPIPE_NEIGHBOURS_AFFINITIES_H

#include "neighbours/layout.h"

/* Row i attracts target[k] with weight[k] for k in [begin[i], begin[i + 1]). Each pair is stored in
 * both directions, and all weights add up to 1. */
struct affinities {
    uint64_t rows;
    uint64_t *begin; /* rows + 1 */
    uint32_t *target;
    float *weight;
};

/* Each row divides equal weights among its neighbours (as good for a neighbour embedding as weights
 * by distance: J. Boehm, P. Berens, D. Kobak 2022); the weights of both directions are averaged.
 * STATUS_FAILED: out of memory. */
enum status affinities_open(struct affinities *out, const struct layout_graph *graph,
                            struct error *err);
void affinities_close(struct affinities *affinities);

#endif
