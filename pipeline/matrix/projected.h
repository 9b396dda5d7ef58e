/* projected.h: rows projected on principal axes.
 *
 * A row x becomes x', its image in the space of a metric (euclidean: unchanged, hellinger: square
 * roots, cosine: divided by its length; rounded to float32), then y_i = sum over j of components_ij
 * (x'_j - mean_j), or x' - mean without components, then y divided by its length, or zeros if that
 * is 0. Everything is float64: a product is one sum in the order of j; y is rounded to float32
 * once. docs/clustering.md has the definitions. */
#ifndef CLPIPE_MATRIX_PROJECTED_H
#define CLPIPE_MATRIX_PROJECTED_H

#include "matrix/matrix.h"

/* Numbered like enum cluster_metric. */
enum projection_space { SPACE_EUCLIDEAN, SPACE_COSINE, SPACE_HELLINGER };

struct projection {
    enum projection_space space;
    uint32_t columns;   /* of rows */
    uint32_t dimension; /* of projected ones */
    float *mean;        /* columns */
    float *components;  /* dimension x columns; NULL: dimension is columns */
};

/* Frees what it owns, and zeroes it. */
void projection_clear(struct projection *projection);

/* The space with that name, the same as for metrics; false: none. */
bool projection_space(enum projection_space *out, const char *name);
/* The names of spaces, and of metrics (enum cluster_metric). */
extern const char *const metric_names[3];

/* Projects `count` rows of `columns` values to `dimension` values each. Rows undefined in the space
 * become NaN. Thread-safe. */
void projection_rows(const struct projection *projection, float *out, const float *rows,
                     uint64_t count);

/* Takes ownership of rows and projection, even on failure. Its identity is that of `rows`, of which
 * one without information becomes NaN. Reading fails on a row undefined in the space, and names it. */
enum status projected_open(struct matrix_source *out, const struct matrix_source *rows,
                           const struct projection *projection, struct error *err);

/* The columns of the rows that a matrix projects, or its own if it does not; and the conversion, in
 * place, of such a row to one of the matrix. */
uint32_t projected_columns(const struct matrix_source *matrix);
void projected_row(const struct matrix_source *matrix, float *row);

#endif
