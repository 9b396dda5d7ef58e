/* decode.c: the driver around the codecs: what a file is, whether it stayed the same while it was
 * read, its digest, and which failure it ends as.
 */
#include "decode/decode.h"

#include "base/clock.h"
#include "base/path.h"
#include "decode/codec.h"
#include "decode/isolate.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FORMATS_MAX 32u

struct decode {
    struct decode_options options;
    struct input input;
    void *state[FORMATS_MAX];  /* by row of the formats; made when first met */
    const struct codec *codec; /* under way, or NULL */
    void *current;             /* its state */
    int64_t mtime_ns;
    uint64_t bytes;
    bool named;                /* the file has a name: it can lose it */
    struct isolated *isolated; /* does all of it; NULL: nobody does */
};

void decode_options_default(struct decode_options *options)
{
    *options = (struct decode_options){
        .alpha = ALPHA_WHITE, .max_pixels = 268435456, .max_scans = 100, .scale = 1};
}

enum status decode_open(struct decode **out, const struct decode_options *options,
                        struct error *err)
{
    *out = NULL;
    struct decode *decode = calloc(1, sizeof *decode);
    if (!decode)
        return error_memory(err, sizeof *decode, "a decoder");
    decode->options = *options;
    if (!input_init(&decode->input)) {
        decode_close(&decode);
        return error_memory(err, INPUT_BUFFER, "a decoder");
    }
    decode->input.stop = options->stop;
    *out = decode;
    return STATUS_OK;
}

enum status decode_open_isolated(struct decode **out, struct isolate *isolate, struct error *err)
{
    *out = NULL;
    struct decode *decode = calloc(1, sizeof *decode);
    if (!decode)
        return error_memory(err, sizeof *decode, "a decoder");
    enum status status = isolated_open(&decode->isolated, isolate, err);
    if (status != STATUS_OK)
        decode_close(&decode);
    *out = decode;
    return status;
}

unsigned decode_ahead(const struct decode *decode)
{
    return decode->isolated ? isolated_ahead(decode->isolated) : 1;
}

void decode_announce(struct decode *decode, const struct decode_file *files, unsigned count)
{
    if (decode->isolated)
        isolated_announce(decode->isolated, files, count);
}

enum status decode_ready(struct decode *decode, struct error *err)
{
    return decode->isolated ? isolated_ready(decode->isolated, err) : STATUS_OK;
}

void decode_close(struct decode **out)
{
    if (!*out)
        return;
    isolated_close(&(*out)->isolated);
    for (unsigned i = 0; i < FORMATS_MAX; i++) {
        if ((*out)->state[i])
            format_codec(i)->destroy((*out)->state[i]);
    }
    input_clear(&(*out)->input);
    free(*out);
    *out = NULL;
}

enum reason codec_short(const struct input *input, struct failure *failure, const char *message)
{
    if (input->error_number)
        return failure_errno(failure, REASON_UNREADABLE, input->error_number, "read failed");
    return failure_set(failure, input->at_end ? REASON_TRUNCATED : REASON_CORRUPT, "%s", message);
}

enum reason codec_check_size(uint64_t width, uint64_t height, const struct decode_options *options,
                             struct failure *failure)
{
    if (width == 0 || height == 0)
        return failure_set(failure, REASON_CORRUPT, "a picture of %llu x %llu pixels",
                           (unsigned long long)width, (unsigned long long)height);
    if (width > UINT32_MAX || height > UINT32_MAX || width > options->max_pixels / height)
        return failure_set(failure, REASON_TOO_LARGE, "%llu x %llu pixels (--max-pixels)",
                           (unsigned long long)width, (unsigned long long)height);
    return REASON_NONE;
}

/* Is the file still what it was? */
static enum reason check_unchanged(struct decode *decode, struct failure *failure)
{
    struct stat st;
    if (fstat(decode->input.fd, &st) != 0)
        return failure_errno(failure, REASON_UNREADABLE, errno, "cannot look at the file");
    if (!S_ISREG(st.st_mode))
        return failure_set(failure, REASON_CHANGED, "no regular file any more");
    if ((uint64_t)st.st_size != decode->bytes || clock_file_time(&st.st_mtim) != decode->mtime_ns)
        return failure_set(failure, REASON_CHANGED, "the file changed while it was read");
    if (decode->named && st.st_nlink == 0)
        return failure_set(failure, REASON_CHANGED,
                           "the file was removed or replaced while it was read");
    decode->named = st.st_nlink > 0;
    return REASON_NONE;
}

/* Of a file that has changed nothing else can be said: what a codec met may be half of one file and
 * half of another. */
static enum reason blame_change(struct decode *decode, struct failure *failure)
{
    struct failure change = {0};
    if (failure->reason != REASON_NONE && check_unchanged(decode, &change) == REASON_CHANGED)
        *failure = change;
    return failure->reason;
}

/* Recognises the content and starts its codec. */
static enum reason start_codec(struct decode *decode, const char *path, struct image_info *info,
                               struct failure *failure)
{
    size_t have = input_peek(&decode->input, SNIFF_BYTES);
    if (decode->input.error_number)
        return failure_errno(failure, REASON_UNREADABLE, decode->input.error_number, "read failed");
    bool promises = path_promises_image(path);
    if (have == 0)
        return promises ? failure_set(failure, REASON_EMPTY, "no bytes")
                        : failure_set(failure, REASON_NOT_AN_IMAGE, "an empty file");
    int format = sniff_format(decode->input.buffer + decode->input.position, have);
    if (format < 0)
        return promises ? failure_set(failure, REASON_UNKNOWN_FORMAT,
                                      "the content is no known image format")
                        : failure_set(failure, REASON_NOT_AN_IMAGE, "no image");
    const struct format *row = format_at((unsigned)format);
    const struct codec *codec = format_codec((unsigned)format);
    if (!codec)
        return failure_set(failure, REASON_UNSUPPORTED, "%s", row->notes);
    assert((unsigned)format < FORMATS_MAX);
    void **state = &decode->state[format];
    if (!*state && !(*state = codec->create()))
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for a decoder");
    memset(info->format, 0, sizeof info->format);
    memcpy(info->format, row->name, strnlen(row->name, sizeof info->format - 1));
    decode->codec = codec;
    decode->current = *state;
    return codec->begin(*state, &decode->input, &decode->options, decode->bytes, info, failure);
}

enum reason decode_begin(struct decode *decode, int fd, const char *path, uint64_t expected_bytes,
                         int64_t expected_mtime_ns, struct image_info *info,
                         struct failure *failure)
{
    if (decode->isolated)
        return isolated_begin(decode->isolated, fd, path, expected_bytes, expected_mtime_ns, info,
                              failure);
    *info = (struct image_info){.orientation = 1};
    *failure = (struct failure){0};
    input_begin(&decode->input, fd);
    decode->bytes = expected_bytes;
    decode->mtime_ns = expected_mtime_ns;
    decode->named = false;
    if (check_unchanged(decode, failure) == REASON_NONE &&
        start_codec(decode, path, info, failure) != REASON_NONE)
        blame_change(decode, failure);
    if (failure->reason != REASON_NONE)
        decode_abort(decode);
    return failure->reason;
}

enum reason decode_rows(struct decode *decode, uint8_t *dst, size_t stride, uint32_t rows,
                        struct failure *failure)
{
    if (decode->isolated)
        return isolated_rows(decode->isolated, dst, stride, rows, failure);
    assert(decode->codec);
    decode->codec->rows(decode->current, dst, stride, rows, failure);
    return blame_change(decode, failure);
}

enum reason decode_coefficients(struct decode *decode, void *dst, struct failure *failure)
{
    assert(decode->codec && decode->codec->coefficients);
    decode->codec->coefficients(decode->current, dst, failure);
    return blame_change(decode, failure);
}

enum reason decode_end(struct decode *decode, uint64_t digest[2], struct failure *failure)
{
    if (decode->isolated)
        return isolated_end(decode->isolated, digest, failure);
    assert(decode->codec);
    if (decode->codec->end(decode->current, failure) != REASON_NONE)
        return blame_change(decode, failure);
    input_skip(&decode->input, UINT64_MAX);
    if (decode->input.error_number)
        return failure_errno(failure, REASON_UNREADABLE, decode->input.error_number, "read failed");
    if (decode->input.total != decode->bytes)
        return failure_set(failure, REASON_CHANGED, "the file changed while it was read");
    if (check_unchanged(decode, failure) != REASON_NONE)
        return failure->reason;
    murmur3_final(&decode->input.digest, digest);
    decode_abort(decode);
    return REASON_NONE;
}

void decode_abort(struct decode *decode)
{
    if (decode->isolated)
        isolated_abort(decode->isolated);
    if (decode->codec)
        decode->codec->reset(decode->current);
    decode->codec = NULL;
}

uint64_t decode_bytes_read(const struct decode *decode)
{
    return decode->isolated ? isolated_bytes_read(decode->isolated) : decode->input.total;
}
