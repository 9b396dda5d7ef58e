/* joined.h: several matrices with the same number of rows, joined side by side.
 *
 * A row is the concatenation of the parts' rows, each value times the weight of its part, in
 * float64, rounded once to float32. Rows are not stored but joined as they are read, by several
 * threads if the parts allow it. */
#ifndef CLPIPE_MATRIX_JOINED_H
#define CLPIPE_MATRIX_JOINED_H

#include "matrix/matrix.h"

#define JOINED_MOST 16

struct joined_part {
    struct matrix_source matrix;
    double weight;
};

/* The rule of a preset: concatenated, unweighted rows are scaled to length 1. The values of a part
 * (their square roots if `roots`) are divided by the part's length and multiplied by its weight (0
 * if the part is 0); all are then divided by the square root of the sum of the squared weights of
 * the nonzero parts. In float64, squares summed in order, rounded once. */
struct joined_unit {
    unsigned parts;
    uint32_t columns[JOINED_MOST];
    double weight[JOINED_MOST];
    bool roots[JOINED_MOST];
};

/* Applies it to one row, in place. Thread-safe. */
void joined_unit_row(float *row, const struct joined_unit *unit);

/* joined_open with that rule; unit->columns and weights describe the parts, all of weight 1. */
enum status joined_open_unit(struct matrix_source *out, const char *name,
                             const struct joined_part *parts, const struct joined_unit *unit,
                             struct error *err);

/* Takes ownership of the parts, at most JOINED_MOST, even on failure. Its identity combines `name`,
 * which says how they are joined, with those of the parts. STATUS_USAGE: too many columns. */
enum status joined_open(struct matrix_source *out, const char *name,
                        const struct joined_part *parts, unsigned count, struct error *err);

#endif
