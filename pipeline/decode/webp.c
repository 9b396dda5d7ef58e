/* webp.c: WebP through libwebp; for animations, the first frame on its canvas.
 *
 * libwebp takes all data and returns the whole picture at once. The container (RIFF, see Google's
 * WebP container specification) is parsed here for the offsets of the first frame, the Exif block
 * and the colour profile; a file shorter than its header says fails before it is read. An opaque
 * picture is decoded into the caller's memory if all rows are requested at once. */
#include "decode/codec.h"
#include "decode/exif.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>

enum { VP8X_ICC = 0x20, VP8X_ALPHA = 0x10, VP8X_EXIF = 0x08, VP8X_ANIMATION = 0x02 };
enum { CHUNKS_MAX = 65536, EXIF_MAX = 65536 }; /* limits of the search for metadata */

struct webp {
    struct input *input;
    uint32_t width, height, row;
    bool has_alpha, animated;
    uint64_t data_at, data_size; /* the data for libwebp */
    uint32_t left, top, frame_width, frame_height;
    uint8_t *pixels; /* RGBA of the frame */
    bool direct;     /* the caller's memory holds all rows */
};

static const char *library_name(void)
{
    static _Thread_local char text[32];
    unsigned version = (unsigned)WebPGetDecoderVersion();
    snprintf(text, sizeof text, "libwebp %u.%u.%u", version >> 16 & 255, version >> 8 & 255,
             version & 255);
    return text;
}

static void webp_reset(void *state)
{
    struct webp *webp = state;
    free(webp->pixels);
    *webp = (struct webp){.pixels = NULL};
}

static enum reason fail(const struct webp *webp, VP8StatusCode code, struct failure *failure)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for %u x %u pixels",
                           webp->frame_width, webp->frame_height);
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return failure_set(failure, REASON_TRUNCATED, "the data ends early");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return failure_set(failure, REASON_UNSUPPORTED, "a feature that libwebp does not have");
    default:
        return failure_set(failure, REASON_CORRUPT, "broken data");
    }
}

/* --- the container --------------------------------------------------------------------------- */

static uint8_t read_orientation(struct webp *webp, uint64_t at, uint32_t size)
{
    size_t want = size < EXIF_MAX ? size : EXIF_MAX;
    uint8_t *exif = malloc(want);
    uint8_t orientation = 1;
    if (exif && input_at(webp->input, at, exif, want) == want) {
        size_t prefix = want >= 6 && memcmp(exif, "Exif\0", 6) == 0 ? 6 : 0;
        orientation = exif_orientation(exif + prefix, want - prefix);
    }
    free(exif);
    return orientation;
}

static enum reason read_profile(struct webp *webp, uint64_t at, uint32_t size, uint64_t *memory,
                                struct failure *failure)
{
    if (size > ICC_PROFILE_MAX)
        return REASON_NONE;
    uint8_t *profile = malloc(size ? size : 1);
    if (!profile || input_at(webp->input, at, profile, size) == size)
        colours_profile(webp->input->colours, memory, profile, size, ICC_RGB, failure);
    free(profile);
    return failure->reason;
}

/* Reads the frame's position on the canvas; libwebp gets only the frame. */
static enum reason read_frame_header(struct webp *webp, uint64_t at, uint32_t size,
                                     struct failure *failure)
{
    uint8_t head[16];
    if (size < sizeof head || input_at(webp->input, at, head, sizeof head) != sizeof head)
        return failure_set(failure, REASON_CORRUPT, "the first frame has no header");
    webp->left = 2 * little_endian(head, 3);
    webp->top = 2 * little_endian(head + 3, 3);
    webp->frame_width = little_endian(head + 6, 3) + 1;
    webp->frame_height = little_endian(head + 9, 3) + 1;
    webp->data_at = at + sizeof head;
    webp->data_size = size - sizeof head;
    if (webp->frame_width > webp->width || webp->left > webp->width - webp->frame_width ||
        webp->frame_height > webp->height || webp->top > webp->height - webp->frame_height)
        return failure_set(failure, REASON_CORRUPT, "the first frame reaches beyond the canvas");
    return REASON_NONE;
}

static enum reason walk_chunks(struct webp *webp, uint32_t flags, bool want_icc, uint64_t end,
                               struct image_info *info, struct failure *failure)
{
    bool want_frame = webp->animated, want_exif = (flags & VP8X_EXIF) != 0;
    uint64_t at = 12;
    for (uint32_t i = 0; i < CHUNKS_MAX && (want_frame || want_exif || want_icc) && at + 8 <= end;
         i++) {
        uint8_t head[8];
        if (input_at(webp->input, at, head, sizeof head) != sizeof head)
            break;
        uint32_t size = little_endian(head + 4, 4);
        if (size > end - at - 8)
            return failure_set(failure, REASON_CORRUPT, "a chunk of %u bytes", size);
        if (want_frame && memcmp(head, "ANMF", 4) == 0) {
            if (read_frame_header(webp, at + 8, size, failure) != REASON_NONE)
                return failure->reason;
            want_frame = false;
        } else if (want_exif && memcmp(head, "EXIF", 4) == 0) {
            info->orientation = read_orientation(webp, at + 8, size);
            want_exif = false;
        } else if (want_icc && memcmp(head, "ICCP", 4) == 0) {
            if (read_profile(webp, at + 8, size, &info->memory, failure) != REASON_NONE)
                return failure->reason;
            want_icc = false;
        }
        at += 8 + (uint64_t)size + (size & 1);
    }
    if (webp->input->error_number)
        return codec_short(webp->input, failure, "");
    return want_frame ? failure_set(failure, REASON_CORRUPT, "an animation without a frame")
                      : REASON_NONE;
}

static enum reason webp_begin(void *state, struct input *input,
                              const struct decode_options *options, struct image_info *info,
                              struct failure *failure)
{
    struct webp *webp = state;
    size_t have = input_peek(input, 4096);
    const uint8_t *data = input->buffer + input->position;
    uint64_t end = 8 + (uint64_t)little_endian(data + 4, 4);
    if (end > input->blob.bytes)
        return failure_set(failure, REASON_TRUNCATED, "the file ends early");
    *webp = (struct webp){.input = input, .data_size = end};
    uint32_t flags = 0;
    WebPBitstreamFeatures features;
    if (have >= 30 && memcmp(data + 12, "VP8X", 4) == 0) {
        flags = data[20];
        webp->width = little_endian(data + 24, 3) + 1;
        webp->height = little_endian(data + 27, 3) + 1;
        webp->has_alpha = (flags & VP8X_ALPHA) != 0;
    } else {
        VP8StatusCode code = WebPGetFeatures(data, have < end ? have : (size_t)end, &features);
        if (code != VP8_STATUS_OK)
            return fail(webp, code, failure);
        webp->width = (uint32_t)features.width;
        webp->height = (uint32_t)features.height;
        webp->has_alpha = features.has_alpha != 0;
    }
    if (codec_set_size(info, webp->width, webp->height, options, failure) != REASON_NONE)
        return failure->reason;
    webp->animated = (flags & VP8X_ANIMATION) != 0;
    webp->frame_width = webp->width;
    webp->frame_height = webp->height;
    bool want_icc = options->icc && (flags & VP8X_ICC);
    if (flags && walk_chunks(webp, flags, want_icc, end, info, failure) != REASON_NONE)
        return failure->reason;
    info->channels = webp->has_alpha ? 4 : 3;
    info->profile = colours_tell(input->colours, flags & VP8X_ICC);
    /* The file, RGBA, and memory of the lossless decoder. */
    info->memory += webp->data_size + 8ull * webp->frame_width * webp->frame_height + (1u << 20);
    input->colours->alphas_wanted = webp->has_alpha || webp->animated ? webp->width : 0;
    return REASON_NONE;
}

/* --- pixels ---------------------------------------------------------------------------------- */

static enum reason decode_into(struct webp *webp, const uint8_t *data, uint8_t *out, size_t stride,
                               WEBP_CSP_MODE mode, struct failure *failure)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return failure_set(failure, REASON_UNSUPPORTED,
                           "not the libwebp that clpipe was built with");
    VP8StatusCode code = WebPGetFeatures(data, (size_t)webp->data_size, &config.input);
    if (code != VP8_STATUS_OK)
        return fail(webp, code, failure);
    if ((uint32_t)config.input.width != webp->frame_width ||
        (uint32_t)config.input.height != webp->frame_height)
        return failure_set(failure, REASON_CORRUPT, "two sizes for one picture");
    config.output.colorspace = mode;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = out;
    config.output.u.RGBA.stride = (int)stride;
    config.output.u.RGBA.size = stride * webp->frame_height;
    code = WebPDecode(data, (size_t)webp->data_size, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? REASON_NONE : fail(webp, code, failure);
}

static enum reason read_picture(struct webp *webp, uint8_t *dst, size_t stride, uint32_t rows,
                                struct failure *failure)
{
    webp->direct = !webp->animated && !webp->has_alpha && rows == webp->height && stride <= INT_MAX;
    size_t size = (size_t)webp->data_size, row = 4 * (size_t)webp->frame_width;
    uint8_t *data = malloc(size ? size : 1);
    if (!webp->direct)
        webp->pixels = calloc(webp->frame_height, row);
    if (!data || (!webp->direct && !webp->pixels))
        failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for %u x %u pixels",
                    webp->frame_width, webp->frame_height);
    else if ((webp->animated ? input_at(webp->input, webp->data_at, data, size)
                             : input_read(webp->input, data, size)) != size)
        codec_short(webp->input, failure, "the file ends early");
    else if (webp->direct)
        decode_into(webp, data, dst, stride, MODE_RGB, failure);
    else
        decode_into(webp, data, webp->pixels, row, MODE_RGBA, failure);
    free(data);
    return failure->reason;
}

static void put_row(uint8_t *dst, const struct webp *webp, uint32_t y)
{
    uint8_t *alphas = webp->input->colours->alphas;
    static const uint8_t nothing[4] = {0};
    bool crossed = y >= webp->top && y - webp->top < webp->frame_height;
    for (size_t x = 0; x < webp->width; x++) {
        const uint8_t *v = nothing;
        if (crossed && x >= webp->left && x - webp->left < webp->frame_width)
            v = webp->pixels + 4 * ((size_t)(y - webp->top) * webp->frame_width + (x - webp->left));
        memcpy(dst + 3 * x, v, 3);
        if (alphas)
            alphas[x] = v[3];
    }
}

static enum reason webp_rows(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                             struct failure *failure)
{
    struct webp *webp = state;
    if (!webp->pixels && !webp->direct &&
        read_picture(webp, dst, stride, rows, failure) != REASON_NONE)
        return failure->reason;
    for (uint32_t i = 0; i < rows; i++, webp->row++, dst += stride) {
        if (!webp->direct)
            put_row(dst, webp, webp->row);
        colours_finish(webp->input->colours, dst, dst, webp->width);
    }
    return REASON_NONE;
}

const struct codec codec_webp = {
    .library = library_name,
    .state_bytes = sizeof(struct webp),
    .begin = webp_begin,
    .rows = webp_rows,
    .reset = webp_reset,
};
