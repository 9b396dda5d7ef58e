/* test_bounds.c: limits for memory, the reordering window and open files. */
#include "runner.h"

#include "ingest/bounds.h"

#include <limits.h>

#define MIB UINT64_C(1048576)

static void shares_of_memory(void **state)
{
    (void)state;
    assert_int_equal(bounds_slots(1024 * MIB), 384 * MIB);
    assert_int_equal(bounds_codecs(1024 * MIB), 512 * MIB);
    assert_int_equal(bounds_sorting(1024 * MIB), 128 * MIB);
    assert_int_equal(bounds_slots(INGEST_MEMORY_MIN), 6 * MIB);
}

static void default_memory(void **state)
{
    (void)state;
    const uint64_t gib = 1024 * MIB;
    assert_int_equal(bounds_default(256 * MIB, 2, false, 64 * gib), 256 * MIB);
    assert_int_equal(bounds_default(256 * MIB, 17, false, 64 * gib), 272 * MIB);
    assert_int_equal(bounds_default(256 * MIB, 4096, false, 0), 64 * gib);
    assert_int_equal(bounds_default(256 * MIB, 2, true, 64 * gib), 256 * MIB);
    assert_int_equal(bounds_default(256 * MIB, 5, true, 64 * gib), 320 * MIB);
    assert_int_equal(bounds_default(256 * MIB, 16, true, 64 * gib), gib);
    assert_int_equal(bounds_default(256 * MIB, 17, true, 64 * gib), gib);
    assert_int_equal(bounds_default(256 * MIB, 65, true, 64 * gib), 65 * 16 * MIB);
    /* A sixteenth of the available memory, but not less than without streams. */
    assert_int_equal(bounds_default(256 * MIB, 16, true, 8 * gib), 512 * MIB);
    assert_int_equal(bounds_default(256 * MIB, 16, true, gib), 256 * MIB);
    assert_int_equal(bounds_default(256 * MIB, 32, true, gib), 512 * MIB);
    assert_int_equal(bounds_default(256 * MIB, 16, true, 0), 256 * MIB);
}

static void window(void **state)
{
    (void)state;
    /* 192 counters take 2 * (768 + 512) bytes per picture; the window gets an eighth of the
     * memory. */
    assert_int_equal(bounds_window(16 * MIB, 192, 0, false, 2), 2 * MIB / 2560);
    assert_int_equal(bounds_window(40 * MIB, 192, 0, false, 2), 2048);
    assert_int_equal(bounds_window(80 * MIB, 192, 0, false, 2), 4096);
    assert_int_equal(bounds_window(640 * MIB, 192, 0, false, 2), 32768);
    assert_int_equal(bounds_window(UINT64_MAX, 1, 0, false, 64), 32768);
    /* A thumbnail adds two copies of its JPEG file and its pixels: 2 * (768 + 512 + 1024) +
     * 12288. */
    assert_int_equal(bounds_window(80 * MIB, 192, 64, false, 2), 10 * MIB / 4608);
    assert_int_equal(bounds_window(80 * MIB, 192, 64, true, 2), 10 * MIB / 16896);
    /* Each thread gets two pictures, whatever their size. */
    assert_int_equal(bounds_window(16 * MIB, 1 << 24, 0, false, 1), 4);
    assert_int_equal(bounds_window(16 * MIB, 1 << 24, 0, false, 16), 34);
    assert_int_equal(bounds_window(16 * MIB, UINT32_MAX, 0, false, 16), 34);
    assert_int_equal(bounds_window(16 * MIB, 192, 0, false, 4096), 8194);
}

static void open_files(void **state)
{
    (void)state;
    assert_int_equal(bounds_open_files(1024, 2), 128);
    assert_int_equal(bounds_open_files(1024, 100), 2);
    assert_int_equal(bounds_open_files(1024, 300), 1);
    assert_int_equal(bounds_open_files(0, 3), 1);
    assert_int_equal(bounds_open_files(UINT64_C(4) * UINT_MAX - 1, 1), UINT_MAX - 1);
    assert_int_equal(bounds_open_files(UINT64_C(4) * UINT_MAX, 8), UINT_MAX);
    assert_int_equal(bounds_open_files(UINT64_MAX, 8), UINT_MAX);
}

static void isolated_decoders(void **state)
{
    (void)state;
    assert_int_equal(bounds_isolate_slot(64 * MIB, 2), 2 * MIB);
    assert_int_equal(bounds_isolate_slot(128 * MIB, 2), 4 * MIB);
    assert_int_equal(bounds_isolate_slot(1024 * MIB, 2), 4 * MIB);
    assert_int_equal(bounds_isolate_slot(16 * MIB, 64), 16384);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(shares_of_memory),
    cmocka_unit_test(default_memory),
    cmocka_unit_test(window),
    cmocka_unit_test(open_files),
    cmocka_unit_test(isolated_decoders),
};
TEST_GROUP(bounds, NULL, NULL)
