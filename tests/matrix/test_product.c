/* test_product.c: each sum is one chain without fused multiply-add, whatever the processor
 * supports. */
#include "runner.h"

#include "matrix/product.h"

#include <string.h>

#define DEPTH 37

static double value(unsigned i)
{
    return 1.0 / (3 + i * 7919 % 1009) - 0.002 * (i % 3);
}

/* a(c, i) is stored by rows and by columns. */
static void test_chains(void **state)
{
    (void)state;
    double a[PRODUCT_ROWS * DEPTH], b[DEPTH * PRODUCT_COLUMNS];
    for (unsigned i = 0; i < PRODUCT_ROWS * DEPTH; i++)
        a[i] = value(i);
    for (unsigned i = 0; i < DEPTH * PRODUCT_COLUMNS; i++)
        b[i] = value(i + 5000);
    for (unsigned turned = 0; turned < 2; turned++) {
        const size_t row_step = turned ? DEPTH : 1, depth_step = turned ? 1 : PRODUCT_ROWS;
        double out[PRODUCT_ROWS * PRODUCT_COLUMNS], wanted[PRODUCT_ROWS * PRODUCT_COLUMNS];
        for (unsigned i = 0; i < PRODUCT_ROWS * PRODUCT_COLUMNS; i++) {
            volatile double sum = out[i] = value(i + 9000);
            for (unsigned c = 0; c < DEPTH; c++) {
                const volatile double term = a[i / PRODUCT_COLUMNS * row_step + c * depth_step] *
                                             b[c * PRODUCT_COLUMNS + i % PRODUCT_COLUMNS];
                sum += term;
            }
            wanted[i] = sum;
        }
        product_choose()(out, a, row_step, depth_step, b, DEPTH);
        assert_memory_equal(out, wanted, sizeof out);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_chains),
};
TEST_GROUP(product, NULL, NULL)
