/* codec.h: one row of the table of decoders. Inside decode; a codec is one file and one row. */
#ifndef CLPIPE_DECODE_CODEC_H
#define CLPIPE_DECODE_CODEC_H

#include "decode/decode.h"
#include "decode/input.h"
#include <stdbool.h>

struct codec {
    /* Creates the per-thread state; NULL if there is no memory. */
    void *(*create)(void);
    void (*destroy)(void *state);
    /* Reads the header from the start of the file. */
    enum reason (*begin)(void *state, struct input *input, const struct decode_options *options,
                         uint64_t file_bytes, struct image_info *info, struct failure *failure);
    /* The next rows as RGB. */
    enum reason (*rows)(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                        struct failure *failure);
    /* After the last row: is what is behind it in order? */
    enum reason (*end)(void *state, struct failure *failure);
    /* Back to idle from any point; frees what grew with the picture. */
    void (*reset)(void *state);
};

extern const struct codec codec_jpeg, codec_png;

/* "libjpeg-turbo 2.1.5 (API 62)", "libpng 1.6.39": found at run time where the library says so. */
const char *codec_jpeg_library(void);
const char *codec_png_library(void);

/* Short data: truncated where the file has ended, unreadable where reading failed, else corrupt. */
enum reason codec_short(const struct input *input, struct failure *failure, const char *message);

/* The row of formats that the first bytes name (index for format_at), or -1. */
int sniff_format(const uint8_t *head, size_t size);
#define SNIFF_BYTES 4096u

#endif
