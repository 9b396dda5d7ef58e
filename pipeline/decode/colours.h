/* colours.h: from the colours that a codec reads to the pixels of decode_rows: the picture's ICC
 * profile, then alpha over the background. Internal to decode.
 *
 * A decoder has one `struct colours`, which its codecs reach through their input:
 *
 *     begin     sets alphas_wanted and premultiplied; colours_profile if there is a profile
 *     a row     RGB, or CMYK elsewhere, and `alphas`; then colours_finish
 *
 * Transforms of the last few profiles are kept: a collection has few different ones, and building
 * one takes as long as decoding a small picture. Nothing is shared between threads. The result
 * depends only on the profile and the pixel, not on other rows or earlier pictures. Profiles are
 * applied by the perceptual table or the matrix, without black point compensation, 8 bits in and
 * out. */
#ifndef CLPIPE_DECODE_COLOURS_H
#define CLPIPE_DECODE_COLOURS_H

#include "base/failure.h"
#include "decode/pixel.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer profiles are ignored. Those of printing presses have half a megabyte to two. */
#define ICC_PROFILE_MAX (4u << 20)

/* Input pixels. Grey comes as R = G = B; CMYK has 4 bytes, 255 for no ink. */
enum icc_space { ICC_GREY, ICC_RGB, ICC_CMYK };

struct colours {
    struct icc *icc; /* the kept transforms; NULL before the first profile */
    bool wanted;     /* profiles are to be applied */
    /* Of the current picture: */
    bool managed, differs; /* a profile is applied; it changes some colour by more than two
                            * levels */
    enum icc_space space;  /* if managed */
    bool premultiplied;    /* colours come as c * a; set by the codec */
    enum alpha_mode mode;
    uint32_t alphas_wanted; /* pixels of a row if it has alpha; set by the codec */
    uint8_t *alphas;        /* of a row; NULL: opaque */
};

/* Before rows are read: makes `alphas`. */
enum reason colours_start(struct colours *colours, struct failure *failure);

/* Sets the picture's profile, if profiles are wanted; NULL: the caller had no memory for it, which
 * fails the picture. The profile is ignored, and pixels stay as they are,
 * if it is damaged, too large, not for pixels of `space`, or needs more than 32 MiB in lcms2. Adds
 * the peak memory of this, and of two copies of the profile that the caller may have, to *memory.
 * Fails only if the system is out of memory. */
enum reason colours_profile(struct colours *colours, uint64_t *memory, const void *profile,
                            size_t size, enum icc_space space, struct failure *failure);

/* The value of image_info.profile; has_profile: whether the file has one. */
bool colours_tell(const struct colours *colours, bool has_profile);

/* Finishes `count` pixels: RGB at dst; from src, which may be dst unless it is CMYK, and is changed
 * if it is premultiplied. The first of `alphas` belongs to the first pixel. */
void colours_finish(const struct colours *colours, uint8_t *dst, uint8_t *src, uint32_t count);

/* After a picture: frees its rows, and transforms that are too large to keep. */
void colours_end(struct colours *colours);

/* --- lcms2: icc.c, or icc_without.c ---------------------------------------------------------- */

/* colours_profile for a decoder that wants profiles. */
enum reason icc_begin(struct colours *colours, uint64_t *memory, const void *profile, size_t size,
                      enum icc_space space, struct failure *failure);
/* Converts `count` pixels of src, of a picture that is managed, to RGB at dst. */
void icc_row(const struct colours *colours, uint8_t *dst, const uint8_t *src, uint32_t count);
/* Free the transforms that are too large to keep, and all of them. */
void icc_end(struct colours *colours);
void icc_close(struct colours *colours);

#endif
