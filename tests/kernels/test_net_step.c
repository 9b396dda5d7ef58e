/* test_net_step.c: a synthetic network on every device there is, on the host's threads and by kernels,
 * against plain C (run it under oclgrind too). */
#include "runner.h"
#include "test_devices.h"

#include "steps/net_step.h"

static void test_devices_equal_the_reference(void **state)
{
    const struct ocl_devices *devices = *state;
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < devices->count; i++) {
        struct ocl_device device = devices->device[i];
        for (int turn = 0; device.usable && turn < 2; turn++) {
            struct ocl_context *context;
            uint64_t compared, wrong;
            if (turn == 1) /* as one that is no CPU */
                device.type = CL_DEVICE_TYPE_GPU;
            assert_int_equal(ocl_context_open(&context, &device, NULL, &err), STATUS_OK);
            if (net_step.self_test(&compared, &wrong, context, &err) != STATUS_OK)
                fail_msg("%s", err.sentence);
            assert_int_equal(wrong, 0);
            assert_true(compared > 700);
            ocl_context_close(&context);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_devices_equal_the_reference),
};
TEST_GROUP(net_step, test_devices_open, test_devices_close)
