/* test_histogram.c: the histogram kernels on every device there is (run it under oclgrind too). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "histogram/selftest.h"

#include <stdio.h>

static void show(const char *text, void *user)
{
    printf("  %s: %s\n", (const char *)user, text);
}

static void test_every_variant_equals_the_reference(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct ocl_devices devices;
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    assert_true(devices.count > 0);
    for (unsigned i = 0; i < devices.count; i++) {
        if (!devices.device[i].usable)
            continue;
        struct ocl_context *context;
        uint64_t wrong = 1;
        assert_int_equal(ocl_context_open(&context, &devices.device[i], NULL, &err), STATUS_OK);
        enum status status = histogram_self_test(context, show, devices.device[i].name, &wrong, &err);
        if (status != STATUS_OK)
            fail_msg("%s", err.sentence);
        assert_int_equal(wrong, 0);
        ocl_context_close(&context);
    }
    ocl_devices_close(&devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_variant_equals_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
