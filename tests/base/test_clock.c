/* test_clock.c: file times as nanoseconds, including times out of range. */
#include "runner.h"

#include "base/clock.h"

static void test_file_time(void **state)
{
    (void)state;
    assert_int_equal(clock_file_time(&(struct timespec){0, 0}), 0);
    assert_int_equal(clock_file_time(&(struct timespec){1700000000, 123456789}),
                     INT64_C(1700000000123456789));
    assert_int_equal(clock_file_time(&(struct timespec){-1, 999999999}), -1);
    /* The limits of the range, and the times beyond it that file systems can store. */
    assert_int_equal(clock_file_time(&(struct timespec){9223372036, 854775807}), INT64_MAX);
    assert_int_equal(clock_file_time(&(struct timespec){9223372036, 854775808}), INT64_MAX);
    assert_int_equal(clock_file_time(&(struct timespec){15032385535, 0}), INT64_MAX);
    assert_int_equal(clock_file_time(&(struct timespec){INT64_MAX, 999999999}), INT64_MAX);
    assert_int_equal(clock_file_time(&(struct timespec){INT64_MIN, 0}), INT64_MIN);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_file_time)};
TEST_GROUP(clock, NULL, NULL)
