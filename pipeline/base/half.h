/* half.h: IEEE 754 binary16. */
#ifndef CLPIPE_BASE_HALF_H
#define CLPIPE_BASE_HALF_H

#include <stdint.h>
#include <string.h>

/* The value of the bits of a half, which a float represents exactly. Without branches, so that loops
 * of it become vector code. */
static inline float half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    uint32_t bits = rest << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    value *= 0x1p112f; /* the difference of the exponents' offsets */
    memcpy(&bits, &value, sizeof bits);
    bits |= sign | (rest >= 0x7c00 ? 0x7f800000 : 0);
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
