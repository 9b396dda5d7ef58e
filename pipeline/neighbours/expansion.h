/* expansion.h: replaces each row with the mean of itself and its nearest rows, normalised to unit
 * length: average query expansion, applied to the rows searched as well (Turcot, Lowe: Better
 * matching with fewer features, 2009). docs/search.md has the formula. */
#ifndef CLPIPE_NEIGHBOURS_EXPANSION_H
#define CLPIPE_NEIGHBOURS_EXPANSION_H

#include "neighbours/neighbour_types.h"

struct expansion {
    struct matrix_source source; /* the expanded rows; compare them by the euclidean metric */
    enum cluster_metric metric;  /* of the original rows */
    const struct neighbours *nearest;
    uint32_t n, stride;
    float *rows; /* all rows in the metric's space, whatever config->memory is */
};

/* nearest: for all rows, at least n each; it must outlive the expansion, which must not move.
 * config: its n and devices are ignored. Errors are those of neighbours_find. Close it even
 * after a failure. */
enum status expansion_open(struct expansion *out, const struct matrix_source *source,
                           const struct neighbours *nearest, uint32_t n,
                           const struct neighbours_config *config, struct error *err);
void expansion_close(struct expansion *expansion);

/* The same for queries of values. nearest: their neighbours. out: count x dimension. */
enum status expansion_of_values(float *out, const struct expansion *expansion,
                                const struct queries *queries, const struct neighbours *nearest,
                                struct error *err);

#endif
