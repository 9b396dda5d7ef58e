/* test_pages_rules.c: what a report omits if comparing all pictures would take too long. */
#include "runner.h"

#include "ocl/ocl.h"
#include "report/pages_data.h"
#include <stdlib.h>

/* A CPU device is no reason to compare more rows. */
static void rows_are_compared_up_to_a_number(void **state)
{
    struct ocl_context *const *contexts = (struct ocl_context *const *)state;
    const struct cluster_devices none = {NULL, 0}, one = {contexts, 1};
    const bool gpu = ocl_context_device(contexts[0])->type != CL_DEVICE_TYPE_CPU;
    assert_true(pages_compare_rows(150000, 512, &none));
    assert_true(pages_compare_rows(150000, 512, &one));
    assert_false(pages_compare_rows(1200000, 192, &none));
    assert_int_equal(pages_compare_rows(1200000, 192, &one), gpu);
}

static void codes_are_compared_up_to_a_number(void **state)
{
    (void)state;
    assert_true(pages_compare_codes(240000));
    assert_false(pages_compare_codes(250000));
    assert_false(pages_compare_codes(1200000));
}

static struct ocl_devices devices;

static int setup(void **state)
{
    struct error err = ERROR_INIT;
    return ocl_devices_open(&devices, 2, &err) != STATUS_OK || devices.count == 0 ||
           ocl_context_open((struct ocl_context **)state, &devices.device[0], NULL, &err) !=
               STATUS_OK;
}

static int teardown(void **state)
{
    ocl_context_close((struct ocl_context **)state);
    ocl_devices_close(&devices);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_are_compared_up_to_a_number),
    cmocka_unit_test(codes_are_compared_up_to_a_number),
};

TEST_GROUP(pages_rules, setup, teardown)
