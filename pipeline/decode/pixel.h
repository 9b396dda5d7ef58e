/* pixel.h: numbers and blanks in files, and the arithmetic of samples and alpha. */
#ifndef CLPIPE_DECODE_PIXEL_H
#define CLPIPE_DECODE_PIXEL_H

#include <stdbool.h>
#include <stdint.h>

/* ALPHA_GREY: for decode_for_display. */
enum alpha_mode { ALPHA_WHITE, ALPHA_BLACK, ALPHA_DROP, ALPHA_GREY };

/* Numbers of up to 4 bytes. */
static inline uint32_t big_endian(const uint8_t *p, unsigned bytes)
{
    uint32_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | *p++;
    return value;
}

static inline uint32_t little_endian(const uint8_t *p, unsigned bytes)
{
    uint32_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | p[bytes];
    return value;
}

/* White space; false for a negative c, the end of a file. */
static inline bool is_blank(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* --- pixels, as defined in docs/features.md -------------------------------------------------- */

/* Converts a sample of 0 to max (at most 2^32 - 1) to 8 bits: (v * 255 + max / 2) / max. Common
 * maxima have separate cases because division by a variable is several times slower. */
static inline uint8_t pixel_scale(uint32_t v, uint32_t max)
{
    if (max == 255)
        return (uint8_t)v;
    if (max == 65535)
        return (uint8_t)((v * 255 + 32767) / 65535);
    if (max < 1u << 24)
        return (uint8_t)((v * 255 + max / 2) / max);
    return (uint8_t)(((uint64_t)v * 255 + max / 2) / max);
}

/* Colour c with alpha a over the background; unchanged with ALPHA_DROP. */
static inline uint8_t pixel_over(uint32_t c, uint32_t a, enum alpha_mode mode)
{
    if (mode == ALPHA_DROP || a == 255)
        return (uint8_t)c;
    const uint32_t background = mode == ALPHA_BLACK ? 0 : mode == ALPHA_GREY ? 128 : 255;
    return (uint8_t)((c * a + background * (255 - a) + 127) / 255);
}

/* The same for a premultiplied colour. */
static inline uint8_t pixel_over_premultiplied(uint32_t c, uint32_t a, enum alpha_mode mode)
{
    uint32_t sum = c + (mode == ALPHA_DROP ? 0 : pixel_over(0, a, mode));
    return (uint8_t)(sum > 255 ? 255 : sum);
}

#endif
