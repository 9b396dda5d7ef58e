/* test_canonical.c: the canonical distance equals its definition to the last bit, with and without
 * vector instructions. */
#include "runner.h"

#include "../../pipeline/kmeans/canonical.c"
#include <math.h>
#include <string.h>

#define STRIDE 160

static double defined(const float *x, const float *c, uint32_t stride)
{
    double lane[KMEANS_LANES] = {0};
    for (uint32_t j = 0; j < stride; j++) {
        const double t = (double)x[j] - (double)c[j];
        lane[j % KMEANS_LANES] = fma(t, t, lane[j % KMEANS_LANES]);
    }
    for (uint32_t half = 8; half > 0; half /= 2)
        for (uint32_t l = 0; l < half; l++)
            lane[l] += lane[l + half];
    return lane[0];
}

static void distance_equals_its_definition(void **state)
{
    (void)state;
    float x[STRIDE], c[STRIDE];
    for (uint32_t round = 0; round < 200; round++) {
        for (uint32_t j = 0; j < STRIDE; j++) {
            const int exponent = (int)(canonical_random(round, 3, j) * (round % 2 ? 200 : 2)) - 100;
            x[j] = (float)ldexp(canonical_random(round, 1, j) - 0.5, exponent);
            c[j] = (float)ldexp(canonical_random(round, 2, j) - 0.5, exponent);
        }
        for (uint32_t stride = KMEANS_LANES; stride <= STRIDE; stride += KMEANS_LANES) {
            const double wanted = defined(x, c, stride), got = canonical_distance(x, c, stride),
                         anywhere = distance_anywhere(x, c, stride);
            assert_memory_equal(&got, &wanted, sizeof wanted);
            assert_memory_equal(&anywhere, &wanted, sizeof wanted);
        }
    }
}

/* Sums of blocks of 256 values, of which the first would hide the others if they were added in
 * order. */
static void sums_of_blocks(void **state)
{
    (void)state;
    double values[KMEANS_BLOCK_ROWS + 2], block[KMEANS_BLOCK_ROWS], sum = 0;
    for (uint32_t i = 0; i < KMEANS_BLOCK_ROWS + 2; i++)
        values[i] = i == 0 ? 0x1p53 : 1;
    memcpy(block, values, sizeof block);
    const double whole = canonical_block_sum(block, KMEANS_BLOCK_ROWS);
    assert_true(whole == 0x1p53 + 254);
    canonical_add_blocks(&sum, values, KMEANS_BLOCK_ROWS + 2);
    assert_true(sum == whole + 2);
    memset(block, 255, sizeof block); /* NaN after the three values */
    memcpy(block, (double[]){1, 2, 4}, 3 * sizeof *block);
    assert_true(canonical_block_sum(block, 3) == 7);
}

static void the_first_of_the_nearest(void **state)
{
    (void)state;
    const float x[KMEANS_LANES] = {1};
    float centroids[4 * KMEANS_LANES] = {0};
    const float first[4] = {3, 2, 0, 2};
    double distance;
    for (int i = 0; i < 4; i++)
        centroids[i * KMEANS_LANES] = first[i];
    assert_int_equal(canonical_nearest(&distance, x, centroids, 4, KMEANS_LANES), 1);
    assert_true(distance == 1);
    assert_int_equal(canonical_nearest(&distance, x, centroids, 1, KMEANS_LANES), 0);
    assert_true(distance == 4);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(distance_equals_its_definition),
                                          cmocka_unit_test(sums_of_blocks),
                                          cmocka_unit_test(the_first_of_the_nearest)};
TEST_GROUP(canonical, NULL, NULL)
