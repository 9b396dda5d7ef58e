/* decode.c: dispatch to a decoder, and the decoder on the calling thread: recognises the format,
 * drives the codec, computes the digest, checks that the file did not change while it was read, and
 * decides the reason of a failure. */
#include "decode/decode.h"

#include "base/clock.h"
#include "decode/codec.h"
#include "decode/decoder_ops.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FORMATS_MAX 32u
/* Upper bound on the file bytes read: this many, or one per allowed pixel if that is more, plus
 * some per pixel of the picture. */
#define SPARE_BYTES (UINT64_C(256) << 20)
#define PIXEL_BYTES 16u

/* A decoder of the calling thread. */
struct local {
    struct decode base;
    struct decode_options options;
    struct input input;
    struct colours colours;
    void *state[FORMATS_MAX];  /* per format; allocated at first use */
    const struct codec *codec; /* in use, or NULL */
    void *current;             /* state of `codec` */
    bool named;                /* the file has a path, so it can be removed or replaced */
};

void decode_options_default(struct decode_options *options)
{
    *options = (struct decode_options){
        .alpha = ALPHA_WHITE, .max_pixels = 268435456, .max_scans = 100, .scale = 1};
}

enum reason codec_short(const struct input *input, struct failure *failure, const char *message)
{
    if (input->error_number)
        return failure_errno(failure, REASON_UNREADABLE, input->error_number, "read failed");
    return failure_set(failure, input->at_end ? REASON_TRUNCATED : REASON_CORRUPT, "%s", message);
}

enum reason codec_set_size(struct image_info *info, uint64_t width, uint64_t height,
                           const struct decode_options *options, struct failure *failure)
{
    if (width == 0 || height == 0)
        return failure_set(failure, REASON_CORRUPT, "a picture of %llu x %llu pixels",
                           (unsigned long long)width, (unsigned long long)height);
    if (width > UINT32_MAX || height > UINT32_MAX || width > options->max_pixels / height)
        return failure_set(failure, REASON_TOO_LARGE, "%llu x %llu pixels (--max-pixels)",
                           (unsigned long long)width, (unsigned long long)height);
    info->width = (uint32_t)width;
    info->height = (uint32_t)height;
    return REASON_NONE;
}

/* --- the decoder on the calling thread ------------------------------------------------------- */

static struct local *local_of(struct decode *decode)
{
    return (struct local *)decode;
}

/* Fails if the file has changed since it was opened. */
static enum reason check_unchanged(struct local *local, struct failure *failure)
{
    const struct blob *blob = &local->input.blob;
    struct stat st;
    if (blob->memory)
        return REASON_NONE;
    if (fstat(blob->fd, &st) != 0)
        return failure_errno(failure, REASON_UNREADABLE, errno, "cannot examine the file");
    if (!S_ISREG(st.st_mode))
        return failure_set(failure, REASON_CHANGED, "no longer a regular file");
    if ((uint64_t)st.st_size != blob->file_bytes || clock_file_time(&st.st_mtim) != blob->mtime_ns)
        return failure_set(failure, REASON_CHANGED, "the file changed while it was read");
    if (local->named && st.st_nlink == 0)
        return failure_set(failure, REASON_CHANGED,
                           "the file was removed or replaced while it was read");
    local->named = st.st_nlink > 0;
    return REASON_NONE;
}

/* Replaces any failure of a changed file: the codec may have read parts of two versions. */
static enum reason blame_change(struct local *local, struct failure *failure)
{
    if (failure->reason == REASON_NONE)
        return REASON_NONE;
    struct failure change = {0};
    if (check_unchanged(local, &change) == REASON_CHANGED)
        *failure = change;
    return failure->reason;
}

/* Detects the format and starts its codec. */
static enum reason start_codec(struct local *local, const char *path, struct image_info *info,
                               struct failure *failure)
{
    size_t have = input_peek(&local->input, FORMAT_BYTES);
    if (local->input.error_number)
        return failure_errno(failure, REASON_UNREADABLE, local->input.error_number, "read failed");
    if (have == 0)
        return format_promised(path) ? failure_set(failure, REASON_EMPTY, "no bytes")
                                     : failure_set(failure, REASON_NOT_AN_IMAGE, "an empty file");
    int format = format_recognise(local->input.buffer + local->input.position, have);
    if (format < 0)
        return format_promised(path) ? failure_set(failure, REASON_UNKNOWN_FORMAT,
                                                   "the content is not a known image format")
                                     : failure_set(failure, REASON_NOT_AN_IMAGE, "no image");
    const struct format *row = format_at((unsigned)format);
    const struct codec *codec = format_codec((unsigned)format);
    if (!codec)
        return failure_set(failure, REASON_UNSUPPORTED, "%s", row->notes);
    assert((unsigned)format < FORMATS_MAX);
    void **state = &local->state[format];
    if (!*state) {
        *state = calloc(1, codec->state_bytes);
        if (!*state)
            return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for a decoder");
        if (codec->init)
            codec->init(*state);
    }
    memset(info->format, 0, sizeof info->format);
    memcpy(info->format, row->name, strnlen(row->name, sizeof info->format - 1));
    local->codec = codec;
    local->current = *state;
    struct decode_options options = local->options;
    if (local->base.display_scale) {
        options.alpha = ALPHA_GREY;
        options.icc = decode_icc_library() != NULL;
        options.scale = local->base.display_scale;
        options.coefficients = options.streams = false;
    }
    struct input *input = &local->input;
    const uint64_t bytes = input->blob.bytes, allowed = options.max_pixels,
                   spare = allowed > SPARE_BYTES ? allowed : SPARE_BYTES;
    input->most = spare < bytes ? spare : UINT64_MAX;
    local->colours.mode = options.alpha;
    local->colours.wanted = options.icc;
    codec->begin(*state, input, &options, info, failure);
    if (input->total >= input->most)
        return failure_set(failure, REASON_TOO_LARGE,
                           "no picture begins in the first %llu of %llu bytes (--max-pixels)",
                           (unsigned long long)spare, (unsigned long long)bytes);
    if (failure->reason == REASON_NONE && bytes > spare &&
        (bytes - spare) / PIXEL_BYTES > (uint64_t)info->width * info->height)
        return failure_set(failure, REASON_TOO_LARGE,
                           "%llu bytes are far too many for a picture of %u x %u pixels "
                           "(--max-pixels)",
                           (unsigned long long)bytes, info->width, info->height);
    input->most = UINT64_MAX;
    info->memory += local->colours.alphas_wanted;
    if (info->out_width == 0) {
        info->out_width = info->width;
        info->out_height = info->height;
    }
    return failure->reason;
}

static void local_abort(struct decode *decode)
{
    struct local *local = local_of(decode);
    if (local->codec && local->codec->reset)
        local->codec->reset(local->current);
    colours_end(&local->colours);
    local->codec = NULL;
}

static enum reason local_begin(struct decode *decode, const struct blob *blob, const char *path,
                               struct image_info *info, struct failure *failure)
{
    struct local *local = local_of(decode);
    input_begin(&local->input, blob);
    local->named = false;
    if (check_unchanged(local, failure) == REASON_NONE &&
        start_codec(local, path, info, failure) != REASON_NONE)
        blame_change(local, failure);
    if (failure->reason != REASON_NONE)
        local_abort(decode);
    return failure->reason;
}

static enum reason local_rows(struct decode *decode, uint8_t *dst, size_t stride, uint32_t rows,
                              struct failure *failure)
{
    struct local *local = local_of(decode);
    assert(local->codec);
    if (colours_start(&local->colours, failure) == REASON_NONE)
        local->codec->rows(local->current, dst, stride, rows, failure);
    return blame_change(local, failure);
}

static enum reason local_coefficients(struct decode *decode, void *dst, struct failure *failure)
{
    struct local *local = local_of(decode);
    assert(local->codec && local->codec->coefficients);
    local->codec->coefficients(local->current, dst, failure);
    return blame_change(local, failure);
}

static bool local_stream(struct decode *decode, void *dst)
{
    struct local *local = local_of(decode);
    assert(local->codec && local->codec->stream);
    return local->codec->stream(local->current, dst);
}

static enum reason local_end(struct decode *decode, uint64_t digest[2], struct failure *failure)
{
    struct local *local = local_of(decode);
    struct input *input = &local->input;
    assert(local->codec);
    if (local->codec->end && local->codec->end(local->current, failure) != REASON_NONE)
        return blame_change(local, failure);
    /* Growth is detected below, so no read past the end is needed. */
    if (input->total != input->blob.bytes)
        input_read(input, NULL, SIZE_MAX);
    if (input->error_number)
        return failure_errno(failure, REASON_UNREADABLE, input->error_number, "read failed");
    if (input->total != input->blob.bytes)
        return failure_set(failure, REASON_CHANGED, "the file changed while it was read");
    if (check_unchanged(local, failure) != REASON_NONE)
        return failure->reason;
    murmur3_final(&input->digest, digest);
    local_abort(decode);
    return REASON_NONE;
}

static void local_close(struct decode *decode)
{
    struct local *local = local_of(decode);
    for (unsigned i = 0; i < FORMATS_MAX; i++) {
        if (!local->state[i])
            continue;
        const struct codec *codec = format_codec(i);
        if (codec->reset)
            codec->reset(local->state[i]);
        free(local->state[i]);
    }
    colours_end(&local->colours);
    icc_close(&local->colours);
    input_clear(&local->input);
    free(local);
}

enum status decode_open(struct decode **out, const struct decode_options *options,
                        struct error *err)
{
    static const struct decoder_ops ops = {
        .begin = local_begin,
        .rows = local_rows,
        .coefficients = local_coefficients,
        .stream = local_stream,
        .end = local_end,
        .abort = local_abort,
        .close = local_close,
    };
    *out = NULL;
    struct local *local = calloc(1, sizeof *local);
    if (!local || !input_init(&local->input)) {
        free(local);
        return error_memory(err, sizeof *local + INPUT_BUFFER, "a decoder");
    }
    local->base = (struct decode){.ops = &ops, .ahead = 1, .bytes_read = &local->input.total};
    local->options = *options;
    local->input.stop = options->stop;
    local->input.colours = &local->colours;
    *out = &local->base;
    return STATUS_OK;
}

/* --- dispatch -------------------------------------------------------------------------------- */

enum status decode_ready(struct decode *decode, struct error *err)
{
    return decode->ops->ready ? decode->ops->ready(decode, err) : STATUS_OK;
}

unsigned decode_ahead(const struct decode *decode)
{
    return decode->ahead;
}

void decode_announce(struct decode *decode, const struct decode_file *files, unsigned count)
{
    if (decode->ops->announce)
        decode->ops->announce(decode, files, count);
}

enum reason decode_begin(struct decode *decode, const struct blob *blob, const char *path,
                         struct image_info *info, struct failure *failure)
{
    *info = (struct image_info){.orientation = 1};
    *failure = (struct failure){0};
    decode->ops->begin(decode, blob, path, info, failure);
    decode->display_scale = 0;
    return failure->reason;
}

void decode_for_display(struct decode *decode, unsigned scale)
{
    decode->display_scale = scale;
}

unsigned decode_scale_for(uint32_t width, uint32_t height, uint32_t side)
{
    unsigned scale = 8;
    while (scale > 1 && (width > height ? width : height) / scale < side)
        scale /= 2;
    return scale;
}

enum reason decode_rows(struct decode *decode, uint8_t *dst, size_t stride, uint32_t rows,
                        struct failure *failure)
{
    return decode->ops->rows(decode, dst, stride, rows, failure);
}

enum reason decode_coefficients(struct decode *decode, void *dst, struct failure *failure)
{
    return decode->ops->coefficients(decode, dst, failure);
}

bool decode_stream(struct decode *decode, void *dst)
{
    return decode->ops->stream(decode, dst);
}

enum reason decode_end(struct decode *decode, uint64_t digest[2], struct failure *failure)
{
    return decode->ops->end(decode, digest, failure);
}

void decode_abort(struct decode *decode)
{
    decode->ops->abort(decode);
}

uint64_t decode_bytes_read(const struct decode *decode)
{
    return *decode->bytes_read;
}

void decode_close(struct decode **decode)
{
    if (*decode)
        (*decode)->ops->close(*decode);
    *decode = NULL;
}
