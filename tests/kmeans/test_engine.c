/* test_engine.c: which of two restarts is kept. */
#include "runner.h"

#include "kmeans/engine.h"

#include <math.h>

static void lower_inertia_is_better(void **state)
{
    (void)state;
    struct cluster_outcome best = {.k = 1, .inertia = 2}, other = {.k = 2, .inertia = 1.5};
    engine_keep_better(&best, &other);
    assert_int_equal(best.k, 2);
    assert_true(best.inertia == 1.5);
    assert_int_equal(other.k, 1);
    engine_keep_better(&best, &other);
    assert_int_equal(best.k, 2);
}

static void the_first_of_equals_is_kept(void **state)
{
    (void)state;
    struct cluster_outcome best = {.k = 1, .inertia = 2}, other = {.k = 2, .inertia = 2};
    engine_keep_better(&best, &other);
    assert_int_equal(best.k, 1);
    assert_int_equal(other.k, 2);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(lower_inertia_is_better),
                                          cmocka_unit_test(the_first_of_equals_is_kept)};
TEST_GROUP(engine, NULL, NULL)
