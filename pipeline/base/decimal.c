/* decimal.c: float32 to decimal in double arithmetic.
 *
 * A float32 is scaled by a power of ten to an integer of 6, 7, 8 or 9 digits: one multiplication or
 * division of doubles, which is off by at most 2^-53 of the value, as powers of ten up to 10^22 are
 * doubles. The number of digits is enough once the integer, scaled back, rounds to the value, with
 * a margin of 2^-50 to either side. Nine are always enough: decimals of nine digits are at most
 * 10^-8 of the value apart, floats at least 2^-24 of it. Six are tried first because decimals of up
 * to six digits are unique (FLT_DIG); their trailing zeros are dropped. Values beyond the exact
 * powers of ten go through snprintf(). */
#include "base/decimal.h"
#include "base/text.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_EXPONENT (-13)
#define MOST_EXPONENT  27
#define EXACT_POWERS   23

static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
                                1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28};
static const double fractions[] = {1e0,  1e-1, 1e-2,  1e-3,  1e-4,  1e-5,  1e-6, 1e-7,
                                   1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14};

static double power(int exponent)
{
    return exponent < 0 ? fractions[-exponent] : powers[exponent];
}

static double scale(double value, int exponent)
{
    return exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
}

/* floor(log10(value)), which may be one too large near a power of ten that is not a double. */
static int decimal_exponent(double value, unsigned binary)
{
    int exponent = (int)(((int32_t)binary - 127) * 1233) >> 12;
    if (value >= power(exponent + 1))
        exponent++;
    return value < power(exponent) ? exponent - 1 : exponent;
}

/* The shortest integer of 6 to 9 digits, or fewer without trailing zeros, and its number of digits;
 * 0: none fits. */
static uint32_t shortest(double value, int *exponent, unsigned *digits)
{
    for (*digits = 6; *digits <= 9; ++*digits) {
        const int places = (int)*digits - 1 - *exponent;
        if (places >= EXACT_POWERS || places <= -EXACT_POWERS)
            return 0;
        uint32_t whole = (uint32_t)(scale(value, places) + 0.5);
        const double back = scale(whole, -places), margin = back * 0x1p-50;
        if ((double)(float)(back - margin) != value || (double)(float)(back + margin) != value)
            continue;
        if (whole >= (uint32_t)powers[*digits]) /* 9.9999996 is 10 */
            ++*exponent;
        while (whole % 10 == 0)
            whole /= 10;
        for (*digits = 1; *digits < 9 && whole >= (uint32_t)powers[*digits];)
            ++*digits;
        return whole;
    }
    return 0;
}

size_t format_float32(char out[FLOAT32_TEXT], float value)
{
    uint32_t bits;
    char *at = out;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) == 0) {
        strcpy(out, bits ? "-0" : "0");
        return strlen(out);
    }
    if (!isfinite(value)) {
        strcpy(out, isnan(value) ? "nan" : bits >> 31 ? "-inf" : "inf");
        return strlen(out);
    }
    const double positive = fabs((double)value);
    unsigned digits = 0;
    uint32_t whole = 0;
    int exponent = 0;
    if (positive >= 1e-12 && positive < 1e27) {
        exponent = decimal_exponent(positive, bits >> 23 & 0xff);
        whole = shortest(positive, &exponent, &digits);
    }
    if (whole == 0)
        return (size_t)snprintf(out, FLOAT32_TEXT, "%.9g", (double)value);

    char text[12];
    for (unsigned i = digits; i-- > 0; whole /= 10)
        text[i] = (char)('0' + whole % 10);
    if (bits >> 31)
        *at++ = '-';
    if (exponent < -4 || exponent >= 9) {
        *at++ = text[0];
        if (digits > 1)
            *at++ = '.';
        memcpy(at, text + 1, digits - 1);
        at += digits - 1;
        const int size = exponent < 0 ? -exponent : exponent;
        *at++ = 'e';
        *at++ = exponent < 0 ? '-' : '+';
        *at++ = (char)('0' + size / 10);
        *at++ = (char)('0' + size % 10);
    } else if (exponent < 0) {
        memcpy(at, "0.0000", (size_t)(1 - exponent));
        at += 1 - exponent;
        memcpy(at, text, digits);
        at += digits;
    } else {
        const unsigned before = (unsigned)exponent + 1;
        for (unsigned i = 0; i < before || i < digits; i++) {
            if (i == before)
                *at++ = '.';
            *at++ = i < digits ? text[i] : '0';
        }
    }
    *at = 0;
    return (size_t)(at - out);
}

char *format_float64(char out[FLOAT64_TEXT], double value)
{
    const locale_t before = uselocale(text_c_locale());
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, FLOAT64_TEXT, "%.*g", digits, value);
        const double back = strtod(out, NULL);
        if (memcmp(&back, &value, sizeof back) == 0)
            break;
    }
    uselocale(before);
    return out;
}
