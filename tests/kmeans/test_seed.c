/* test_seed.c: the number of candidates that a round of k-means|| picks. */
#include "runner.h"

#include "../../pipeline/kmeans/seed.c"

/* Five rounds would pick a quarter of the rows as candidates, so each round picks only a fifth of
 * the number that it picks with one more row. */
static void candidates_are_limited_to_a_quarter(void **state)
{
    (void)state;
    const uint32_t k = 100;
    const struct data quarter = {.rows = 4 * 5 * 2 * k}, more = {.rows = 4 * 5 * 2 * k + 1};
    const double few = 0.4 * k, many = 2.0 * k,
                 each[] = {candidates_each(&quarter, k), candidates_each(&more, k)};
    assert_memory_equal(&each[0], &few, sizeof few);
    assert_memory_equal(&each[1], &many, sizeof many);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(candidates_are_limited_to_a_quarter)};
TEST_GROUP(seed, NULL, NULL)
