/* ranking.h: how well the ranking of all rows by distance agrees with classes.
 *
 * Each row that has a class, and is not the only one in it, is a query. The other rows with a class
 * are ranked by their canonical distance from it (neighbours.h), ties by row number; those of its
 * own class are relevant. docs/search.md defines the measures. */
#ifndef CLPIPE_NEIGHBOURS_RANKING_H
#define CLPIPE_NEIGHBOURS_RANKING_H

#include "neighbours/neighbour_types.h"
#include "neighbours/rank_measures.h"

/* classes: one per row of `source`, below class_count or RANKING_NO_CLASS. config: n and devices
 * are ignored. Errors are those of neighbours_find. */
enum status ranking_measure(struct ranking *out, const struct matrix_source *source,
                            const uint32_t *classes, uint32_t class_count,
                            const struct neighbours_config *config, struct error *err);

#endif
