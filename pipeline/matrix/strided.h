/* strided.h: rows of numbers in memory, of any type and strides, as a matrix. */
#ifndef CLPIPE_MATRIX_STRIDED_H
#define CLPIPE_MATRIX_STRIDED_H

#include "matrix/matrix.h"
#include "matrix/values.h"

/* Borrowed memory. Strides are in bytes, may be negative or 0, and need no alignment. */
struct matrix_strided {
    const void *values; /* row 0, column 0 */
    struct value_format format;
    int64_t row_stride, column_stride;
    uint32_t columns;
};

/* The source refers to *memory, which must stay where it is. Any number of threads may read it. */
void matrix_strided_source(struct matrix_source *out, const struct matrix_strided *memory,
                           uint64_t rows);

#endif
