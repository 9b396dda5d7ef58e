/* test_net_step.c: synthetic networks on all devices, computed by the host's threads, by kernels
 * and by emulated tensor cores, compared with plain C. Tensor cores themselves are tested on
 * devices that have them. Run it under Oclgrind, too. */
#include "runner.h"
#include "test_devices.h"

#include "device/net_step.h"
#include "device/plan.h"
#include "device/proof.h"

/* Tests `device` as it is, or as if it were a GPU. */
static void test_device(struct ocl_device device, bool as_gpu, uint64_t parameter)
{
    struct error err = ERROR_INIT;
    struct ocl_context *context;
    uint64_t compared = 0, wrong = 0;
    device.type = as_gpu ? CL_DEVICE_TYPE_GPU : device.type;
    assert_int_equal(ocl_context_open(&context, &device, NULL, &err), STATUS_OK);
    const struct step_node node = {.step = &net_step, .parameter = parameter};
    if (proof_test(&compared, &wrong, node, context, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    assert_int_equal(wrong, 0);
    assert_true(compared > 1500);
    ocl_context_close(&context);
}

static void test_devices_equal_the_reference(void **state)
{
    const struct ocl_devices *devices = *state;
    bool any = false;
    for (unsigned i = 0; i < devices->count; i++) {
        const struct ocl_device *device = &devices->device[i];
        any = any || device->nvidia;
        for (int turn = 0; device->usable && turn < 2; turn++)
            test_device(*device, turn == 1, 0);
    }
    if (!any)
        print_message("tensor cores are not tested: there is no NVIDIA device\n");
}

/* Compiling these programs for a CPU takes half a minute, so only one device is tested: an NVIDIA
 * device if there is one, because its work-items run at the same time. PoCL 5.0 on AVX-512 gives
 * wrong values, unlike PoCL 3.1 and an H100; but no CPU device computes networks in this way. */
static void test_emulated_tensor_cores(void **state)
{
    const struct ocl_devices *devices = *state;
    const struct ocl_device *chosen = NULL;
    for (unsigned i = 0; i < devices->count; i++)
        if (devices->device[i].usable && (!chosen || devices->device[i].nvidia))
            chosen = &devices->device[i];
    if (!chosen)
        skip();
    else
        test_device(*chosen, true, NET_STEP_EMULATED);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_devices_equal_the_reference),
    cmocka_unit_test(test_emulated_tensor_cores),
};
TEST_GROUP_WITHIN(300, net_step, test_devices_open, test_devices_close)
