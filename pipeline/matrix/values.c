/* values.c: one loop per format and byte order. */
#include "matrix/values.h"

#include "base/half.h"

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are swapped only if big-endian");

static float from_single(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float from_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

#define CONVERTER(NAME, BITS, EXPRESSION)                                                          \
    static void NAME(float *out, const unsigned char *in, size_t count)                            \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            uint##BITS##_t v;                                                                      \
            memcpy(&v, in + i * sizeof v, sizeof v);                                               \
            out[i] = (EXPRESSION);                                                                 \
        }                                                                                          \
    }

CONVERTER(convert_f2, 16, half_to_float(v))
CONVERTER(convert_f4, 32, from_single(v))
CONVERTER(convert_f8, 64, from_double(v))
CONVERTER(convert_i1, 8, (float)(int8_t)v)
CONVERTER(convert_i2, 16, (float)(int16_t)v)
CONVERTER(convert_i4, 32, (float)(int32_t)v)
CONVERTER(convert_i8, 64, (float)(int64_t)v)
CONVERTER(convert_u1, 8, (float)v)
CONVERTER(convert_u2, 16, (float)v)
CONVERTER(convert_u4, 32, (float)v)
CONVERTER(convert_u8, 64, (float)v)

static const struct {
    char kind;
    unsigned char bytes;
    void (*convert)(float *out, const unsigned char *in, size_t count);
} converters[] = {
    {'f', 2, convert_f2}, {'f', 4, convert_f4}, {'f', 8, convert_f8}, {'i', 1, convert_i1},
    {'i', 2, convert_i2}, {'i', 4, convert_i4}, {'i', 8, convert_i8}, {'u', 1, convert_u1},
    {'u', 2, convert_u2}, {'u', 4, convert_u4}, {'u', 8, convert_u8},
};

#define CONVERTERS (sizeof converters / sizeof *converters)

static size_t find(struct value_format format)
{
    size_t i = 0;
    while (i < CONVERTERS &&
           (converters[i].kind != format.kind || converters[i].bytes != format.bytes))
        i++;
    return i;
}

bool values_known(struct value_format format)
{
    return find(format) < CONVERTERS;
}

bool values_direct(struct value_format format)
{
    return format.kind == 'f' && format.bytes == sizeof(float) && !format.big_endian;
}

#define SWAP(BITS)                                                                                 \
    for (size_t i = 0; i < count && bytes == BITS / 8; i++) {                                      \
        uint##BITS##_t v;                                                                          \
        memcpy(&v, at + i * sizeof v, sizeof v);                                                   \
        v = __builtin_bswap##BITS(v);                                                              \
        memcpy(at + i * sizeof v, &v, sizeof v);                                                   \
    }

void values_swap(void *values, size_t count, size_t bytes)
{
    unsigned char *at = values;
    SWAP(16)
    SWAP(32)
    SWAP(64)
}

void values_convert(float *out, const void *in, size_t count, struct value_format format)
{
    const unsigned char *at = in;
    unsigned char swapped[4096];
    if (values_direct(format)) {
        memcpy(out, in, count * sizeof *out);
        return;
    }
    const size_t i = find(format);
    const bool swap = format.bytes > 1 && format.big_endian;
    const size_t most = swap ? sizeof swapped / format.bytes : count;
    while (count > 0 && i < CONVERTERS) {
        const size_t part = count < most ? count : most;
        if (swap) {
            memcpy(swapped, at, part * format.bytes);
            values_swap(swapped, part, format.bytes);
        }
        converters[i].convert(out, swap ? swapped : at, part);
        at += part * format.bytes;
        out += part;
        count -= part;
    }
}
