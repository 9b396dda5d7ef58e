/* half.h: IEEE 754 binary16. */
#ifndef CLPIPE_BASE_HALF_H
#define CLPIPE_BASE_HALF_H

#include <stdint.h>
#include <string.h>

/* Converts a half, which a float represents exactly. Branch-free, so that loops vectorize. */
static inline float half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    uint32_t bits = rest << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    value *= 0x1p112f; /* the difference of the exponent biases */
    memcpy(&bits, &value, sizeof bits);
    bits |= sign | (rest >= 0x7c00 ? 0x7f800000 : 0);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds a float to the nearest half, ties to even; infinity from 65520 on. */
static inline uint16_t half_of_float(float value)
{
    uint32_t bits;
    const float half = 0.5f, magnitude = value < 0 ? -value : value;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (bits >= 0x47800000) /* 2^16 */
        return (uint16_t)(sign | 0x7c00);
    if (bits >= 0x38800000) /* 2^-14: normal, even if it rounds to infinity */
        return (uint16_t)(sign | (((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (112u << 10)));
    /* The last bits of the sum are the nearest multiple of 2^-24. */
    const float sum = magnitude + half;
    uint32_t base;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&base, &half, sizeof base);
    return (uint16_t)(sign | (bits - base));
}

#endif
