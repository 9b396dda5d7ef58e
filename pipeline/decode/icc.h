/* icc.h: pixels through the ICC profile that came with them, to sRGB. Inside decode.
 *
 * A codec's state holds one `struct icc`, NULL before the first picture with a profile. It keeps
 * the last few transforms, because the pictures of a collection share few profiles and building one
 * takes as long as decoding a small picture. Nothing is shared between threads. What comes out
 * depends on the profile and on the pixel alone: not on the rows around it, nor on what was decoded
 * before.
 *
 * The profile's perceptual table or its matrix, no black point compensation, 8 bits in and out. */
#ifndef CLPIPE_DECODE_ICC_H
#define CLPIPE_DECODE_ICC_H

#include "decode/decode.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer ones are not used. Those of printing presses have half a megabyte to two. */
#define ICC_PROFILE_MAX (4u << 20)

/* What the pixels that go in are. Grey comes as R = G = B; CMYK has 4 bytes, 255 for no ink. */
enum icc_space { ICC_GREY, ICC_RGB, ICC_CMYK };

struct icc;

/* Takes up the profile of the next picture. *applies: its rows have to go through icc_row; false
 * where the profile is broken, too large, for other pixels than `space` or more than lcms2 can do
 * within 32 MiB: the pixels then stay as they are. *memory grows by what that took at most, and by
 * two copies of the profile that the caller may have. A reason only where the system gave no
 * memory. */
enum reason icc_begin(bool *applies, uint64_t *memory, struct icc **icc, const void *profile,
                      size_t size, enum icc_space space, struct failure *failure);

/* Does the profile that applies make other colours than sRGB, by more than two levels somewhere? */
bool icc_differs(const struct icc *icc);

/* `count` pixels of src to RGB at dst, which may be src unless that is CMYK. Where alpha is given,
 * one byte a pixel, what comes out is laid over the background of `mode`. */
void icc_row(const struct icc *icc, uint8_t *dst, const uint8_t *src, const uint8_t *alpha,
             uint32_t count, enum alpha_mode mode);

/* After a picture: gives back what is too large to keep. Accepts NULL. */
void icc_end(struct icc *icc);
/* Accepts a NULL icc. */
void icc_close(struct icc **icc);

/* The colour of a premultiplied sample c with alpha a. */
static inline uint8_t icc_unmultiplied(uint32_t c, uint32_t a)
{
    uint32_t v = a ? (c * 255 + a / 2) / a : 0;
    return (uint8_t)(v < 255 ? v : 255);
}

#endif
