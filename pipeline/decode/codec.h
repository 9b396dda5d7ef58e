/* codec.h: a row of the table of decoders. Internal to decode; a codec is one file and one row
 * of formats.c. */
#ifndef CLPIPE_DECODE_CODEC_H
#define CLPIPE_DECODE_CODEC_H

#include "decode/colours.h"
#include "decode/decode.h"
#include "decode/input.h"

/* The value of a macro as text. */
#define CODEC_TEXT(x)  CODEC_TEXT_(x)
#define CODEC_TEXT_(x) #x

struct codec {
    /* Its library, with the version at run time if the library has one; NULL: clpipe's own code. */
    const char *(*library)(void);
    size_t state_bytes;        /* bytes of the state; allocated for each thread that encounters
                                * the format */
    void (*init)(void *state); /* initialises a zeroed state; NULL: not needed */
    /* Reads the header from the start of the file. A codec that can scale sets info's out_width and
     * out_height; others leave them 0. */
    enum reason (*begin)(void *state, struct input *input, const struct decode_options *options,
                         struct image_info *info, struct failure *failure);
    /* The next rows as RGB. */
    enum reason (*rows)(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                        struct failure *failure);
    /* Reads all DCT coefficients instead of rows, if begin has set info->dct; NULL: not
     * supported. */
    enum reason (*coefficients)(void *state, void *dst, struct failure *failure);
    /* Reads the picture's stream, if begin has set info->stream_bytes; false: the file is not
     * suitable. NULL: not supported. */
    bool (*stream)(void *state, void *dst);
    /* Called after the last row: checks the rest of the picture's data. NULL: not needed. */
    enum reason (*end)(void *state, struct failure *failure);
    /* Back to idle from any state; frees memory that depends on the picture. NULL: there is
     * none. */
    void (*reset)(void *state);
};

/* The codec of format i, or NULL: this build cannot decode it. */
const struct codec *format_codec(unsigned i);

/* Sets info's width and height; fails if the picture is empty or has more than --max-pixels. */
enum reason codec_set_size(struct image_info *info, uint64_t width, uint64_t height,
                           const struct decode_options *options, struct failure *failure);

/* The reason for missing data: truncated at the end of the file, unreadable after a read error,
 * else corrupt. */
enum reason codec_short(const struct input *input, struct failure *failure, const char *message);

/* The format (index for format_at) of a file with these first bytes, at most FORMAT_BYTES, or -1.
 * Ignores names and extensions. */
int format_recognise(const uint8_t *head, size_t size);
#define FORMAT_BYTES 4096u

#endif
