/* test_ocl_ndrange.c: the OpenCL C version and the number of work-items that a range needs, and why
 * a range was refused. */
#include "runner.h"

#include "ocl/ocl_ndrange.h"
#include <stdio.h>
#include <string.h>

static struct ocl_device device_of(const char *version, bool non_uniform, bool opencl_c_2)
{
    struct ocl_device device = {.non_uniform_groups = non_uniform,
                                .opencl_c_2 = opencl_c_2,
                                .max_work_group = 256,
                                .max_work_item = {1024, 64, 64}};
    snprintf(device.version, sizeof device.version, "%s", version);
    return device;
}

static void options_and_sizes(void **state)
{
    (void)state;
    const struct ocl_device uniform = device_of("OpenCL 3.0 x", false, true),
                            second = device_of("OpenCL 2.1 x", true, true),
                            third = device_of("OpenCL 3.0 x", true, false);
    assert_string_equal(ocl_range_option(&uniform), "-cl-std=CL1.2");
    assert_string_equal(ocl_range_option(&second), "-cl-std=CL2.0");
    assert_string_equal(ocl_range_option(&third), "-cl-std=CL3.0");
    assert_int_equal(ocl_range_size(&uniform, 64, 32), 64);
    assert_int_equal(ocl_range_size(&uniform, 65, 32), 96);
    assert_int_equal(ocl_range_size(&third, 65, 32), 65);
    assert_string_equal(ocl_ndrange_version(&second), "2.0");
    assert_string_equal(ocl_ndrange_version(&third), "3.0");
    static const char *const versions[] = {"1.2", "2.0", "3.0"};
    for (int i = 0; i < 3; i++) {
        const struct ocl_ndrange range = {.c_version = versions[i]};
        char option[20];
        snprintf(option, sizeof option, "-cl-std=CL%s", versions[i]);
        assert_string_equal(ocl_ndrange_option(&range), option);
    }
}

static void why_refused(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        size_t global[2], local[2];
        int native;
        const char *why;
    } cases[] = {
        {"3.0", {8, 8}, {0, 0}, CL_BUILD_PROGRAM_FAILURE, "as OpenCL C 3.0"},
        {"2.0", {8, 8}, {8, 128}, CL_INVALID_WORK_ITEM_SIZE, "of at most 1024 x 64"},
        {"2.0", {8, 8}, {0, 0}, CL_INVALID_WORK_ITEM_SIZE, "as it was"},
        {"2.0", {64, 64}, {32, 16}, CL_INVALID_WORK_GROUP_SIZE, "at most 256 work-items"},
        {"2.0", {64, 64}, {16, 16}, CL_INVALID_WORK_GROUP_SIZE, "as it was"},
        {"1.2", {65, 64}, {16, 16}, CL_INVALID_WORK_GROUP_SIZE, "OpenCL C 1.2 requires"},
        {"1.2", {64, 65}, {16, 16}, CL_INVALID_WORK_GROUP_SIZE, "64 x 65 is not a multiple"},
        {"2.0", {65, 64}, {16, 16}, CL_INVALID_WORK_GROUP_SIZE, "the device requires"},
        {"2.0", {65, 64}, {0, 0}, CL_INVALID_WORK_GROUP_SIZE, "as it was"},
    };
    const struct ocl_device device = device_of("OpenCL 3.0 x", true, true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error refused = ERROR_INIT;
        char why[300];
        error_set(&refused, STATUS_FAILED, "as it was");
        error_cause(&refused, CAUSE_OPENCL, cases[i].native);
        struct ocl_ndrange range = {.c_version = cases[i].version};
        memcpy(range.global, cases[i].global, sizeof range.global);
        memcpy(range.local, cases[i].local, sizeof range.local);
        assert_non_null(
            strstr(ocl_ndrange_why(why, sizeof why, &range, &device, &refused), cases[i].why));
    }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(options_and_sizes),
                                          cmocka_unit_test(why_refused)};
TEST_GROUP(ocl_ndrange, NULL, NULL)
