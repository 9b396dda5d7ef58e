/* eigen.h: eigenvalues and eigenvectors of small symmetric matrices, the same bits everywhere. */
#ifndef CLPIPE_FEATURES_EIGEN_H
#define CLPIPE_FEATURES_EIGEN_H

#include "base/error.h"
#include <stdint.h>

/* Decomposes the symmetric n x n matrix in `vectors`, which it replaces with the eigenvectors, one
 * per row, with length 1 and their largest component (the first, if several) positive; values: the
 * eigenvalues in descending order. Householder tridiagonalisation, then QL iteration with implicit
 * shifts (H. Bowdler, R. S. Martin, C. Reinsch, J. H. Wilkinson: The QR and QL algorithms for
 * symmetric matrices, 1968), in float64 with a fixed order of operations and only + - * / and
 * square roots. */
enum status eigen_symmetric(double *vectors, double *values, uint32_t n, struct error *err);

#endif
