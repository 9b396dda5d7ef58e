/* eigen.c: Householder reduction and QL iteration. The vectors are stored as rows, so that all
 * inner loops access memory sequentially. */
#include "features/eigen.h"

#include "base/avx2.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ITERATIONS_MOST 60u /* per eigenvalue; a few suffice */

/* to[i] += factor * from[i] for all n values. */
ALWAYS_INLINE void add_multiple(double *restrict to, const double *restrict from, double factor,
                                uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

/* row[i] -= v * y[i] + w * x[i] for all n values. */
ALWAYS_INLINE void subtract_two(double *restrict row, const double *restrict x,
                                const double *restrict y, double w, double v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        row[i] -= v * y[i] + w * x[i];
}

/* Reduces `a` to the diagonal d and the subdiagonal e (e[0] is unused), and sets `q` to the
 * transformation: q a q^T is tridiagonal. `w`: n values of scratch. */
ALWAYS_INLINE void reduce(double *a, double *q, double *d, double *e, double *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            q[i * n + j] = i == j;
    /* Step k clears row and column k beyond the subdiagonal by reflecting rows k + 1 and up. */
    for (uint32_t k = 0; k + 2 < n; k++) {
        double *v = a + k * n; /* becomes the reflector from k + 1 on */
        double sum = 0;
        for (uint32_t j = k + 2; j < n; j++)
            sum += v[j] * v[j];
        d[k] = v[k];
        e[k + 1] = v[k + 1];
        if (sum == 0)
            continue;
        const double length = sqrt(v[k + 1] * v[k + 1] + sum);
        const double alpha = v[k + 1] > 0 ? -length : length;
        const double half = length * length - v[k + 1] * alpha; /* |v|^2 / 2 of the reflector */
        e[k + 1] = alpha;
        v[k + 1] -= alpha;
        double dot = 0;
        const uint32_t from = k + 1, left = n - from;
        memset(w, 0, n * sizeof *w);
        for (uint32_t j = from; j < n; j++) /* w = A v / half; A stays symmetric to the bit */
            add_multiple(w + from, a + j * n + from, v[j], left);
        for (uint32_t i = from; i < n; i++) {
            w[i] /= half;
            dot += w[i] * v[i];
        }
        for (uint32_t i = from; i < n; i++)
            w[i] -= dot / (2 * half) * v[i];
        for (uint32_t i = from; i < n; i++)
            subtract_two(a + i * n + from, v + from, w + from, w[i], v[i], left);
        /* Applies the reflection to q: row i loses v[i] / half (v^T q). */
        memset(w, 0, n * sizeof *w);
        for (uint32_t i = from; i < n; i++)
            add_multiple(w, q + i * n, v[i], n);
        for (uint32_t i = from; i < n; i++)
            add_multiple(q + i * n, w, -(v[i] / half), n);
    }
    if (n > 1) {
        d[n - 2] = a[(n - 2) * n + n - 2];
        e[n - 1] = a[(n - 2) * n + n - 1];
    }
    d[n - 1] = a[n * n - 1];
}

/* Applies the rotation (c, s) to rows i and i + 1 of q. */
ALWAYS_INLINE void rotate(double *q, uint32_t n, uint32_t i, double c, double s)
{
    double *restrict low = q + i * n, *restrict high = low + n;
    for (uint32_t k = 0; k < n; k++) {
        const double h = high[k];
        high[k] = s * low[k] + c * h;
        low[k] = c * low[k] - s * h;
    }
}

/* Diagonalises the tridiagonal matrix. False: no convergence, as with NaN. */
ALWAYS_INLINE bool iterate(double *q, double *d, double *e, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        e[i - 1] = e[i];
    e[n - 1] = 0;
    /* Elements below the rounding error of the largest values count as 0: the smallest ones of a
     * rank-deficient matrix consist of nothing else, and would never be small relative to each
     * other. */
    double least = 0;
    for (uint32_t i = 0; i < n; i++)
        least = fmax(least, DBL_EPSILON * (fabs(d[i]) + fabs(e[i])));
    for (uint32_t l = 0; l < n; l++) {
        for (uint32_t iteration = 0;; iteration++) {
            uint32_t m = l;
            while (m + 1 < n && fabs(e[m]) > least)
                m++;
            if (m == l)
                break;
            if (iteration == ITERATIONS_MOST)
                return false;
            double g = (d[l + 1] - d[l]) / (2 * e[l]);
            double r = sqrt(g * g + 1);
            g = d[m] - d[l] + e[l] / (g + (g < 0 ? -r : r));
            double s = 1, c = 1, p = 0;
            uint32_t i = m;
            for (; i-- > l;) {
                const double f = s * e[i], b = c * e[i];
                r = sqrt(f * f + g * g);
                e[i + 1] = r;
                if (r == 0) { /* the matrix splits */
                    d[i + 1] -= p;
                    e[m] = 0;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                rotate(q, n, i, c, s);
            }
            if (r == 0 && i + 1 > l)
                continue;
            d[l] -= p;
            e[l] = g;
            e[m] = 0;
        }
    }
    return true;
}

AVX2_TOO static bool decompose(double *a, double *q, double *d, double *e, double *w, uint32_t n)
{
    reduce(a, q, d, e, w, n);
    return iterate(q, d, e, n);
}

/* Sorts by descending eigenvalue, and normalises the sign of each vector. */
static void arrange(double *vectors, double *values, const double *q, const double *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t place = 0; /* equal ones keep their order */
        for (uint32_t j = 0; j < n; j++)
            place += d[j] > d[i] || (d[j] == d[i] && j < i);
        values[place] = d[i];
        uint32_t largest = 0;
        for (uint32_t k = 1; k < n; k++)
            if (fabs(q[i * n + k]) > fabs(q[i * n + largest]))
                largest = k;
        const double sign = q[i * n + largest] < 0 ? -1 : 1;
        for (uint32_t k = 0; k < n; k++)
            vectors[place * n + k] = sign * q[i * n + k];
    }
}

enum status eigen_symmetric(double *vectors, double *values, uint32_t n, struct error *err)
{
    const size_t size = (size_t)n * n + 3 * (size_t)n;
    double *q = malloc(size * sizeof *q);
    if (!q)
        return error_memory(err, size * sizeof *q, "eigenvectors");
    double *d = q + (size_t)n * n, *e = d + n, *w = e + n;
    enum status status = STATUS_OK;
    e[0] = 0;
    if (decompose(vectors, q, d, e, w, n))
        arrange(vectors, values, q, d, n);
    else
        status = error_set(err, STATUS_FAILED,
                           "computing the eigenvalues of the covariance did not converge");
    free(q);
    return status;
}
