/* comparable.h: nearest rows of a matrix in which some rows have no values, such as images that
 * lack an imported feature. Those rows, rows that the metric does not define (NaN, an infinity, the
 * square root of a negative value, the direction of zeros) and rows without information
 * (features/kind.h) have no neighbours and are neighbours of none. These functions are like those
 * of neighbours.h, but take one more pass over the matrix. */
#ifndef CLPIPE_NEIGHBOURS_COMPARABLE_H
#define CLPIPE_NEIGHBOURS_COMPARABLE_H

#include "features/pca.h"
#include "neighbours/neighbours.h"

/* Whether a row with these values can be compared with those of `all`. */
bool comparable_values(const struct matrix_source *all, const float *row,
                       enum cluster_metric metric);

struct comparable {
    const struct matrix_source *all;
    struct matrix_source source; /* the rows of `all` that can be compared */
    uint64_t *row;               /* their row numbers, ascending */
    struct matrix_list list;     /* what `source` reads by */
};

/* `all` and `out` must not move until it is closed. Close it even after a failure. STATUS_FAILED,
 * STATUS_INTERRUPTED. */
enum status comparable_open(struct comparable *out, const struct matrix_source *all,
                            enum cluster_metric metric, unsigned threads, struct stop *stop,
                            struct error *err);
void comparable_close(struct comparable *comparable);

/* Logs how many rows cannot be compared, if there are any; `feature` names them. */
void comparable_tell(const struct comparable *comparable, const char *feature);

/* pca_fit of the rows that can be compared; `out` stays as it is if there is at most one. */
enum status comparable_fit(struct projection *out, const struct matrix_source *all,
                           const struct pca_config *config, struct error *err);

/* Index of a row among those that can be compared, or their count if it is not among them. */
uint64_t comparable_find(const struct comparable *comparable, uint64_t row);

/* In place. pick: reduces 4-byte values of all rows to those that can be compared. spread: expands
 * the labels and distances of these to all rows, for which there must be room, with -1 and NaN for
 * the others. */
void comparable_pick(const struct comparable *comparable, void *values);
void comparable_spread(const struct comparable *comparable, int32_t *labels, float *distances);

/* neighbours_find among the rows that can be compared. */
enum status comparable_find_neighbours(struct neighbours *out, const struct comparable *comparable,
                                       const struct queries *queries,
                                       const struct neighbours_config *config, struct error *err);

#endif
