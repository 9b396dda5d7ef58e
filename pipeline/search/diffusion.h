/* diffusion.h: all rows in the order of what reaches them by diffusion from a query (affinity.h), rows
 * that nothing reaches in the order of their distance behind the others. */
#ifndef CLPIPE_SEARCH_DIFFUSION_H
#define CLPIPE_SEARCH_DIFFUSION_H

#include "search/neighbour_types.h"
#include "search/rank_measures.h"

struct diffused {
    double score;   /* 0: nothing reaches it */
    double squared; /* canonical distance from the query */
    uint32_t row;
};

/* Queries: rows of the source, or values in its space where `values` is set. */
struct diffusion_queries {
    const uint64_t *rows;
    const float *values; /* count x source->dimension */
    uint32_t count;
};

/* Takes the order for a query: all rows, without the query's own. Called by any thread, for a query
 * once. */
typedef void (*diffusion_take)(void *context, uint32_t query, const struct diffused *order,
                               uint64_t count);

/* nearest: of all rows of `source` by that metric, AFFINITY_NEIGHBOURS of each or more. config: n and
 * devices are not used; its memory bounds distances and rows, not the graph (up to 500 bytes a row) and
 * the scores (about 150 bytes a row and thread). Errors are those of neighbours_of_rows. */
enum status diffusion_rank(const struct matrix_source *source, const struct neighbours *nearest,
                           const struct diffusion_queries *queries,
                           const struct neighbours_config *config, diffusion_take take, void *context,
                           struct error *err);

/* ranking_measure of these orders. */
enum status diffusion_measure(struct ranking *out, const struct matrix_source *source,
                              const struct neighbours *nearest, const uint32_t *classes,
                              uint32_t class_count, const struct neighbours_config *config,
                              struct error *err);

#endif
