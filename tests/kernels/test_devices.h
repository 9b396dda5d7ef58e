/* test_devices.h: opens all OpenCL devices for the tests of a group. */
#ifndef CLPIPE_TESTS_KERNELS_TEST_DEVICES_H
#define CLPIPE_TESTS_KERNELS_TEST_DEVICES_H

#include "ocl/ocl.h"
#include <stdio.h>

/* Fixtures of a group; the state is a struct ocl_devices. */
static inline int test_devices_open(void **state)
{
    static struct ocl_devices devices;
    struct error err = ERROR_INIT;
    *state = &devices;
    if (ocl_devices_open(&devices, 2, &err) == STATUS_OK && devices.count > 0)
        return 0;
    printf("# no OpenCL device: %s\n", err.sentence);
    return -1;
}

static inline int test_devices_close(void **state)
{
    ocl_devices_close(*state);
    return 0;
}

#endif
