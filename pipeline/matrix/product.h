/* product.h: the inner loop of float64 matrix products, with the same bits on every processor. */
#ifndef CLPIPE_MATRIX_PRODUCT_H
#define CLPIPE_MATRIX_PRODUCT_H

#include <stddef.h>
#include <stdint.h>

#define PRODUCT_ROWS    4u
#define PRODUCT_COLUMNS 8u

/* out(i, k) += sum over c of a(c, i) b(c, k) for PRODUCT_ROWS i and PRODUCT_COLUMNS k: `out` and
 * `b` have rows of PRODUCT_COLUMNS values, a(c, i) is at a[i * row_step + c * depth_step]. Each sum
 * is one chain in the order of c, with separate multiplications and additions, never fused.
 * Thread-safe. */
typedef void (*product_function)(double *out, const double *a, size_t row_step, size_t depth_step,
                                 const double *b, uint32_t depth);

/* The fastest version for this processor. */
product_function product_choose(void);

#endif
