/* diffusion.h: ranks all rows by the score that diffusion from a query gives them (affinity.h),
 * followed by the rows without a score, by distance. */
#ifndef CLPIPE_NEIGHBOURS_DIFFUSION_H
#define CLPIPE_NEIGHBOURS_DIFFUSION_H

#include "neighbours/neighbour_types.h"
#include "neighbours/rank_measures.h"

struct diffused {
    double score;   /* 0: not reached */
    double squared; /* canonical distance from the query */
    uint32_t row;
};

/* Receives the ranking for a query: all rows except itself. On any thread, once per query. */
typedef void (*diffusion_take)(void *context, uint32_t query, const struct diffused *order,
                               uint64_t count);

/* nearest: of all rows of `source` by that metric, at least AFFINITY_NEIGHBOURS each. config: n and
 * devices are ignored; its memory limits distances and rows, not the graph (up to 500 bytes per
 * row) and the scores (about 150 bytes per row and thread). Errors are those of
 * neighbours_find. */
enum status diffusion_rank(const struct matrix_source *source, const struct neighbours *nearest,
                           const struct queries *queries, const struct neighbours_config *config,
                           diffusion_take take, void *context, struct error *err);

/* ranking_measure for these rankings. */
enum status diffusion_measure(struct ranking *out, const struct matrix_source *source,
                              const struct neighbours *nearest, const uint32_t *classes,
                              uint32_t class_count, const struct neighbours_config *config,
                              struct error *err);

#endif
