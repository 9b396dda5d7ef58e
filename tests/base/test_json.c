/* test_json.c: the exact output of the JSON writer. */
#include "runner.h"

#include "base/json.h"
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_json(struct json *json, const char *wanted)
{
    const char *text = json_finish(json);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    assert_int_equal(json->length, strlen(wanted));
    json_clear(json);
}

static void write_some(struct json *json)
{
    json_open_object(json, NULL);
    json_string(json, "name", "a");
    json_open_array(json, "list");
    json_uint(json, NULL, 1);
    json_open_object(json, NULL);
    json_close_object(json);
    json_open_array(json, NULL);
    json_close_array(json);
    json_null(json, NULL);
    json_close_array(json);
    json_bool(json, "yes", true);
    json_bool(json, "no", false);
    json_raw(json, "raw", "[1]");
    json_close_object(json);
}

static void layout(void **state)
{
    (void)state;
    struct json json;
    json_init(&json, true);
    write_some(&json);
    assert_json(&json, "{\"name\":\"a\",\"list\":[1,{},[],null],\"yes\":true,\"no\":false,"
                       "\"raw\":[1]}");
    /* After json_clear the writer can be used again and is still compact. */
    json_open_array(&json, NULL);
    json_uint(&json, NULL, 1);
    json_uint(&json, NULL, 2);
    json_close_array(&json);
    assert_json(&json, "[1,2]");

    json_init(&json, false);
    write_some(&json);
    assert_json(&json, "{\n"
                       "  \"name\": \"a\",\n"
                       "  \"list\": [\n"
                       "    1,\n"
                       "    {},\n"
                       "    [],\n"
                       "    null\n"
                       "  ],\n"
                       "  \"yes\": true,\n"
                       "  \"no\": false,\n"
                       "  \"raw\": [1]\n"
                       "}");
    json_init(&json, false);
    json_string(&json, NULL, "alone");
    assert_json(&json, "\"alone\"");
}

static void strings(void **state)
{
    (void)state;
    static const struct {
        const char *value, *wanted;
    } cases[] = {
        {"", "\"\""},
        {"\"\\/", "\"\\\"\\\\/\""},
        {"a\nb\tc\rd\be\x01\x1f\x7f", "\"a\\nb\\tc\\u000dd\\u0008e\\u0001\\u001f\x7f\""},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\x8e",
         "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\x8e\""},
        {"x\xff\xc3y\xed\xa0\x80", "\"x\\ufffd\\ufffdy\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct json json;
        json_init(&json, true);
        json_string(&json, NULL, cases[i].value);
        assert_json(&json, cases[i].wanted);
    }
    struct json json;
    json_init(&json, true);
    json.script = true;
    json_string(&json, NULL, "</\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9<");
    assert_json(&json, "\"\\u003c/\xe2\x80\xa7\\u2028\\u2029\\u003c\"");
    json_init(&json, true);
    json_open_object(&json, NULL);
    json_uint(&json, "k\"\n", 1);
    json_close_object(&json);
    assert_json(&json, "{\"k\\\"\\n\":1}");
}

static void integers(void **state)
{
    (void)state;
    struct json json;
    json_init(&json, true);
    json_open_array(&json, NULL);
    json_uint(&json, NULL, UINT64_MAX);
    json_int(&json, NULL, INT64_MIN);
    json_int(&json, NULL, INT64_MAX);
    json_int(&json, NULL, -0);
    json_close_array(&json);
    assert_json(&json, "[18446744073709551615,-9223372036854775808,9223372036854775807,0]");
}

static void doubles(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *wanted;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {1e21, "1e+21"},
        {123456789.125, "123456789.125"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {5e-324, "4.94065645841247e-324"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct json json;
        json_init(&json, true);
        json_double(&json, NULL, cases[i].value);
        assert_json(&json, cases[i].wanted);
    }
    struct json json;
    json_init(&json, true);
    json_double(&json, NULL, (double)NAN);
    assert_json(&json, "null");
}

/* Random bit patterns survive a round trip. */
static void doubles_survive_a_round_trip(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252;
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        double value, back;
        memcpy(&value, &x, sizeof value);
        if (!isfinite(value))
            continue;
        struct json json;
        json_init(&json, true);
        json_double(&json, NULL, value);
        back = strtod(json_finish(&json), NULL);
        assert_memory_equal(&back, &value, sizeof value);
        json_clear(&json);
    }
}

static void comma_locale(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ru_RU.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (setlocale(LC_ALL, names[i])) {
            doubles(state);
            char text[16];
            snprintf(text, sizeof text, "%.1f", 0.5);
            assert_string_equal(text, "0,5"); /* the thread's locale is unchanged */
            setlocale(LC_ALL, "C");
            return;
        }
    skip();
}

static void grows(void **state)
{
    (void)state;
    struct json json;
    json_init(&json, true);
    json_open_array(&json, NULL);
    char value[1001];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = 0;
    for (int i = 0; i < 1000; i++)
        json_string(&json, NULL, value);
    json_close_array(&json);
    const char *text = json_finish(&json);
    assert_non_null(text);
    assert_int_equal(strlen(text), 1000 * 1002 + 999 + 2);
    json_clear(&json);
    assert_null(json.text);
}

/* After a failed allocation the writer stays in the failed state and writes nothing. */
static void failure_is_remembered(void **state)
{
    (void)state;
    struct json json;
    json_init(&json, true);
    json_open_array(&json, NULL);
    json.failed = true;
    json_uint(&json, NULL, 1);
    json_close_array(&json);
    assert_null(json_finish(&json));
    json_clear(&json);
    assert_false(json.failed);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(layout),
    cmocka_unit_test(strings),
    cmocka_unit_test(integers),
    cmocka_unit_test(doubles),
    cmocka_unit_test(doubles_survive_a_round_trip),
    cmocka_unit_test(comma_locale),
    cmocka_unit_test(grows),
    cmocka_unit_test(failure_is_remembered),
};
TEST_GROUP(json, NULL, NULL)
