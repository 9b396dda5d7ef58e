/* test_stored.c: conversion to float16 and uint8, also in place, follows the definitions. */
#include "runner.h"

#include "base/random.h"
#include "features/stored.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The definition of binary16. */
static double value_of_half(uint32_t half)
{
    const uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
    return (half & 0x8000 ? -1 : 1) *
           (exponent > 0 ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24));
}

static uint16_t half_of(float value)
{
    uint16_t half;
    stored_encode(&half, STORE_FLOAT16, false, &value, 1);
    return half;
}

static void all_halves_and_midpoints(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        const uint16_t bits = (uint16_t)half;
        float value;
        stored_decode(&value, STORE_FLOAT16, false, &bits, 1);
        if ((half & 0x7fff) > 0x7c00) {
            assert_true(isnan(value));
            continue;
        }
        assert_int_equal(half_of(value), half);
        if ((half & 0x7fff) == 0x7c00) {
            assert_true(isinf(value));
            continue;
        }
        assert_true(value == value_of_half(half));
        /* Halfway values are rounded to even, all others to the nearest. */
        const double next =
            (half & 0x7fff) == 0x7bff ? copysign(65536, value) : value_of_half(half + 1);
        const float middle = (float)((value + next) / 2);
        assert_int_equal(half_of(middle), half + (half & 1));
        assert_int_equal(half_of(nextafterf(middle, 0)), half);
        assert_int_equal(half_of(nextafterf(middle, copysignf(INFINITY, middle))), half + 1);
    }
    assert_int_equal(half_of(NAN) & 0x7e00, 0x7e00);
}

static void codes_are_within_the_stated_error(void **state)
{
    (void)state;
    uint32_t random = RANDOM_START;
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        const double scale = stored_scale(is_signed);
        for (uint32_t code = is_signed; code < 256; code++) {
            uint8_t bits = (uint8_t)code, again;
            float value;
            stored_decode(&value, STORE_UINT8, is_signed, &bits, 1);
            assert_true(fabsf(value) <= 1);
            stored_encode(&again, STORE_UINT8, is_signed, &value, 1);
            assert_int_equal(again, code);
        }
        for (int i = 0; i < 20000; i++) {
            random_next(&random);
            float value = ldexpf((float)(random % 65536), -16 - (int)(random >> 28)), got;
            uint8_t code;
            value = is_signed && random & 1 ? -value : value;
            stored_encode(&code, STORE_UINT8, is_signed, &value, 1);
            stored_decode(&got, STORE_UINT8, is_signed, &code, 1);
            const double root = sqrt(fabs((double)value));
            assert_true(fabs((double)got - value) <= (root + 1 / (4 * scale)) / scale + 1e-7);
        }
        const float zero = 0;
        uint8_t code;
        stored_encode(&code, STORE_UINT8, is_signed, &zero, 1);
        assert_int_equal(code, stored_zero(is_signed));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_halves_and_midpoints),
    cmocka_unit_test(codes_are_within_the_stated_error),
};
TEST_GROUP(stored, NULL, NULL)
