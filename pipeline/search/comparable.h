/* comparable.h: nearest rows of a matrix some of whose rows have no values: images that an imported
 * feature says nothing about. Such rows, and others that the metric does not define (NaN, an infinity,
 * the square root of a negative value, the direction of zeros) or that say nothing (features/kind.h), have
 * no neighbours and are nobody's.
 * Costs one pass over the matrix more than neighbours.h, whose functions these are otherwise. */
#ifndef CLPIPE_SEARCH_COMPARABLE_H
#define CLPIPE_SEARCH_COMPARABLE_H

#include "search/neighbours.h"

/* Can a row of such values be compared with those of `all`? */
bool comparable_values(const struct matrix_source *all, const float *row,
                       enum cluster_metric metric);

struct comparable {
    const struct matrix_source *all;
    struct matrix_source source; /* rows of `all` that can be compared */
    uint64_t *row;               /* their numbers, ascending */
};

/* `all` and `out` must stay where they are until it is closed. Close it also after a failure. */
enum status comparable_open(struct comparable *out, const struct matrix_source *all,
                            const struct neighbours_config *config, struct error *err);
void comparable_close(struct comparable *comparable);

/* A notice of how many rows have no values of `feature` that can be compared, if some have none. */
void comparable_tell(const struct comparable *comparable, const char *feature);

/* The number of a row among those that can be compared, or their count. */
uint64_t comparable_find(const struct comparable *comparable, uint64_t row);

/* In place: what all rows have, 4 bytes each, for those that can be compared alone; and labels and distances
 * of these for all, which there is room for: -1 and NaN for the others. */
void comparable_pick(const struct comparable *comparable, void *values);
void comparable_spread(const struct comparable *comparable, int32_t *labels, float *distances);

enum status comparable_of_all(struct neighbours *out, const struct comparable *comparable,
                              const struct neighbours_config *config, struct error *err);
enum status comparable_of_rows(struct neighbours *out, const struct comparable *comparable,
                               const uint64_t *rows, uint32_t count,
                               const struct neighbours_config *config, struct error *err);
enum status comparable_of_values(struct neighbours *out, const struct comparable *comparable,
                                 const float *values, uint32_t count,
                                 const struct neighbours_config *config, struct error *err);

#endif
