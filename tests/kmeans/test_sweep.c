/* test_sweep.c: which k is suggested while results for smaller k arrive. */
#include "runner.h"

#include "kmeans/run.h"

#include <math.h>
#include <string.h>

static struct cluster_sweep_value values[3];

static void suggest(struct cluster_sweep *sweep, double first, double last)
{
    values[0].measures.silhouette = first;
    values[2].measures.silhouette = last;
    values[0].measures.simplified_silhouette = last;
    values[2].measures.simplified_silhouette = first;
    *sweep = (struct cluster_sweep){.count = 3, .values = values, .suggested = 2};
}

static void the_highest_score_is_preferred(void **state)
{
    (void)state;
    struct cluster_sweep sweep;
    suggest(&sweep, 0.5, 0.4);
    assert_true(cluster_sweep_prefers(&sweep, 0));
    suggest(&sweep, 0.4, 0.5);
    assert_false(cluster_sweep_prefers(&sweep, 0));
    strcpy(sweep.measure, "simplified_silhouette");
    assert_true(cluster_sweep_prefers(&sweep, 0));
}

static void the_smallest_of_equals_is_preferred(void **state)
{
    (void)state;
    struct cluster_sweep sweep;
    suggest(&sweep, 0.5, 0.5);
    assert_true(cluster_sweep_prefers(&sweep, 0));
}

static void a_score_is_preferred_to_nan(void **state)
{
    (void)state;
    struct cluster_sweep sweep;
    suggest(&sweep, -1, NAN);
    assert_true(cluster_sweep_prefers(&sweep, 0));
    suggest(&sweep, NAN, -1);
    assert_false(cluster_sweep_prefers(&sweep, 0));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_highest_score_is_preferred),
    cmocka_unit_test(the_smallest_of_equals_is_preferred),
    cmocka_unit_test(a_score_is_preferred_to_nan),
};
TEST_GROUP(sweep, NULL, NULL)
