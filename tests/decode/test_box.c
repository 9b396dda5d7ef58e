/* test_box.c: box sums of rows and columns equal those of a simple loop, for sizes that are not
 * multiples of the vector width. */
#include "base/random.h"
#include "decode/box.h"
#include "runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_rows_are_added(void **state)
{
    (void)state;
    uint32_t random = RANDOM_START + test_seed();
    enum { ROWS = 9, MOST = 200 };
    uint8_t bytes[ROWS][MOST];
    uint16_t sums[MOST + BOX_BEHIND];
    for (size_t count = 1; count <= MOST; count += 13) {
        struct box_row rows[ROWS];
        for (unsigned r = 0; r < ROWS; r++) {
            for (size_t i = 0; i < count; i++)
                bytes[r][i] = (uint8_t)(random_next(&random) >> 8);
            rows[r] = (struct box_row){bytes[r], (uint16_t)(random_next(&random) >> 8 & 15)};
            if (count % 2 == 0 && r < 4)
                rows[r].weight = 1;
        }
        memset(sums, 0xff, sizeof sums);
        box_add_rows(sums, rows, 4, count, true);
        box_add_rows(sums, rows + 4, ROWS - 4, count, false);
        for (size_t i = 0; i < count; i++) {
            unsigned wanted = 0;
            for (unsigned r = 0; r < ROWS; r++)
                wanted += bytes[r][i] * rows[r].weight;
            assert_int_equal(sums[i], wanted);
        }
        assert_int_equal(sums[count], 0xffff);
    }
}

static void check_columns(uint32_t from, uint32_t to, uint32_t row_weight, uint32_t *random)
{
    struct box_columns columns = {0};
    uint16_t *sums = calloc(3 * (size_t)from + BOX_BEHIND, sizeof *sums);
    uint8_t *out = calloc(3 * (size_t)to + 1, 1);
    assert_true(sums && out);
    for (size_t i = 0; i < 3 * (size_t)from; i++)
        sums[i] = (uint16_t)((random_next(random) >> 8 & 255) * row_weight);
    assert_true(box_place(&columns, from, to));
    box_add_columns(out, sums, &columns, row_weight);
    for (uint32_t x = 0; x < to; x++) {
        /* Boundaries are rounded down to sixteenths, or rounded to whole columns when reducing by
         * two or more. */
        const double unit = from / to >= 2 ? 1 : BOX_UNIT, up = from / to >= 2 ? 0.5 : 0;
        const double begin = floor((double)x * from * unit / to + up) / unit;
        const double end = floor((x + 1.0) * from * unit / to + up) / unit;
        for (unsigned c = 0; c < 3; c++) {
            double sum = 0;
            for (uint32_t i = 0; i < from; i++) {
                const double left = fmax(begin, i), right = fmin(end, i + 1.0);
                sum += right > left ? (right - left) * sums[3 * i + c] / row_weight : 0;
            }
            assert_true(fabs(out[3 * x + c] - sum / (end - begin)) <= 0.95);
        }
    }
    box_clear(&columns);
    free(sums);
    free(out);
}

static void test_columns_are_means(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{1, 1},    {7, 7},    {161, 160}, {240, 160}, {533, 160},
                                        {500, 64}, {1000, 3}, {97, 1},    {320, 160}, {1024, 16}};
    uint32_t random = RANDOM_START + test_seed();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t weight = 1; weight < 80; weight += 26) /* whole and partial rows */
            check_columns(sizes[i][0], sizes[i][1], weight, &random);
}

/* Places columns twice in the same memory: nothing of the wider picture remains. */
static void test_columns_are_placed_again(void **state)
{
    (void)state;
    struct box_columns columns = {0};
    assert_true(box_place(&columns, 5000, 500));
    assert_true(box_place(&columns, 33, 32));
    uint32_t total = 0;
    for (uint32_t i = 0; i < 2 * columns.pairs * 32; i++)
        total += columns.weight[i];
    assert_int_equal(total, 33 * BOX_UNIT);
    box_clear(&columns);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rows_are_added),
    cmocka_unit_test(test_columns_are_means),
    cmocka_unit_test(test_columns_are_placed_again),
};
TEST_GROUP(box, NULL, NULL)
