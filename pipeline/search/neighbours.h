/* neighbours.h: the exact nearest rows of rows.
 *
 * The squared distance of two rows is the canonical distance (cluster/canonical.h) of the rows in the
 * metric's space (cluster/transform.h): float64, and the same bits in both directions and on every
 * device. Neighbours of a row are in the order of that number, and of the row where it is equal; a
 * row is never among its own. docs/search.md has the definition and the bounds of the filter that
 * finds them. */
#ifndef CLPIPE_SEARCH_NEIGHBOURS_H
#define CLPIPE_SEARCH_NEIGHBOURS_H

#include "search/neighbour_types.h"

/* Neighbours of every row of `source`. A row with NaN, an infinity, or that the metric does not define
 * is STATUS_FAILED, and the message names it; STATUS_INTERRUPTED after a stop. After an error there
 * is no answer. */
enum status neighbours_of_all(struct neighbours *out, const struct matrix_source *source,
                              const struct neighbours_config *config, struct error *err);

/* The same of `count` rows of `source`. */
enum status neighbours_of_rows(struct neighbours *out, const struct matrix_source *source,
                               const uint64_t *rows, uint32_t count,
                               const struct neighbours_config *config, struct error *err);

/* The same of `count` rows of source->dimension values in the space of `source` that are not among its
 * rows. */
enum status neighbours_of_values(struct neighbours *out, const struct matrix_source *source,
                                 const float *values, uint32_t count,
                                 const struct neighbours_config *config, struct error *err);

/* Frees what an answer holds, and makes it an empty one. */
void neighbours_clear(struct neighbours *neighbours);

#endif
