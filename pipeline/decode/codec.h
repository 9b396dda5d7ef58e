/* codec.h: one row of the table of decoders. Inside decode; a codec is one file and one row. */
#ifndef CLPIPE_DECODE_CODEC_H
#define CLPIPE_DECODE_CODEC_H

#include "decode/decode.h"
#include "decode/input.h"
#include <stdbool.h>

struct codec {
    size_t state_bytes;         /* of the state, one for each thread that meets the format */
    void (*init)(void *state);  /* a zeroed one; NULL: zeros will do */
    void (*clear)(void *state); /* frees what reset keeps; NULL: nothing */
    /* Reads the header from the start of the file. */
    enum reason (*begin)(void *state, struct input *input, const struct decode_options *options,
                         uint64_t file_bytes, struct image_info *info, struct failure *failure);
    /* The next rows as RGB. */
    enum reason (*rows)(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                        struct failure *failure);
    /* All DCT coefficients instead of rows, where begin has filled info->dct; NULL: never does. */
    enum reason (*coefficients)(void *state, void *dst, struct failure *failure);
    /* The picture's stream, where begin has filled info->stream_bytes; false: there is none after all.
     * NULL: never does. */
    bool (*stream)(void *state, void *dst);
    /* After the last row: is what is behind it in order? NULL: it does not matter. */
    enum reason (*end)(void *state, struct failure *failure);
    /* Back to idle from any point; frees what grew with the picture. NULL: nothing does. */
    void (*reset)(void *state);
};

/* The codecs, and the libraries behind them with their versions, found at run time where the
 * library says so. Those of the second line are there only where the
 * build found their libraries. */
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

/* The codec of a row of formats, or NULL: this build cannot decode it. */
const struct codec *format_codec(unsigned i);

/* Fails unless the picture has pixels and at most --max-pixels. */
enum reason codec_check_size(uint64_t width, uint64_t height, const struct decode_options *options,
                             struct failure *failure);

/* Short data: truncated where the file has ended, unreadable where reading failed, else corrupt. */
enum reason codec_short(const struct input *input, struct failure *failure, const char *message);

/* The row of formats (index for format_at) that the first bytes, at most FORMAT_BYTES, belong to,
 * or -1. Names and extensions are ignored. */
int format_recognise(const uint8_t *head, size_t size);
#define FORMAT_BYTES 4096u

/* --- pixels, as docs/features.md defines them ------------------------------------------------ */

/* A sample of 0 to max (at most 2^32 - 1) as 8 bits: (v * 255 + max / 2) / max. The usual largest
 * values have separate cases because division by a variable takes several times as long. */
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

/* The colour c with alpha a over the background; ALPHA_DROP leaves it as it is. */
static inline uint8_t pixel_over(uint32_t c, uint32_t a, enum alpha_mode mode)
{
    if (mode == ALPHA_DROP || a == 255)
        return (uint8_t)c;
    return (uint8_t)((c * a + pixel_background(mode) * (255 - a) + 127) / 255);
}

/* The same of a colour that is c * a already. */
static inline uint8_t pixel_over_premultiplied(uint32_t c, uint32_t a, enum alpha_mode mode)
{
    uint32_t sum = c + (mode == ALPHA_DROP ? 0 : pixel_over(0, a, mode));
    return (uint8_t)(sum > 255 ? 255 : sum);
}

#endif
