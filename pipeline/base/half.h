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

/* Rounds a float to the nearest half, ties to even; values from 65520 on become infinity. Branch-free, too. */
static inline uint16_t half_of_float(float value)
{
    uint32_t bits, small;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    memcpy(&value, &bits, sizeof value);
    value += 0.5f;
    memcpy(&small, &value, sizeof small);
    /* Normal from 2^-14 on; below, the last bits of the sum are the nearest multiple of 2^-24. */
    const uint32_t normal = ((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (112u << 10);
    const uint32_t below = -(uint32_t)(bits < 0x38800000);
    uint32_t rounded = (normal & ~below) | ((small - 0x3f000000) & below);
    rounded = rounded < 0x7c00 ? rounded : 0x7c00;
    rounded |= (uint32_t)(bits > 0x7f800000) << 9; /* not a number */
    return (uint16_t)(sign | rounded);
}

#endif
