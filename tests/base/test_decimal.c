/* test_decimal.c: the text of a float32 value parses back to the same value. */

#include "runner.h"

#include "base/decimal.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(float value)
{
    char text[FLOAT32_TEXT], usual[40];
    const size_t length = format_float32(text, value);
    assert_int_equal(length, strlen(text));
    const float once = strtof(text, NULL), twice = (float)strtod(text, NULL);
    snprintf(usual, sizeof usual, "%.9g", (double)value);
    if (memcmp(&once, &value, sizeof value) != 0 || memcmp(&twice, &value, sizeof value) != 0 ||
        length > strlen(usual))
        fail_msg("%s is written as %s", usual, text);
}

static void known_values(void **state)
{
    (void)state;
    static const struct {
        float value;
        const char *text;
    } cases[] = {{0, "0"},
                 {-0.0f, "-0"},
                 {1, "1"},
                 {-1.5f, "-1.5"},
                 {0.1f, "0.1"},
                 {100, "100"},
                 {123456792, "123456790"},
                 {1e9f, "1e+09"},
                 {0.0001f, "0.0001"},
                 {0.00001f, "1e-05"},
                 {9.9999998e-3f, "0.01"},
                 {1.0f / 3, "0.33333334"},
                 {16777216, "16777216"},
                 {1e10f, "1e+10"},
                 {INFINITY, "inf"},
                 {-INFINITY, "-inf"},
                 {NAN, "nan"}};
    char text[FLOAT32_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        format_float32(text, cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
}

/* All exponents, powers of two and ten with their neighbours, and random values. */
static void values_survive_a_round_trip(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (uint32_t exponent = 0; exponent < 255; exponent++)
        for (uint32_t i = 0; i < 2000; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint32_t bits = exponent << 23 | (uint32_t)(random >> 41);
            if (i < 4)
                bits = (exponent << 23) + i - (exponent ? 2 : 0);
            float value;
            memcpy(&value, &bits, sizeof value);
            check(value);
            check(-value);
        }
    for (int exponent = -45; exponent <= 38; exponent++) {
        char text[16];
        snprintf(text, sizeof text, "1e%d", exponent);
        const float value = strtof(text, NULL);
        check(value);
        check(nextafterf(value, 0));
        check(nextafterf(value, INFINITY));
    }
}

/* Fractions, as in features: the text is never longer than necessary. */
static void fractions_are_short(void **state)
{
    (void)state;
    for (uint32_t total = 1; total < 400; total++)
        for (uint32_t count = 0; count <= total; count++) {
            char text[FLOAT32_TEXT], shorter[40];
            const float value = (float)((double)count / total);
            const size_t length = format_float32(text, value);
            check(value);
            for (int digits = 1; digits <= 9; digits++) {
                snprintf(shorter, sizeof shorter, "%.*g", digits, (double)value);
                if (strtof(shorter, NULL) == value)
                    break;
            }
            assert_true(length <= strlen(shorter));
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(known_values),
    cmocka_unit_test(values_survive_a_round_trip),
    cmocka_unit_test(fractions_are_short),
};
TEST_GROUP(decimal, NULL, NULL)
