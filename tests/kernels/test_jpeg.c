/* test_jpeg.c: the kernels that make pixels of JPEG coefficients, against plain C on every
 * device there is (run it under oclgrind too). */
#include "test_self_test.h"

#include "steps/jpeg_step.h"

static void test_pixels_equal_the_reference(void **state)
{
    (void)state;
    test_self_test(&jpeg_step, JPEG_STEP_ALWAYS, 50000);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_pixels_equal_the_reference)};
TEST_GROUP(jpeg, NULL, NULL)
