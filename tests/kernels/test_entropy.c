/* test_entropy.c: the kernel that decodes JPEG streams, against plain C on every device there is (run it
 * under oclgrind too). */
#include "runner.h"

#include "steps/entropy_step.h"

static void test_coefficients_equal_the_reference(void **state)
{
    (void)state;
    struct ocl_devices devices;
    struct error err = ERROR_INIT;
    unsigned tried = 0;
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    for (unsigned i = 0; i < devices.count; i++) {
        struct ocl_context *context;
        uint64_t compared, wrong;
        if (!devices.device[i].usable ||
            !entropy_step.possible(&devices.device[i], ENTROPY_STEP_ALWAYS))
            continue;
        assert_int_equal(ocl_context_open(&context, &devices.device[i], NULL, &err), STATUS_OK);
        if (entropy_step.self_test(&compared, &wrong, context, &err) != STATUS_OK)
            fail_msg("%s: %s", devices.device[i].name, err.sentence);
        if (wrong > 0)
            fail_msg("%s: %llu of %llu bytes differ", devices.device[i].name,
                     (unsigned long long)wrong, (unsigned long long)compared);
        assert_true(compared > 500000);
        ocl_context_close(&context);
        tried++;
    }
    assert_true(tried > 0);
    ocl_devices_close(&devices);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_coefficients_equal_the_reference)};
TEST_GROUP(entropy, NULL, NULL)
