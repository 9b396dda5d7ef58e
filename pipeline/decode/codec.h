/* codec.h: a row of the table of decoders. Internal to decode; a codec is one file and one row. */
#ifndef CLPIPE_DECODE_CODEC_H
#define CLPIPE_DECODE_CODEC_H

#include "decode/colours.h"
#include "decode/input.h"

struct codec {
    size_t state_bytes;        /* bytes of the state; allocated per thread that meets the format */
    void (*init)(void *state); /* initialises a zeroed state; NULL: not needed */
    /* Reads the header from the start of the file. A codec that can scale sets info's out_width and
     * out_height; those of others are left 0. */
    enum reason (*begin)(void *state, struct input *input, const struct decode_options *options,
                         uint64_t file_bytes, struct image_info *info, struct failure *failure);
    /* The next rows as RGB. */
    enum reason (*rows)(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                        struct failure *failure);
    /* Reads all DCT coefficients instead of rows, if begin has set info->dct; NULL: not
     * supported. */
    enum reason (*coefficients)(void *state, void *dst, struct failure *failure);
    /* Reads the picture's stream, if begin has set info->stream_bytes; false: the file is not
     * suitable. NULL: not supported. */
    bool (*stream)(void *state, void *dst);
    /* After the last row: checks the rest of the picture's data. NULL: not needed. */
    enum reason (*end)(void *state, struct failure *failure);
    /* Back to idle from any state; frees memory that depends on the picture. NULL: there is
     * none. */
    void (*reset)(void *state);
};

/* The codecs and their libraries' versions, the run-time version where the library has one. Those
 * of the second line exist only if the build found their libraries. */
extern const struct codec codec_jpeg, codec_png, codec_bmp, codec_pnm, codec_pfm;
extern const struct codec codec_webp, codec_tiff, codec_gif, codec_heif, codec_jxl;
const char *codec_jpeg_library(void);
const char *codec_png_library(void);
const char *codec_webp_library(void);
const char *codec_tiff_library(void);
const char *codec_gif_library(void);
const char *codec_heif_library(void);
const char *codec_avif_library(void);
const char *codec_jxl_library(void);

/* The codec of format i, or NULL: this build cannot decode it. */
const struct codec *format_codec(unsigned i);

/* Fails if the picture is empty or has more than --max-pixels. */
enum reason codec_check_size(uint64_t width, uint64_t height, const struct decode_options *options,
                             struct failure *failure);

/* The reason for missing data: truncated at the end of the file, unreadable after a read error,
 * else corrupt. */
enum reason codec_short(const struct input *input, struct failure *failure, const char *message);

/* The format (index for format_at) of a file with these first bytes, at most FORMAT_BYTES, or -1.
 * Ignores names and extensions. */
int format_recognise(const uint8_t *head, size_t size);
#define FORMAT_BYTES 4096u

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

static inline uint32_t pixel_background(enum alpha_mode mode)
{
    return mode == ALPHA_BLACK ? 0 : mode == ALPHA_GREY ? 128 : 255;
}

/* Colour c with alpha a over the background; unchanged with ALPHA_DROP. */
static inline uint8_t pixel_over(uint32_t c, uint32_t a, enum alpha_mode mode)
{
    if (mode == ALPHA_DROP || a == 255)
        return (uint8_t)c;
    return (uint8_t)((c * a + pixel_background(mode) * (255 - a) + 127) / 255);
}

/* The same for a premultiplied colour. */
static inline uint8_t pixel_over_premultiplied(uint32_t c, uint32_t a, enum alpha_mode mode)
{
    uint32_t sum = c + (mode == ALPHA_DROP ? 0 : pixel_over(0, a, mode));
    return (uint8_t)(sum > 255 ? 255 : sum);
}

#endif
