/* test_parse.c: parsing and formatting of numbers, sizes and durations in any locale; and the
 * clock's text. */

#include "runner.h"

#include "base/clock.h"
#include "base/parse.h"
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void u64(void **state)
{
    (void)state;
    uint64_t value = 77;
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "-1",
                                      "0x10",
                                      "1e3",
                                      "1.0",
                                      "one",
                                      "1_0",
                                      "\xd9\xa1",
                                      "18446744073709551616",
                                      "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(parse_u64(&value, bad[i], 0, UINT64_MAX));
        assert_int_equal(value, 77);
    }
    assert_true(parse_u64(&value, "18446744073709551615", 0, UINT64_MAX));
    assert_int_equal(value, UINT64_MAX);
    assert_true(parse_u64(&value, "0", 0, 5));
    assert_int_equal(value, 0);
    assert_true(parse_u64(&value, "007", 7, 7));
    assert_int_equal(value, 7);
    assert_false(parse_u64(&value, "8", 1, 7));
    assert_false(parse_u64(&value, "0", 1, 7));
    assert_int_equal(value, 7);
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {
        {"0", 0},
        {"1000", 1000},
        {"1K", 1024},
        {"1k", 1024},
        {"1KB", 1024},
        {"1KiB", 1024},
        {"1kib", 1024},
        {"256M", UINT64_C(256) << 20},
        {"1.5G", UINT64_C(3) << 29},
        {".5g", UINT64_C(1) << 29},
        {"2T", UINT64_C(2) << 40},
        {"0.1K", 102},
        {"0.9999999999999999999999T", (UINT64_C(1) << 40) - 1},
        {"0.000000000000909494701772928237915T", 0},
        {"0.000000000000909494701772928238T", 0},
        {"0.00000000000090949470177292823792T", 0},
        {"0.000000000000909495T", 1},
        {"16777215T", UINT64_C(16777215) << 40},
        {"18446744073709551615", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t value = 1;
        assert_true(parse_size(&value, good[i].text));
        assert_int_equal(value, good[i].value);
    }
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 K",
                                      "K",
                                      ".",
                                      "1.",
                                      ".K",
                                      "1.K",
                                      "-1K",
                                      "1.5",
                                      "1KK",
                                      "1Ki",
                                      "1KiBs",
                                      "1B",
                                      "1P",
                                      "1,5G",
                                      "1e3",
                                      "0x10K",
                                      "nan",
                                      "infK",
                                      "16777216T",
                                      "18446744073709551616",
                                      "18014398509481984K"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t value = 77;
        assert_false(parse_size(&value, bad[i]));
        assert_int_equal(value, 77);
    }
}

static void seconds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},
                {"90", 90},
                {"1.5", 1.5},
                {"2s", 2},
                {"1.5m", 90},
                {"2h", 7200},
                {".5d", 43200},
                {"1e3", 1000},
                {"01:30:05", 5405},
                {"0:00:00", 0},
                {"100:00:59", 360059},
                {"1:59:00", 7140},
                {"1-00:00:00", 86400},
                {"2-23:59:59", 259199},
                {"1-12", 129600},
                {"0-01:30", 5400}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        double value = -1;
        assert_true(parse_seconds(&value, good[i].text));
        assert_true(value == good[i].value);
    }
    static const char *const bad[] = {"",
                                      "s",
                                      "-1",
                                      "1 s",
                                      "1min",
                                      "1:30",
                                      "1:60:00",
                                      "1:00:60",
                                      "1:1:1",
                                      "1:00:00s",
                                      ":00:00",
                                      "inf",
                                      "nan",
                                      "1e999",
                                      "1e308d",
                                      "1:00:0x",
                                      "1:000:00",
                                      "99999999999:00:00",
                                      "1,5",
                                      "0x1",
                                      "1-24:00:00",
                                      "1-0:0:0",
                                      "1-",
                                      "-1-00:00:00",
                                      "1-1-00:00:00"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double value = 77;
        assert_false(parse_seconds(&value, bad[i]));
        assert_true(value == 77);
    }
}

static void shares(void **state)
{
    (void)state;
    struct share share = {77, false};
    static const char *const bad[] = {"", "%", "-1", "1.5", "1 %", "101%", "1%%", "all", "1e999%"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(parse_share(&share, bad[i]));
        assert_true(share.number == 77 && !share.per_cent);
    }
    assert_true(parse_share(&share, "0"));
    assert_true(share_covers(&share, 0, 0));
    assert_false(share_covers(&share, 1, 1000));
    assert_true(parse_share(&share, "12"));
    assert_true(share_covers(&share, 12, 12));
    assert_false(share_covers(&share, 13, 1000));
    assert_true(parse_share(&share, "0.5%"));
    assert_true(share_covers(&share, 0, 0));
    assert_true(share_covers(&share, 5, 1000));
    assert_false(share_covers(&share, 6, 1000));
    assert_true(parse_share(&share, "100%"));
    assert_true(share_covers(&share, 7, 7));
}

static void doubles(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},
                {"1e-4", 1e-4},
                {"1E+2", 100},
                {".25", 0.25},
                {"1.7976931348623157e308", DBL_MAX},
                {"5e-324", 5e-324},
                {"1e-999", 0},
                {"0.1", 0.1}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        double value = -1;
        assert_true(parse_double(&value, good[i].text));
        assert_true(value == good[i].value);
    }
    static const char *const bad[] = {"",      "-1",    "+1",  "-0",    " 1",       "1 ",
                                      "1.",    "e5",    "1e",  "1e+",   "inf",      "nan",
                                      "0x1p3", "1e309", "1,5", "1.5.2", "infinity", "1f"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double value = 77;
        assert_false(parse_double(&value, bad[i]));
        assert_true(value == 77);
    }
}

static void bytes_as_text(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"},
                 {999, "999 B"},
                 {1000, "1 kB"},
                 {1500, "1.5 kB"},
                 {1234567, "1.23 MB"},
                 {9994, "9.99 kB"},
                 {9995, "10 kB"},
                 {99949, "99.9 kB"},
                 {99950, "100 kB"},
                 {999499, "999 kB"},
                 {999500, "1 MB"},
                 {12300000000, "12.3 GB"},
                 {10050000, "10.1 MB"},
                 {UINT64_C(999999999999999999), "1 EB"},
                 {UINT64_MAX, "18.4 EB"}};
    char buffer[32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(format_bytes(buffer, sizeof buffer, cases[i].bytes), cases[i].text);
    assert_string_equal(format_bytes(buffer, 4, 1234567), "1.2");
}

static void durations_as_text(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0.00 s"},
                 {-3, "0.00 s"},
                 {0.82, "0.82 s"},
                 {9.994, "9.99 s"},
                 {9.996, "10 s"},
                 {12.3, "12 s"},
                 {59.4, "59 s"},
                 {59.6, "1 min 00 s"},
                 {200, "3 min 20 s"},
                 {3599.4, "59 min 59 s"},
                 {3599.6, "1 h 00 min"},
                 {7500, "2 h 05 min"},
                 {360000, "100 h 00 min"},
                 {INFINITY, "unknown"},
                 {1e300, "unknown"}};
    char buffer[32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(format_duration(buffer, sizeof buffer, cases[i].seconds),
                            cases[i].text);
    assert_string_equal(format_duration(buffer, sizeof buffer, (double)NAN), "unknown");
}

static void counts_as_text(void **state)
{
    (void)state;
    char buffer[32];
    assert_string_equal(format_count(buffer, sizeof buffer, 0), "0");
    assert_string_equal(format_count(buffer, sizeof buffer, 999), "999");
    assert_string_equal(format_count(buffer, sizeof buffer, 1000), "1,000");
    assert_string_equal(format_count(buffer, sizeof buffer, 12345), "12,345");
    assert_string_equal(format_count(buffer, sizeof buffer, 1234567), "1,234,567");
    assert_string_equal(format_count(buffer, sizeof buffer, UINT64_MAX),
                        "18,446,744,073,709,551,615");
}

static void numbers_with_nouns(void **state)
{
    (void)state;
    char buffer[40];
    assert_string_equal(format_number_of(buffer, sizeof buffer, 0, "image"), "0 images");
    assert_string_equal(format_number_of(buffer, sizeof buffer, 1, "image"), "1 image");
    assert_string_equal(format_number_of(buffer, sizeof buffer, 12345, "row"), "12,345 rows");
    assert_string_equal(format_number_of(buffer, sizeof buffer, 1, "batch"), "1 batch");
    assert_string_equal(format_number_of(buffer, sizeof buffer, 2, "batch"), "2 batches");
    assert_string_equal(
        format_range(buffer, sizeof buffer, &(struct number_range){.first = 2, .last = 64}),
        "2:64");
    assert_string_equal(format_range(buffer, sizeof buffer,
                                     &(struct number_range){.first = 2, .last = 64, .step = 2}),
                        "2:64:2");
}

/* Repeats the other tests in a locale whose decimal separator is a comma, if one is installed. */
static void comma_locale(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ru_RU.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (setlocale(LC_ALL, names[i])) {
            sizes(state);
            seconds(state);
            shares(state);
            doubles(state);
            bytes_as_text(state);
            durations_as_text(state);
            setlocale(LC_ALL, "C");
            return;
        }
    skip();
}

static void clock_texts(void **state)
{
    (void)state;
    char buffer[32];
    assert_string_equal(clock_iso8601(buffer, 0), "1970-01-01T00:00:00Z");
    assert_string_equal(clock_iso8601(buffer, 1769860800), "2026-01-31T12:00:00Z");
    assert_string_equal(clock_iso8601(buffer, -1), "1969-12-31T23:59:59Z");
    assert_string_equal(clock_iso8601(buffer, INT64_MAX), "9999-12-31T23:59:59Z");
    assert_string_equal(clock_iso8601(buffer, INT64_MIN), "1000-01-01T00:00:00Z");

    setenv("SOURCE_DATE_EPOCH", "1234567890", 1);
    assert_int_equal(clock_created(), 1234567890);
    time_t now = time(NULL);
    static const char *const bad[] = {"", "-5", "12x", "99999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("SOURCE_DATE_EPOCH", bad[i], 1);
        assert_in_range(clock_created(), now, now + 60);
    }
    unsetenv("SOURCE_DATE_EPOCH");
    assert_in_range(clock_created(), now, now + 60);
}

static void clock_runs_forward(void **state)
{
    (void)state;
    int64_t start = clock_process_start(), last = clock_now();
    assert_true(start <= last);
    assert_int_equal(clock_process_start(), start);
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_now();
        assert_true(now >= last);
        last = now;
    }
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    cond_init_monotonic(&cond);
    pthread_mutex_lock(&lock);
    int64_t deadline = clock_now() + 20 * 1000 * 1000;
    while (clock_now() < deadline)
        cond_wait_until(&cond, &lock, deadline);
    cond_wait_until(&cond, &lock, -1); /* a time in the past: returns at once */
    assert_true(clock_now() < deadline + INT64_C(10) * 1000 * 1000 * 1000);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&cond);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(u64),
    cmocka_unit_test(sizes),
    cmocka_unit_test(seconds),
    cmocka_unit_test(shares),
    cmocka_unit_test(doubles),
    cmocka_unit_test(bytes_as_text),
    cmocka_unit_test(durations_as_text),
    cmocka_unit_test(counts_as_text),
    cmocka_unit_test(numbers_with_nouns),
    cmocka_unit_test(comma_locale),
    cmocka_unit_test(clock_texts),
    cmocka_unit_test(clock_runs_forward),
};
TEST_GROUP(parse, NULL, NULL)
