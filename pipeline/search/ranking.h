/* ranking.h: how well the order of all rows by their distance agrees with classes.
 *
 * Each row that has a class, and is not the only one of it, is a query. The others that have a class
 * are ranked by their canonical distance from it (neighbours.h), equal ones by their number; those of
 * its own class are relevant. docs/search.md has the definitions of the measures. */
#ifndef CLPIPE_SEARCH_RANKING_H
#define CLPIPE_SEARCH_RANKING_H

#include "search/neighbour_types.h"
#include "search/rank_measures.h"

/* classes: one for each row of `source`, below class_count or RANKING_NO_CLASS. config: n and devices
 * are not used. Errors are those of neighbours_of_all. */
enum status ranking_measure(struct ranking *out, const struct matrix_source *source,
                            const uint32_t *classes, uint32_t class_count,
                            const struct neighbours_config *config, struct error *err);

#endif
