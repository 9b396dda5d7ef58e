/* neighbours.h: exact nearest rows.
 *
 * The squared distance of two rows is the canonical distance (kmeans/canonical.h) of the rows in
 * the metric's space (kmeans/transform.h): float64, with the same bits in both directions and on
 * every device. Neighbours are sorted by distance, then by row number; a row is never its own
 * neighbour. docs/search.md has the definition, and the bounds of the filter that finds them. */
#ifndef CLPIPE_NEIGHBOURS_NEIGHBOURS_H
#define CLPIPE_NEIGHBOURS_NEIGHBOURS_H

#include "neighbours/neighbour_types.h"

/* Finds the neighbours of the queries, or, if they are NULL, of every row of `source`.
 * STATUS_USAGE: a query is not one of its rows; STATUS_FAILED: a row contains NaN or an infinity or
 * is undefined in the metric (the message names it), out of memory; STATUS_INTERRUPTED: a stop was
 * requested. An error yields no result. */
enum status neighbours_find(struct neighbours *out, const struct matrix_source *source,
                            const struct queries *queries, const struct neighbours_config *config,
                            struct error *err);

/* Frees a result's arrays and zeroes it. */
void neighbours_clear(struct neighbours *neighbours);

#endif
