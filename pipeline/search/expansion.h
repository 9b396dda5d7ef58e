/* expansion.h: each row replaced by the mean of itself and its nearest rows, brought to unit length:
 * average query expansion, of the rows that are searched as well (Turcot, Lowe: Better matching with
 * fewer features, 2009). docs/search.md has the formula. */
#ifndef CLPIPE_SEARCH_EXPANSION_H
#define CLPIPE_SEARCH_EXPANSION_H

#include "search/neighbour_types.h"

struct expansion {
    struct matrix_source source; /* the expanded rows, of which the euclidean metric is taken */
    enum cluster_metric metric;  /* of the rows before */
    const struct neighbours *nearest;
    uint32_t n, stride;
    float *rows; /* in the metric's space: all of them, whatever config->memory */
};

/* nearest: of all rows, n of each or more; it must outlive the expansion, which must stay where it is.
 * config: its n and devices are not used. Errors are those of neighbours_of_rows. Close it also after a
 * failure. */
enum status expansion_open(struct expansion *out, const struct matrix_source *source,
                           const struct neighbours *nearest, uint32_t n,
                           const struct neighbours_config *config, struct error *err);
void expansion_close(struct expansion *expansion);

/* The same of `count` rows of values that are not among the rows. nearest: theirs. */
enum status expansion_of_values(float *out, const struct expansion *expansion, const float *values,
                                uint32_t count, const struct neighbours *nearest, struct error *err);

#endif
