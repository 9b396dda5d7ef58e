/* joined.h: several matrices with the same number of rows, joined side by side.
 *
 * A row is the concatenation of the parts' rows, by the rule of struct join, rounded once to float32. Rows are
 * not stored but joined as they are read, by several threads if the parts allow it. */
#ifndef CLPIPE_MATRIX_JOINED_H
#define CLPIPE_MATRIX_JOINED_H

#include "matrix/matrix.h"

#define JOINED_MOST 16

/* How the rows of parts are combined: in float64 each is multiplied by the weight of its part. Or, by the
 * rule of a preset (unit), rows are scaled to length 1: the values of a part (their square roots if `roots`)
 * are divided by the part's length and multiplied by its weight (0 if the part is 0); all are then divided
 * by the square root of the sum of the squared weights of the nonzero parts. Squares are summed in order. */
struct join {
    unsigned parts;
    bool unit;
    uint32_t columns[JOINED_MOST];
    double weight[JOINED_MOST];
    bool roots[JOINED_MOST];
};

/* Combines the parts of one row, in place. Thread-safe. */
void join_row(float *row, const struct join *join);

/* Takes ownership of the parts, whose columns are those of `join`, even on failure. Its identity combines `name`,
 * which describes the join, with those of the parts. STATUS_USAGE: too many columns. */
enum status joined_open(struct matrix_source *out, const char *name,
                        const struct matrix_source *parts, const struct join *join,
                        struct error *err);

#endif
