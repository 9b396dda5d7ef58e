/* test_entropy.c: the kernel that decodes JPEG streams, compared with plain C on all devices. Run
 * it under Oclgrind, too. */
#include "test_self_test.h"

#include "device/plan.h"

static void test_coefficients_equal_the_reference(void **state)
{
    (void)state;
    test_self_test(&entropy_step, STEP_ALWAYS, 500000);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_coefficients_equal_the_reference)};
TEST_GROUP(entropy, NULL, NULL)
