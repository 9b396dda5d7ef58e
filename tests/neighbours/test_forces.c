/* test_forces.c: approximate forces compared with sums over all pairs. */
#include "base/random.h"
#include "neighbours/forces.h"
#include "runner.h"

#include <math.h>
#include <stdlib.h>

enum { POINTS = 1500 };

static void exact(double *force, double *total, const float *xy)
{
    *total = 0;
    for (unsigned i = 0; i < POINTS; i++) {
        force[2 * i] = force[2 * i + 1] = 0;
        for (unsigned j = 0; j < POINTS; j++) {
            const double dx = (double)xy[2 * i] - xy[2 * j];
            const double dy = (double)xy[2 * i + 1] - xy[2 * j + 1];
            const double q = 1 / (1 + dx * dx + dy * dy);
            *total += i == j ? 0 : q;
            force[2 * i] += q * q * dx;
            force[2 * i + 1] += q * q * dy;
        }
    }
}

/* The total error relative to the total force. */
static double error_of(const float *xy, float theta, unsigned threads)
{
    struct forces *forces;
    struct workers *workers;
    float *force = malloc(2 * POINTS * sizeof *force);
    double *wanted = malloc(2 * POINTS * sizeof *wanted), total, wanted_total, wrong = 0, sum = 0;
    assert_int_equal(forces_open(&forces, POINTS, NULL), STATUS_OK);
    assert_int_equal(workers_open(&workers, threads, NULL), STATUS_OK);
    forces_repel(force, &total, forces, xy, theta, workers);
    exact(wanted, &wanted_total, xy);
    for (unsigned i = 0; i < 2 * POINTS; i++) {
        assert_true(isfinite(force[i]));
        wrong += pow(force[i] - wanted[i], 2);
        sum += pow(wanted[i], 2);
    }
    assert_true(fabs(total - wanted_total) <= 0.01 * wanted_total);
    workers_close(&workers);
    forces_close(&forces);
    free(force);
    free(wanted);
    return sum > 0 ? sqrt(wrong / sum) : sqrt(wrong);
}

static float uniform(uint32_t *random)
{
    return (float)(random_next(random) >> 8) / (1 << 24);
}

static void test_forces(void **state)
{
    (void)state;
    uint32_t random = RANDOM_START + test_seed();
    float xy[2 * POINTS];
    static const float extents[] = {1e-4f, 1, 30, 1e3f};
    for (unsigned e = 0; e < 4; e++) {
        for (unsigned i = 0; i < 2 * POINTS; i++)
            xy[i] = extents[e] * (uniform(&random) + (float)(i / 2 % 3)) + 5;
        assert_true(error_of(xy, 0.5f, 2) < 0.02);
        /* Nothing is approximated, so only rounding errors remain. */
        assert_true(error_of(xy, 0, 1) < 1e-3);
    }
}

/* Points at the same place, points on a line, and one point far from the others. */
static void test_degenerate_places(void **state)
{
    (void)state;
    uint32_t random = RANDOM_START + test_seed();
    float xy[2 * POINTS] = {0};
    assert_true(error_of(xy, 0.5f, 1) < 1e-6);
    for (unsigned i = 0; i < POINTS; i++) {
        xy[2 * i] = i < 1000 ? 3 : 10 * uniform(&random);
        xy[2 * i + 1] = 1;
    }
    assert_true(error_of(xy, 0.5f, 2) < 0.02);
    xy[2 * 1400] = 1e5f;
    assert_true(error_of(xy, 0.5f, 2) < 0.02);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_forces),
    cmocka_unit_test(test_degenerate_places),
};
TEST_GROUP(forces, NULL, NULL)
