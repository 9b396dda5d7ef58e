/* test_eigen.c: eigenvectors of random, repeated, diagonal and zero matrices are orthonormal,
 * reproduce the matrix, and have the defined order and signs. */
#include "runner.h"

#include "base/random.h"
#include "features/eigen.h"

#include <math.h>
#include <string.h>

#define MOST 96u

static double matrix[MOST * MOST], vectors[MOST * MOST], values[MOST];

static void check(uint32_t n)
{
    struct error err = ERROR_INIT;
    double largest = 0;
    memcpy(vectors, matrix, n * n * sizeof *matrix);
    assert_int_equal(eigen_symmetric(vectors, values, n, &err), STATUS_OK);
    for (uint32_t i = 0; i < n * n; i++)
        largest = fmax(largest, fabs(matrix[i]));
    for (uint32_t i = 0; i < n; i++) {
        double extreme = 0;
        assert_true(i == 0 || values[i - 1] >= values[i]);
        for (uint32_t k = 0; k < n; k++)
            extreme = fabs(vectors[i * n + k]) > fabs(extreme) ? vectors[i * n + k] : extreme;
        assert_true(extreme > 0);
        for (uint32_t j = 0; j < n; j++) {
            double dot = 0, entry = 0;
            for (uint32_t k = 0; k < n; k++) {
                dot += vectors[i * n + k] * vectors[j * n + k];
                entry += values[k] * vectors[k * n + i] * vectors[k * n + j];
            }
            assert_true(fabs(dot - (i == j)) < 1e-12);
            assert_true(fabs(entry - matrix[i * n + j]) <= 1e-12 * largest);
        }
    }
}

static void matrices_are_reproduced(void **state)
{
    (void)state;
    uint32_t random = RANDOM_START;
    for (uint32_t n = 1; n <= MOST; n += n < 6 ? 1 : 17) {
        for (uint32_t rank = 0; rank <= n; rank += n > 6 ? 5 : 1) {
            memset(matrix, 0, sizeof matrix);
            for (uint32_t r = 0; r < rank; r++) {
                double v[MOST];
                for (uint32_t i = 0; i < n; i++)
                    v[i] = (double)(int32_t)random_next(&random) * 0x1p-20;
                for (uint32_t i = 0; i < n; i++)
                    for (uint32_t j = 0; j < n; j++)
                        matrix[i * n + j] += v[i] * v[j];
            }
            check(n);
        }
    }
}

static void repeated_eigenvalues(void **state)
{
    (void)state;
    const uint32_t n = 12;
    for (uint32_t kind = 0; kind < 3; kind++) {
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                matrix[i * n + j] = kind == 0   ? (double)(i == j)
                                    : kind == 1 ? (i == j ? (double)(i / 3) : 0)
                                                : (double)(i / 4 == j / 4) + (double)(i == j);
        check(n);
    }
    assert_true(fabs(values[0] - 5) < 1e-12 && fabs(values[3] - 1) < 1e-12);
}

/* A matrix as from a few flat or striped descriptors: most eigenvalues are zero except for
 * rounding. */
static void few_directions(void **state)
{
    (void)state;
    const uint32_t n = 96;
    for (uint32_t rank = 0; rank < 6; rank++) {
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++) {
                double sum = 0;
                for (uint32_t r = 1; r <= rank; r++)
                    sum += (double)(i * r * 37 % 251 * (i % r == 0)) *
                           (double)(j * r * 37 % 251 * (j % r == 0));
                matrix[i * n + j] = sum;
            }
        check(n);
        assert_true(fabs(values[rank]) <= 1e-9 * fabs(values[0]));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(matrices_are_reproduced),
    cmocka_unit_test(repeated_eigenvalues),
    cmocka_unit_test(few_directions),
};

TEST_GROUP(eigen, NULL, NULL)
