/* neighbours.h: exact nearest rows.
 *
 * The squared distance of two rows is the canonical distance (kmeans/canonical.h) of the rows in
 * the metric's space (kmeans/transform.h): float64, with the same bits in both directions and on
 * every device. Neighbours are sorted by distance, then by row number; a row is never its own
 * neighbour. docs/search.md has the definition, and the bounds of the filter that finds them. */
#ifndef CLPIPE_NEIGHBOURS_NEIGHBOURS_H
#define CLPIPE_NEIGHBOURS_NEIGHBOURS_H

#include "neighbours/neighbour_types.h"

/* Finds the neighbours of every row of `source`. STATUS_FAILED: a row contains NaN or an infinity
 * or is undefined in the metric (the message names it), out of memory; STATUS_INTERRUPTED: a stop
 * was requested. An error yields no result. */
enum status neighbours_of_all(struct neighbours *out, const struct matrix_source *source,
                              const struct neighbours_config *config, struct error *err);

/* The same for `count` rows of `source`. */
enum status neighbours_of_rows(struct neighbours *out, const struct matrix_source *source,
                               const uint64_t *rows, uint32_t count,
                               const struct neighbours_config *config, struct error *err);

/* The same for `count` rows of source->dimension values, in its space but not among its rows. */
enum status neighbours_of_values(struct neighbours *out, const struct matrix_source *source,
                                 const float *values, uint32_t count,
                                 const struct neighbours_config *config, struct error *err);

/* The same for `count` rows of `queries` from `first` on, a matrix of as many columns. */
enum status neighbours_of_queries(struct neighbours *out, const struct matrix_source *source,
                                  const struct matrix_source *queries, uint64_t first,
                                  uint32_t count, const struct neighbours_config *config,
                                  struct error *err);

/* Frees a result's arrays and zeroes it. */
void neighbours_clear(struct neighbours *neighbours);

#endif
