/* test_ocl_device.c: which of several devices is selected by number, type or name. */
#include "runner.h"

#include "ocl/ocl.h"
#include <stdio.h>
#include <string.h>

#define COUNT 6
enum { LLVMPIPE, POCL, SMALL_POCL, GPU, BROKEN_GPU, ACCELERATOR };

static struct ocl_device all[COUNT] = {
    [LLVMPIPE] = {.name = "llvmpipe (LLVM 15.0.6, 256 bits)",
                  .platform = "rusticl",
                  .type = CL_DEVICE_TYPE_GPU,
                  .compute_units = 64},
    [POCL] = {.name = "pthread-skylake", .type = CL_DEVICE_TYPE_CPU, .compute_units = 8},
    [SMALL_POCL] = {.name = "basic-skylake", .type = CL_DEVICE_TYPE_CPU, .compute_units = 1},
    [GPU] = {.name = "NVIDIA H200", .type = CL_DEVICE_TYPE_GPU, .compute_units = 2},
    [BROKEN_GPU] = {.name = "old GPU", .type = CL_DEVICE_TYPE_GPU, .compute_units = 99},
    [ACCELERATOR] = {.name = "board", .type = CL_DEVICE_TYPE_ACCELERATOR, .compute_units = 1},
};

/* Returns the device that is selected among those given by the bits of `present`, or -1 for an
 * error. */
static int taken(unsigned present, const char *selector)
{
    struct ocl_device device[COUNT];
    struct ocl_devices devices = {device, 0};
    unsigned which[COUNT], chosen[COUNT], count = 0;
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < COUNT; i++) {
        if (!(present >> i & 1))
            continue;
        device[devices.count] = all[i];
        device[devices.count].usable = i != BROKEN_GPU;
        device[devices.count].index = devices.count;
        which[devices.count++] = i;
    }
    if (ocl_devices_select(chosen, &count, COUNT, &devices, selector, &err) != STATUS_OK)
        return -1;
    assert_true(count >= 1);
    return (int)which[chosen[0]];
}

static void best_by_default(void **state)
{
    (void)state;
    assert_int_equal(taken(1u << POCL | 1u << GPU | 1u << ACCELERATOR, NULL), GPU);
    assert_int_equal(taken(1u << POCL | 1u << ACCELERATOR, NULL), ACCELERATOR);
    assert_int_equal(taken(1u << SMALL_POCL | 1u << POCL, NULL), POCL);
    assert_int_equal(taken(1u << BROKEN_GPU | 1u << POCL, NULL), POCL);
    assert_int_equal(taken(1u << BROKEN_GPU, NULL), -1);
}

static void software_renderers_come_last(void **state)
{
    (void)state;
    const cl_device_type types[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_CPU};
    for (unsigned i = 0; i < 2; i++) {
        all[LLVMPIPE].type = types[i];
        assert_int_equal(taken(1u << LLVMPIPE | 1u << SMALL_POCL, NULL), SMALL_POCL);
        assert_int_equal(taken(1u << LLVMPIPE | 1u << POCL, "all"), POCL);
        assert_int_equal(taken(1u << LLVMPIPE | 1u << POCL, "cpu"), POCL);
        assert_int_equal(taken(1u << LLVMPIPE | 1u << GPU, "gpu"), GPU);
        assert_int_equal(taken(1u << LLVMPIPE, NULL), LLVMPIPE);
        assert_int_equal(taken(1u << LLVMPIPE | 1u << GPU, "LLVMpipe"), LLVMPIPE);
    }
}

static void by_number_or_name(void **state)
{
    (void)state;
    const unsigned three = 1u << POCL | 1u << GPU | 1u << ACCELERATOR;
    assert_int_equal(taken(three, "2"), ACCELERATOR);
    assert_int_equal(taken(three, "2,0"), ACCELERATOR);
    assert_int_equal(taken(three, "3"), -1);
    assert_int_equal(taken(three, "skylake"), POCL);
    assert_int_equal(taken(three, "no such"), -1);
    assert_int_equal(taken(1u << POCL, "gpu"), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(best_by_default),
    cmocka_unit_test(software_renderers_come_last),
    cmocka_unit_test(by_number_or_name),
};
TEST_GROUP(ocl_device, NULL, NULL)
