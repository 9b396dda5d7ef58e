/* test_variant.c: which features each variant accepts, the size of its tables and its launch
 * parameters, on simulated devices. */
#include "runner.h"

#include "device/variant.h"
#include "features/kind.h"

#include <stdio.h>
#include <string.h>

#define KIB 1024ull

static const struct ocl_device h200 = {.type = CL_DEVICE_TYPE_GPU,
                                       .platform = "NVIDIA CUDA",
                                       .nvidia_major = 9,
                                       .compute_units = 132,
                                       .local_memory = 48 * KIB,
                                       .max_work_group = 1024,
                                       .max_work_item = {1024, 1024, 64}};
static const struct ocl_device cpu = {.type = CL_DEVICE_TYPE_CPU,
                                      .platform = "Portable Computing Language",
                                      .pocl_major = 3,
                                      .compute_units = 2,
                                      .local_memory = 512 * KIB,
                                      .max_work_group = 4096,
                                      .max_work_item = {4096, 4096, 4096}};
/* Small work-groups and little local memory, from an unknown vendor. */
static const struct ocl_device small = {.type = CL_DEVICE_TYPE_GPU,
                                        .platform = "X",
                                        .compute_units = 1,
                                        .local_memory = 4 * KIB,
                                        .max_work_group = 128,
                                        .max_work_item = {64, 64, 64}};

static struct feature feature(const char *spec)
{
    struct feature_set set = {0};
    struct error err = ERROR_INIT;
    if (feature_set_add(&set, spec, NORMALIZE_NONE, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    return set.feature[0];
}

static enum histogram_variant usual(const char *spec, const struct ocl_device *device)
{
    const struct feature one = feature(spec);
    return histogram_variant_usual(&one, device);
}

static void names(void **state)
{
    (void)state;
    for (int v = 0; v < HISTOGRAM_VARIANTS; v++) {
        enum histogram_variant variant = HISTOGRAM_VARIANTS;
        assert_true(
            histogram_variant_parse(&variant, histogram_variant_name((enum histogram_variant)v)));
        assert_int_equal(variant, v);
    }
    enum histogram_variant variant = HISTOGRAM_LOCAL;
    assert_false(histogram_variant_parse(&variant, "Local"));
    assert_int_equal(variant, HISTOGRAM_LOCAL);
    assert_string_equal(histogram_variant_kernel(HISTOGRAM_PARTIAL), "histogram_partial");
    assert_string_equal(histogram_variant_reduce(HISTOGRAM_PARTIAL), "histogram_reduce");
    assert_null(histogram_variant_reduce(HISTOGRAM_LOCAL));
}

static void default_variants(void **state)
{
    (void)state;
    assert_int_equal(usual("rgb:bins=256", &cpu), HISTOGRAM_PRIVATE);
    assert_int_equal(usual("hsv", &cpu), HISTOGRAM_PRIVATE);
    assert_int_equal(usual("rgb:bins=7", &h200), HISTOGRAM_PACKED);
    assert_int_equal(usual("rgb:bins=8x8x8", &h200), HISTOGRAM_LOCAL);
    assert_int_equal(usual("gray", &h200), HISTOGRAM_LOCAL);
    /* The table has 65,000 bytes. */
    assert_int_equal(usual("rgb:bins=25x25x26", &h200), HISTOGRAM_GLOBAL);
    assert_int_equal(usual("rgb:bins=256", &small), HISTOGRAM_REPLICATED);
    assert_int_equal(usual("hsv:bins=16x16x16", &small), HISTOGRAM_GLOBAL);
    assert_true(histogram_variant_suits(HISTOGRAM_PRIVATE, &cpu));
    assert_false(histogram_variant_suits(HISTOGRAM_PRIVATE, &h200));
    assert_true(histogram_variant_suits(HISTOGRAM_GLOBAL, &h200));
}

static void supported_features(void **state)
{
    (void)state;
    char reason[128] = "";
    const struct feature rgb = feature("rgb:bins=256"), hsv = feature("hsv"),
                         joint = feature("rgb:bins=16x8x8");
    assert_true(histogram_variant_takes(reason, sizeof reason, HISTOGRAM_PACKED, &rgb, &h200));
    assert_false(histogram_variant_takes(reason, sizeof reason, HISTOGRAM_PACKED, &hsv, &h200));
    assert_string_equal(reason, "it counts separate channels (rgb:bins=B) only");
    assert_false(histogram_variant_takes(reason, sizeof reason, HISTOGRAM_PACKED, &rgb, &small));
    assert_string_equal(reason, "it needs work-groups of 256, the device takes 64");
    /* The table takes 4 KiB, which is all of the local memory: a stage of 64 work-items does not
     * fit. */
    assert_true(histogram_variant_takes(reason, sizeof reason, HISTOGRAM_LOCAL, &joint, &small));
    assert_false(histogram_variant_takes(reason, sizeof reason, HISTOGRAM_STAGED, &joint, &small));
    assert_string_equal(reason, "it needs 10240 bytes of local memory, the device has 4096");
    assert_true(histogram_variant_takes(reason, sizeof reason, HISTOGRAM_GLOBAL, &joint, &small));
    assert_true(histogram_variant_takes(reason, sizeof reason, HISTOGRAM_PRIVATE, &joint, &small));
}

static void tables(void **state)
{
    (void)state;
    const struct feature rgb = feature("rgb:bins=7"), gray = feature("gray:bins=10"),
                         hsv = feature("hsv");
    /* Each channel has four sub-tables of 272 counters. */
    assert_int_equal(histogram_variant_table(HISTOGRAM_PRIVATE, &rgb), 4 * 4 * 3 * 272);
    assert_int_equal(histogram_variant_table(HISTOGRAM_PRIVATE, &gray), 4 * 4 * 272);
    assert_int_equal(histogram_variant_table(HISTOGRAM_PRIVATE, &hsv), 4 * 128);
    assert_int_equal(histogram_variant_table(HISTOGRAM_LOCAL, &rgb), 4 * 21);
    assert_int_equal(histogram_variant_table(HISTOGRAM_PACKED, &rgb), 48 * KIB);
    assert_int_equal(histogram_variant_tables_most(HISTOGRAM_PRIVATE, &h200), 192 * KIB);
    assert_int_equal(histogram_variant_tables_most(HISTOGRAM_LOCAL, &h200), 24 * KIB);
    assert_int_equal(histogram_variant_tables_most(HISTOGRAM_REPLICATED, &h200), 6 * KIB);
    assert_int_equal(histogram_variant_tables_most(HISTOGRAM_STAGED, &h200), 12 * KIB);
    assert_int_equal(histogram_variant_tables_most(HISTOGRAM_PACKED, &h200), 48 * KIB);
    assert_true(histogram_variant_tables_most(HISTOGRAM_GLOBAL, &h200) == UINT64_MAX);
}

static void check_shape(enum histogram_variant variant, uint32_t bins, uint64_t launch_bytes,
                        const struct ocl_device *device, uint32_t group, uint32_t copies,
                        uint32_t tile_pixels)
{
    const struct histogram_shape shape =
        histogram_variant_shape(variant, bins, launch_bytes, device);
    assert_int_equal(shape.group, group);
    assert_int_equal(shape.copies, copies);
    assert_int_equal(shape.tile_pixels, tile_pixels);
    assert_true(histogram_shape_fits(&shape, variant, bins, device));
}

static void shapes(void **state)
{
    (void)state;
    check_shape(HISTOGRAM_LOCAL, 256, 32 << 20, &h200, 1024, 1, 84608);
    check_shape(HISTOGRAM_LOCAL, 256, 1 << 30, &h200, 1024, 1, 147456);
    check_shape(HISTOGRAM_REPLICATED, 768, 32 << 20, &h200, 1024, 8, 84608);
    check_shape(HISTOGRAM_REPLICATED, 128, 32 << 20, &h200, 1024, 16, 84608);
    check_shape(HISTOGRAM_STAGED, 256, 32 << 20, &h200, 128, 1, 84608);
    /* Three tiles per unit; six where three would overflow the fields. */
    check_shape(HISTOGRAM_PACKED, 768, 32 << 20, &h200, 512, 1, 28288);
    check_shape(HISTOGRAM_PACKED, 768, 1 << 30, &h200, 512, 1, 451968);
    /* Four tiles per thread. */
    check_shape(HISTOGRAM_PRIVATE, 768, 8 << 20, &cpu, 1, 1, 262144);
    check_shape(HISTOGRAM_PRIVATE, 768, 1 << 20, &cpu, 1, 1, 43680);
    check_shape(HISTOGRAM_LOCAL, 768, 8 << 20, &cpu, 128, 1, 147456);
    check_shape(HISTOGRAM_GLOBAL, 16384, 8 << 20, &small, 64, 1, 147456);
}

static void shapes_that_do_not_fit(void **state)
{
    (void)state;
    const struct histogram_shape good = {.group = 256, .copies = 4, .tile_pixels = 32768};
    assert_true(histogram_shape_fits(&good, HISTOGRAM_REPLICATED, 768, &h200));
    struct histogram_shape shape = good;
    shape.copies = 32; /* 96 KiB of local memory */
    assert_false(histogram_shape_fits(&shape, HISTOGRAM_REPLICATED, 768, &h200));
    shape.copies = 3;
    assert_false(histogram_shape_fits(&shape, HISTOGRAM_REPLICATED, 768, &h200));
    shape = good; /* this variant has no copies */
    assert_false(histogram_shape_fits(&shape, HISTOGRAM_LOCAL, 768, &h200));
    shape.copies = 1;
    assert_true(histogram_shape_fits(&shape, HISTOGRAM_LOCAL, 768, &h200));
    shape.group = 8;
    assert_false(histogram_shape_fits(&shape, HISTOGRAM_LOCAL, 768, &h200));
    shape.group = 128;
    assert_false(histogram_shape_fits(&shape, HISTOGRAM_LOCAL, 768, &small));
    assert_false(histogram_shape_fits(&shape, HISTOGRAM_PACKED, 768, &h200));
    shape.group = 512;
    shape.tile_pixels = 507904; /* fills the fields of packed words */
    assert_true(histogram_shape_fits(&shape, HISTOGRAM_PACKED, 768, &h200));
    shape.tile_pixels += 16;
    assert_false(histogram_shape_fits(&shape, HISTOGRAM_PACKED, 768, &h200));
    assert_true(histogram_shape_fits(&shape, HISTOGRAM_GLOBAL, 768, &h200));
    shape.tile_pixels = 2047;
    assert_false(histogram_shape_fits(&shape, HISTOGRAM_GLOBAL, 768, &h200));
}

static void check_options(enum histogram_variant variant, const struct ocl_device *device,
                          const char *want)
{
    char text[128];
    const struct histogram_shape shape = {.group = 64, .copies = 4};
    histogram_variant_options(text, sizeof text, variant, &shape, device);
    assert_string_equal(text, want);
}

static void options(void **state)
{
    (void)state;
    struct ocl_device pocl_5 = cpu;
    pocl_5.pocl_major = 5;
    check_options(HISTOGRAM_LOCAL, &h200, "-cl-std=CL1.2 -DGROUP=64");
    check_options(HISTOGRAM_REPLICATED, &h200, "-cl-std=CL1.2 -DGROUP=64 -DCOPIES=4");
    check_options(HISTOGRAM_PACKED, &h200, "-cl-std=CL1.2 -DGROUP=64 -DNO_ALLOCATE");
    check_options(HISTOGRAM_PACKED, &small, "-cl-std=CL1.2 -DGROUP=64");
    /* PoCL 5 aborts on inline assembly. */
    check_options(HISTOGRAM_PRIVATE, &cpu, "-cl-std=CL1.2 -DGROUP=64 -DEXTENSIONS");
    check_options(HISTOGRAM_PRIVATE, &pocl_5, "-cl-std=CL1.2 -DGROUP=64");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names),
    cmocka_unit_test(default_variants),
    cmocka_unit_test(supported_features),
    cmocka_unit_test(tables),
    cmocka_unit_test(shapes),
    cmocka_unit_test(shapes_that_do_not_fit),
    cmocka_unit_test(options),
};
TEST_GROUP(variant, NULL, NULL)
