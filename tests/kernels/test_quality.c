/* test_quality.c: the kernel for words of the kind quality compared with plain C on all devices,
 * also with the settings for other devices. */
#include "test_self_test.h"

#include "device/plan.h"

static void test_words_equal_the_reference(void **state)
{
    (void)state;
    test_self_test(&quality_step, 0, 10000);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_words_equal_the_reference)};
TEST_GROUP(quality, NULL, NULL)
