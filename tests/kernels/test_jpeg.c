/* test_jpeg.c: the kernels that compute pixels and thumbnails from JPEG coefficients, compared with
 * plain C on all devices. Run it under Oclgrind, too. */
#include "test_self_test.h"

#include "device/plan.h"

static void test_pixels_equal_the_reference(void **state)
{
    (void)state;
    test_self_test(&jpeg_step, STEP_ALWAYS, 50000);
}

static void test_thumbnails_equal_the_reference(void **state)
{
    (void)state;
    test_self_test(&thumbnail_step, STEP_ALWAYS, 10000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_pixels_equal_the_reference),
    cmocka_unit_test(test_thumbnails_equal_the_reference),
};
TEST_GROUP(jpeg, NULL, NULL)
