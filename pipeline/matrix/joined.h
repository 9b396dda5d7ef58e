/* joined.h: several matrices of equally many rows taken as one.
 *
 * A row is the rows of the parts one after another, each value times the weight of its part, in
 * float64, rounded once to float32. Nothing of it is stored: rows are put together as they are
 * read. */
#ifndef CLPIPE_MATRIX_JOINED_H
#define CLPIPE_MATRIX_JOINED_H

#include "matrix/matrix.h"

#define JOINED_MOST 16

struct joined_part {
    struct matrix_source matrix;
    double weight;
};

/* Takes the parts over, at most JOINED_MOST, also when it fails. Its identity is made of `name`,
 * which says how they are joined, and those that the parts have. STATUS_USAGE: too many columns. */
enum status joined_open(struct matrix_source *out, const char *name,
                        const struct joined_part *parts, unsigned count, struct error *err);

#endif
