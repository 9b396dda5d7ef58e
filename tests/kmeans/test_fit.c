/* test_fit.c: when centroids have converged. */
#include "runner.h"

#include "kmeans/cluster.h"
#include "kmeans/fit.h"

#define ROWS   4
#define STRIDE 16

/* Columns with values 0, 1, 2, 3 and 0, 0, 8, 8 have variances 1.25 and 16. */
static void tolerance_is_relative_to_the_mean_variance(void **state)
{
    (void)state;
    static float rows[ROWS * STRIDE];
    struct error err = ERROR_INIT;
    struct workers *workers;
    struct cluster_config config;
    struct data data = {.dimension = 2, .rows = ROWS};
    const struct fit fit = {.config = &config, .data = &data};
    cluster_config_default(&config);
    for (uint32_t i = 0; i < ROWS; i++) {
        rows[i * STRIDE] = (float)i;
        rows[i * STRIDE + 1] = i < 2 ? 0 : 8;
    }
    assert_int_equal(workers_open(&workers, 1, &err), STATUS_OK);
    assert_int_equal(column_stats_open(&data.stats, 2, ROWS, 0, ROWS, &err), STATUS_OK);
    assert_int_equal(column_stats_add(&data.stats, workers, rows, NULL, ROWS, STRIDE, &err),
                     STATUS_OK);
    column_stats_follow(&data.stats, NULL);
    assert_true(fit_tolerance(&fit) == 0);
    config.tol = 1;
    assert_true(fit_tolerance(&fit) == 8.625);
    config.tol = 0.5;
    assert_true(fit_tolerance(&fit) == 4.3125);
    column_stats_close(&data.stats);
    workers_close(&workers);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tolerance_is_relative_to_the_mean_variance)};
TEST_GROUP(fit, NULL, NULL)
