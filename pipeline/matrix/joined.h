/* joined.h: several matrices of equally many rows taken as one.
 *
 * A row is the rows of the parts one after another, each value times the weight of its part, in
 * float64, rounded once to float32. Nothing of it is stored: rows are put together as they are
 * read, by several threads where the parts can be. */
#ifndef CLPIPE_MATRIX_JOINED_H
#define CLPIPE_MATRIX_JOINED_H

#include "matrix/matrix.h"

#define JOINED_MOST 16

struct joined_part {
    struct matrix_source matrix;
    double weight;
};

/* The rule of a preset: rows of the parts one after another, unweighted, become rows of length 1. The
 * values of a part, their square roots where it has `roots`, are divided by the root of the sum of their
 * squares and multiplied by its weight (0 where the part is 0), and all of them divided by the root of
 * the sum of the squared weights of parts that are not 0. In float64, squares added up in order, rounded
 * once. */
struct joined_unit {
    unsigned parts;
    uint32_t columns[JOINED_MOST];
    double weight[JOINED_MOST];
    bool roots[JOINED_MOST];
};

/* One row, in place. */
void joined_unit_row(float *row, const struct joined_unit *unit);

/* As below, by that rule; unit->columns and weights are those of the parts, whose own are 1. */
enum status joined_open_unit(struct matrix_source *out, const char *name,
                             const struct joined_part *parts, const struct joined_unit *unit,
                             struct error *err);

/* Takes the parts over, at most JOINED_MOST, also when it fails. Its identity is made of `name`,
 * which says how they are joined, and those that the parts have. STATUS_USAGE: too many columns. */
enum status joined_open(struct matrix_source *out, const char *name,
                        const struct joined_part *parts, unsigned count, struct error *err);

#endif
