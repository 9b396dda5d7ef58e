/* affinities.h: how strongly rows attract each other: a symmetric sparse matrix. */
#ifndef CLPIPE_LAYOUT_AFFINITIES_H
#define CLPIPE_LAYOUT_AFFINITIES_H

#include "layout/layout.h"

/* Row i attracts target[k] with weight[k] for k in [begin[i], begin[i + 1]); each pair is there in
 * both directions, and all weights add up to 1. */
struct affinities {
    uint64_t rows;
    uint64_t *begin; /* rows + 1 */
    uint32_t *target;
    float *weight;
};

/* Each row shares an equal weight among its neighbours (as good as weights by distance for a map of
 * neighbours: J. Boehm, P. Berens, D. Kobak 2022); the weights of both directions are averaged. */
enum status affinities_open(struct affinities *out, const struct layout_graph *graph,
                            struct error *err);
void affinities_close(struct affinities *affinities);

#endif
