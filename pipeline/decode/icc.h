/* icc.h: converts pixels to sRGB with their ICC profile. Internal to decode.
 *
 * A codec's state holds one `struct icc`, NULL before the first picture with a profile. It caches
 * the last few transforms: a collection has few different profiles, and building one takes as long
 * as decoding a small picture. Nothing is shared between threads. The result depends only on the
 * profile and the pixel, not on other rows or earlier pictures.
 *
 * Uses the profile's perceptual table or its matrix, no black point compensation, 8 bits in and
 * out. */
#ifndef CLPIPE_DECODE_ICC_H
#define CLPIPE_DECODE_ICC_H

#include "decode/decode.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer profiles are ignored. Those of printing presses have half a megabyte to two. */
#define ICC_PROFILE_MAX (4u << 20)

/* Input pixels. Grey comes as R = G = B; CMYK has 4 bytes, 255 for no ink. */
enum icc_space { ICC_GREY, ICC_RGB, ICC_CMYK };

struct icc;

/* Sets the profile of the next picture. *applies: its rows must be passed through icc_row; false if
 * the profile is damaged, too large, for other pixels than `space`, or needs more than 32 MiB in
 * lcms2: the pixels are then left unchanged. Adds the peak memory of this, and two copies of the
 * profile that the caller may have, to *memory. Fails only if the system is out of memory. */
enum reason icc_begin(bool *applies, uint64_t *memory, struct icc **icc, const void *profile,
                      size_t size, enum icc_space space, struct failure *failure);

/* Does the current profile change colours by more than two levels anywhere, compared with sRGB? */
bool icc_differs(const struct icc *icc);

/* Converts `count` pixels of src to RGB at dst, which may be src unless that is CMYK. alpha: NULL,
 * or one byte per pixel; the result is then composited over the background of `mode`. */
void icc_row(const struct icc *icc, uint8_t *dst, const uint8_t *src, const uint8_t *alpha,
             uint32_t count, enum alpha_mode mode);

/* After a picture: frees what is too large to keep. Accepts NULL. */
void icc_end(struct icc *icc);
/* Accepts a NULL icc. */
void icc_close(struct icc **icc);

/* The colour of premultiplied sample c with alpha a. */
static inline uint8_t icc_unmultiplied(uint32_t c, uint32_t a)
{
    uint32_t v = a ? (c * 255 + a / 2) / a : 0;
    return (uint8_t)(v < 255 ? v : 255);
}

#endif
