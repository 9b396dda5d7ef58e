/* test_tuning.c: measurements of a device are stored, checked when loaded, and used where
 * possible. */
#include "runner.h"

#include "device/tuner.h"
#include "device/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct ocl_device device = {.type = CL_DEVICE_TYPE_GPU,
                                         .platform = "X",
                                         .name = "a device",
                                         .driver = "1",
                                         .compute_units = 8,
                                         .local_memory = 32 << 10,
                                         .max_work_group = 1024,
                                         .max_work_item = {1024, 1024, 64}};

static struct feature feature(const char *spec)
{
    struct feature_set set = {0};
    struct error err = ERROR_INIT;
    if (feature_set_add(&set, spec, NORMALIZE_NONE, &err) != STATUS_OK)
        fail_msg("%s", err.sentence);
    return set.feature[0];
}

static unsigned class_of(const char *spec)
{
    const struct feature one = feature(spec);
    return tuning_class_of(&one);
}

static void classes(void **state)
{
    (void)state;
    static const char *const names[TUNING_CLASSES] = {"rgb",  "joint", "joint-large",
                                                      "gray", "hsv",   "hsv-large"};
    for (unsigned c = 0; c < TUNING_CLASSES; c++) {
        assert_string_equal(tuning_class_name(c), names[c]);
        assert_int_equal(class_of(tuning_class_spec(c)), c);
    }
    assert_int_equal(class_of("rgb:bins=1"), 0);
    assert_int_equal(class_of("rgb:bins=16x8x8"), 1); /* 1,024 bins */
    assert_int_equal(class_of("rgb:bins=25x41x1"), 2);
    assert_int_equal(class_of("hsv:bins=25x41x1,grid=3x3"), 5);
}

static void choices(void **state)
{
    (void)state;
    struct tuning tuning = {0};
    const struct feature gray = feature("gray"), hsv = feature("hsv"), rgb = feature("rgb"),
                         joint = feature("rgb:bins=8x8x15");
    struct histogram_choice choice = tuning_choice(&tuning, &gray, &device);
    assert_false(choice.tuned);
    assert_int_equal(choice.variant, HISTOGRAM_REPLICATED); /* the default */
    assert_int_equal(choice.shape.group, 0);

    tuning.entry[3].variant = HISTOGRAM_LOCAL;
    tuning.entry[3].shape = (struct histogram_shape){512, 1, 4096};
    choice = tuning_choice(&tuning, &gray, &device);
    assert_true(choice.tuned);
    assert_int_equal(choice.variant, HISTOGRAM_LOCAL);
    assert_int_equal(choice.shape.group, 512);
    assert_false(tuning_choice(&tuning, &hsv, &device).tuned);

    /* Measured with 512 bins: with 960 bins, 16 copies exceed the local memory and 8 copies fit. */
    tuning.entry[1].variant = HISTOGRAM_REPLICATED;
    tuning.entry[1].shape = (struct histogram_shape){256, 16, 4096};
    choice = tuning_choice(&tuning, &joint, &device);
    assert_true(choice.tuned);
    assert_int_equal(choice.shape.copies, 8);

    /* Does not fit on this device, which has 48 KiB of local memory. */
    tuning.entry[0].variant = HISTOGRAM_PACKED;
    tuning.entry[0].shape = (struct histogram_shape){512, 1, 4096};
    choice = tuning_choice(&tuning, &rgb, &device);
    assert_false(choice.tuned);
    assert_int_equal(choice.variant, HISTOGRAM_REPLICATED);
}

static char directory[] = "/tmp/test_tuning.XXXXXX";

static void stored_and_forgotten(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct ocl_device other = device;
    struct tuning tuning = {0}, found;
    bool was_there;
    strcpy(other.driver, "2");
    tuning.entry[4].variant = HISTOGRAM_LOCAL;
    tuning.entry[4].shape = (struct histogram_shape){128, 1, 8192};
    tuning.entry[4].gain = 1234;
    assert_int_equal(tuning_save(&tuning, &device, &err), STATUS_OK);
    tuning_load(&found, &device);
    assert_memory_equal(&found, &tuning, sizeof tuning);
    tuning_load(&found, &other);
    assert_int_equal(found.entry[4].variant, HISTOGRAM_AUTO);
    assert_int_equal(tuning_forget(&was_there, &device, &err), STATUS_OK);
    assert_true(was_there);
    assert_int_equal(tuning_forget(&was_there, &device, &err), STATUS_OK);
    assert_false(was_there);
    tuning_load(&found, &device);
    assert_int_equal(found.entry[4].variant, HISTOGRAM_AUTO);
}

/* A shape that no kernel can have is treated as damage, even if its digest is right. */
static void impossible_shapes_are_not_loaded(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct tuning tuning = {0}, found;
    tuning.entry[3].variant = HISTOGRAM_LOCAL;
    tuning.entry[3].shape = (struct histogram_shape){100, 1, 8192};
    tuning.entry[4].variant = HISTOGRAM_LOCAL;
    tuning.entry[4].shape = (struct histogram_shape){128, 1, 8192};
    assert_int_equal(tuning_save(&tuning, &device, &err), STATUS_OK);
    tuning_load(&found, &device);
    assert_int_equal(found.entry[3].variant, HISTOGRAM_AUTO);
    assert_int_equal(found.entry[4].variant, HISTOGRAM_AUTO);
}

static int setup(void **state)
{
    (void)state;
    unsetenv("CLPIPE_NO_CACHE");
    return mkdtemp(directory) ? setenv("CLPIPE_CACHE_DIR", directory, 1) : -1;
}

static int teardown(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

static void test_one_slow_duel_does_not_decide(void **state)
{
    (void)state;
    const double orders[][3] = {{1, 2, 4}, {1, 4, 2}, {2, 1, 4}, {2, 4, 1}, {4, 1, 2}, {4, 2, 1}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        assert_true(tuner_middle(orders[i]) == 2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_one_slow_duel_does_not_decide),
    cmocka_unit_test(classes),
    cmocka_unit_test(choices),
    cmocka_unit_test(stored_and_forgotten),
    cmocka_unit_test(impossible_shapes_are_not_loaded),
};
TEST_GROUP(tuning, setup, teardown)
