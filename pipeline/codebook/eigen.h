/* eigen.h: eigenvalues and eigenvectors of small symmetric matrices, the same bits everywhere. */
#ifndef CLPIPE_CODEBOOK_EIGEN_H
#define CLPIPE_CODEBOOK_EIGEN_H

#include "base/error.h"
#include <stdint.h>

/* Decomposes the symmetric n x n matrix in `vectors`, which becomes the eigenvectors, one in each row,
 * of length 1, the largest component (the first of several) positive; values: the eigenvalues, from
 * the largest. Householder's tridiagonal form, then the QL iteration with implicit shifts (H. Bowdler,
 * R. S. Martin, C. Reinsch, J. H. Wilkinson: The QR and QL algorithms for symmetric matrices, 1968),
 * in float64 with one order of operations and only + - * / and roots. */
enum status eigen_symmetric(double *vectors, double *values, uint32_t n, struct error *err);

#endif
