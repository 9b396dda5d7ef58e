/* matrix.h: rows of float32 values, wherever they come from. */
#ifndef CLPIPE_MATRIX_MATRIX_H
#define CLPIPE_MATRIX_MATRIX_H

#include "base/error.h"
#include <stdint.h>

/* An open matrix. read fills `rows` with count x dimension values, row by row: any range, any
 * number of times, from one thread at a time. */
struct matrix_source {
    uint64_t rows;
    uint32_t dimension;
    enum status (*read)(void *context, uint64_t first, uint64_t count, float *rows,
                        struct error *err);
    void *context;
};

#endif
