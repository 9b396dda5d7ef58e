/* test_self_test.h: runs the self-test of a step on all devices that support it. */
#ifndef CLPIPE_TESTS_KERNELS_TEST_SELF_TEST_H
#define CLPIPE_TESTS_KERNELS_TEST_SELF_TEST_H

#include "runner.h"

#include "device/proof.h"

/* Fails unless at least one device is `possible` with the parameter and all such devices compare
 * more than `least` bytes without a difference. */
static inline void test_self_test(const struct step *step, uint32_t parameter, uint64_t least)
{
    struct ocl_devices devices;
    struct error err = ERROR_INIT;
    unsigned tried = 0;
    assert_int_equal(ocl_devices_open(&devices, 2, &err), STATUS_OK);
    for (unsigned i = 0; i < devices.count; i++) {
        struct ocl_context *context;
        uint64_t compared = 0, wrong = 0;
        if (!devices.device[i].usable ||
            (step->possible && !step->possible(&devices.device[i], parameter)))
            continue;
        assert_int_equal(ocl_context_open(&context, &devices.device[i], NULL, &err), STATUS_OK);
        if (proof_test(&compared, &wrong, (struct step_node){.step = step}, context, &err) !=
            STATUS_OK)
            fail_msg("%s: %s", devices.device[i].name, err.sentence);
        if (wrong > 0)
            fail_msg("%s: %llu of %llu bytes differ", devices.device[i].name,
                     (unsigned long long)wrong, (unsigned long long)compared);
        assert_true(compared > least);
        ocl_context_close(&context);
        tried++;
    }
    assert_true(tried > 0);
    ocl_devices_close(&devices);
}

#endif
