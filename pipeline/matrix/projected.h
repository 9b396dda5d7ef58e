/* projected.h: rows on the axes of a projection.
 *
 * A row x becomes x', its place in the space of a metric (euclidean: as it is, hellinger: square roots,
 * cosine: divided by its length; rounded to float32), then y_i = sum over j of components_ij (x'_j -
 * mean_j), or x' - mean where there are no components, then y divided by its length, or zeros where
 * that is 0. Everything in float64: a product is one sum in the order of j; y is rounded to float32
 * once. docs/clustering.md has the definitions. */
#ifndef CLPIPE_MATRIX_PROJECTED_H
#define CLPIPE_MATRIX_PROJECTED_H

#include "matrix/matrix.h"

/* Numbered as enum cluster_metric is. */
enum projection_space { SPACE_EUCLIDEAN, SPACE_COSINE, SPACE_HELLINGER };

struct projection {
    enum projection_space space;
    uint32_t columns;   /* of rows */
    uint32_t dimension; /* of projected ones */
    float *mean;        /* columns */
    float *components;  /* dimension x columns; NULL: dimension is columns */
};

/* Frees what it owns, and makes it an empty one. */
void projection_clear(struct projection *projection);

/* The space of that name, as metrics are called; false: there is none. */
bool projection_space(enum projection_space *out, const char *name);
const char *projection_space_name(enum projection_space space);

/* Rows of `columns` values to rows of `dimension` ones. A row that the space does not define has NaN. */
void projection_rows(const struct projection *projection, float *out, const float *rows,
                     uint64_t count);

/* Takes over rows and projection, also when it fails. Its identity is that of `rows`. A read fails
 * where the space does not define a row, and says which. */
enum status projected_open(struct matrix_source *out, const struct matrix_source *rows,
                           const struct projection *projection, struct error *err);

#endif
