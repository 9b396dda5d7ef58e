/* comparable.h: nearest rows of a matrix some of whose rows have no values: images that an imported
 * feature says nothing about. Such rows, and others that the metric does not define (NaN, an infinity,
 * the square root of a negative value, the direction of zeros), have no neighbours and are nobody's.
 * Costs one pass over the matrix more than neighbours.h, whose functions these are otherwise. */
#ifndef CLPIPE_SEARCH_COMPARABLE_H
#define CLPIPE_SEARCH_COMPARABLE_H

#include "search/neighbours.h"

struct comparable {
    const struct matrix_source *all;
    struct matrix_source source; /* rows of `all` that can be compared */
    uint64_t *row;               /* their numbers, ascending */
};

/* `all` and `out` must stay where they are until it is closed. Close it also after a failure. */
enum status comparable_open(struct comparable *out, const struct matrix_source *all,
                            const struct neighbours_config *config, struct error *err);
void comparable_close(struct comparable *comparable);

enum status comparable_of_all(struct neighbours *out, const struct comparable *comparable,
                              const struct neighbours_config *config, struct error *err);
enum status comparable_of_rows(struct neighbours *out, const struct comparable *comparable,
                               const uint64_t *rows, uint32_t count,
                               const struct neighbours_config *config, struct error *err);
enum status comparable_of_values(struct neighbours *out, const struct comparable *comparable,
                                 const float *values, uint32_t count,
                                 const struct neighbours_config *config, struct error *err);

#endif
