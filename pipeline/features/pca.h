/* pca.h: principal components of a matrix's rows, the same bits for any number of threads. */
#ifndef CLPIPE_FEATURES_PCA_H
#define CLPIPE_FEATURES_PCA_H

#include "matrix/projected.h"

#define PCA_COMPONENTS_MAX 256

struct pca_config {
    enum projection_space space;
    uint32_t components; /* at most PCA_COMPONENTS_MAX; 0: only the mean */
    double whiten;       /* 0: none; 1: components get equal variances */
    bool optional;       /* identical rows yield only a mean instead of an error */
    unsigned threads;
    struct stop *stop; /* may be NULL */
};

/* Mean and components of `rows` in the space, or of a sample of them: row floor(i n / s) for i
 * below s, where s is the minimum of the number n of rows, 65,536, as many as fit 64 MiB, and 4,096
 * if rows have more than 4,096 values. Component i is the eigenvector of the i-th largest
 * eigenvalue v_i of the sample's covariance, its largest value positive, times (v_i / v_1)^(-whiten
 * / 2). Components with v_i below 1e-12 v_1 are left out, so there may be fewer than requested.
 *
 * The covariance, or the Gram matrix if there are fewer rows than columns, is summed in float64,
 * each sum in the order of rows (columns) with separate multiplications and additions, which all
 * processors do alike. Its eigenvectors are found by Chebyshev-filtered subspace iteration on twice
 * as many vectors (Y. Zhou, Y. Saad, M. L. Tiago, J. R. Chelikowsky: Self-consistent-field
 * calculations using Chebyshev-filtered subspace iteration, 2006) with Rayleigh-Ritz steps, until
 * their residuals are below 1e-12 v_1 (at most 400 products with the matrix). Memory: about 200 MiB
 * at most. STATUS_FAILED: rows undefined in the space, or all identical, unless `optional`: then
 * components are NULL. */
enum status pca_fit(struct projection *out, const struct matrix_source *rows,
                    const struct pca_config *config, struct error *err);

#endif
