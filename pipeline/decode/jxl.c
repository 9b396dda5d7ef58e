/* jxl.c: JPEG XL through libjxl: the first frame, on the calling thread. libjxl returns pixels in
 * any order, so a picture is buffered unless the caller's memory holds all of it. Colours are
 * returned as encoded in the file unless profiles are applied: libjxl provides one for every
 * encoding.
 *
 * A small picture may be composed of hidden frames of any size, which the header does not mention.
 * So libjxl may allocate at most MEMORY_TIMES what pictures of that size need; from 0.11 on it uses
 * clpipe's allocator for everything, before that only for a part. */
#include "decode/codec.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jxl/decode.h>

/* Bytes that libjxl needs, as measured: per picture (groups may have 1024 x 1024 pixels) and per
 * additional channel; per pixel and per additional channel of a pixel. Pictures with more channels
 * than usual are refused: a few bytes of header can request any number. */
enum {
    PICTURE_MEMORY = 16 << 20,
    PLANE_MEMORY = 5 << 20,
    PIXEL_MEMORY = 24,
    CHANNEL_MEMORY = 40,
    CHANNELS_MAX = 8,
    MEMORY_TIMES = 2
};

/* Precedes each allocation of libjxl and keeps its alignment. */
union block {
    size_t bytes;
    max_align_t align;
};

struct jxl {
    JxlDecoder *decoder;
    uint64_t held, most; /* bytes allocated by libjxl, and its limit */
    bool refused;        /* the limit was exceeded */
    struct input *input;
    size_t given; /* bytes of the input's buffer given to libjxl */
    uint32_t width, height, row;
    bool has_alpha, deep;  /* deep: 16 bits per sample */
    uint8_t *pixels, *out; /* our buffer; destination */
    size_t stride;
};

static const char *library_name(void)
{
    static _Thread_local char text[32];
    unsigned version = (unsigned)JxlDecoderVersion();
    snprintf(text, sizeof text, "libjxl %u.%u.%u", version / 1000000, version / 1000 % 1000,
             version % 1000);
    return text;
}

static void *allocate(void *state, size_t bytes)
{
    struct jxl *jxl = state;
    if (bytes > jxl->most - jxl->held) {
        jxl->refused = true;
        return NULL;
    }
    union block *block = malloc(sizeof *block + bytes);
    if (!block)
        return NULL;
    block->bytes = bytes;
    jxl->held += bytes;
    return block + 1;
}

static void release_block(void *state, void *at)
{
    struct jxl *jxl = state;
    union block *block = at;
    if (!at)
        return;
    jxl->held -= block[-1].bytes;
    free(block - 1);
}

static void jxl_reset(void *state)
{
    struct jxl *jxl = state;
    if (jxl->decoder)
        JxlDecoderDestroy(jxl->decoder);
    free(jxl->pixels);
    *jxl = (struct jxl){.decoder = NULL};
}

/* --- input ----------------------------------------------------------------------------------- */

/* Takes back the input that libjxl has not used. */
static size_t release(struct jxl *jxl)
{
    size_t left = JxlDecoderReleaseInput(jxl->decoder);
    jxl->input->position += jxl->given - left;
    jxl->given = 0;
    return left;
}

/* Gives libjxl more input; false if there is none. */
static bool feed(struct jxl *jxl)
{
    size_t left = release(jxl), have = input_peek(jxl->input, left + 1);
    if (have <= left)
        return false;
    jxl->given = have;
    return JxlDecoderSetInput(jxl->decoder, jxl->input->buffer + jxl->input->position, have) ==
           JXL_DEC_SUCCESS;
}

static enum reason fail(struct jxl *jxl, JxlDecoderStatus status, struct failure *failure)
{
    if (jxl->refused)
        return failure_set(failure, REASON_TOO_LARGE,
                           "hidden frames need more memory than a picture of its size");
    if (status == JXL_DEC_NEED_MORE_INPUT)
        return codec_short(jxl->input, failure, "the file ends early");
    return failure_set(failure, REASON_CORRUPT, "broken data");
}

/* Runs to the next event that is not about input. */
static JxlDecoderStatus process(struct jxl *jxl)
{
    JxlDecoderStatus status;
    do
        status = JxlDecoderProcessInput(jxl->decoder);
    while (status == JXL_DEC_NEED_MORE_INPUT && feed(jxl));
    return status;
}

/* --- the header ------------------------------------------------------------------------------ */

static bool has_black(const struct jxl *jxl, uint32_t extra)
{
    JxlExtraChannelInfo channel;
    for (uint32_t i = 0; i < extra; i++) {
        if (JxlDecoderGetExtraChannelInfo(jxl->decoder, i, &channel) == JXL_DEC_SUCCESS &&
            channel.type == JXL_CHANNEL_BLACK)
            return true;
    }
    return false;
}

/* libjxl 0.9 removed the pixel format parameter. */
#if JPEGXL_NUMERIC_VERSION < JPEGXL_COMPUTE_NUMERIC_VERSION(0, 9, 0)
static const JxlPixelFormat profile_format = {3, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
#define PROFILE_OF(jxl) (jxl)->decoder, &profile_format, JXL_COLOR_PROFILE_TARGET_DATA
#else
#define PROFILE_OF(jxl) (jxl)->decoder, JXL_COLOR_PROFILE_TARGET_DATA
#endif

/* Reads the profile of libjxl's output pixels; not needed if they are sRGB. */
static enum reason read_profile(struct jxl *jxl, bool grey, uint64_t *memory,
                                struct failure *failure)
{
    JxlDecoderStatus status = process(jxl);
    JxlColorEncoding encoding;
    size_t size = 0;
    if (status != JXL_DEC_COLOR_ENCODING)
        return fail(jxl, status, failure);
    if (JxlDecoderGetColorAsEncodedProfile(PROFILE_OF(jxl), &encoding) == JXL_DEC_SUCCESS &&
        encoding.white_point == JXL_WHITE_POINT_D65 &&
        (grey || encoding.primaries == JXL_PRIMARIES_SRGB) &&
        encoding.transfer_function == JXL_TRANSFER_FUNCTION_SRGB)
        return REASON_NONE;
    if (JxlDecoderGetICCProfileSize(PROFILE_OF(jxl), &size) != JXL_DEC_SUCCESS ||
        size > ICC_PROFILE_MAX)
        return REASON_NONE;
    uint8_t *profile = malloc(size ? size : 1);
    if (!profile ||
        JxlDecoderGetColorAsICCProfile(PROFILE_OF(jxl), profile, size) == JXL_DEC_SUCCESS)
        colours_profile(jxl->input->colours, memory, profile, size, grey ? ICC_GREY : ICC_RGB,
                        failure);
    free(profile);
    return failure->reason;
}

static enum reason jxl_begin(void *state, struct input *input, const struct decode_options *options,
                             struct image_info *info, struct failure *failure)
{
    struct jxl *jxl = state;
    JxlBasicInfo basic;
    *jxl = (struct jxl){.input = input, .most = PICTURE_MEMORY};
    const JxlMemoryManager memory = {jxl, allocate, release_block};
    jxl->decoder = JxlDecoderCreate(&memory);
    int events =
        JXL_DEC_BASIC_INFO | JXL_DEC_FULL_IMAGE | (options->icc ? JXL_DEC_COLOR_ENCODING : 0);
    if (!jxl->decoder || JxlDecoderSetKeepOrientation(jxl->decoder, JXL_TRUE) != JXL_DEC_SUCCESS ||
        JxlDecoderSubscribeEvents(jxl->decoder, events) != JXL_DEC_SUCCESS)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for libjxl");
    JxlDecoderStatus status = process(jxl);
    if (status != JXL_DEC_BASIC_INFO ||
        JxlDecoderGetBasicInfo(jxl->decoder, &basic) != JXL_DEC_SUCCESS)
        return fail(jxl, status, failure);
    if (codec_set_size(info, basic.xsize, basic.ysize, options, failure) != REASON_NONE)
        return failure->reason;
    if (basic.num_extra_channels > CHANNELS_MAX)
        return failure_set(failure, REASON_UNSUPPORTED, "%u further channels",
                           basic.num_extra_channels);
    if (has_black(jxl, basic.num_extra_channels))
        return failure_set(failure, REASON_UNSUPPORTED, "CMYK");
    jxl->width = basic.xsize;
    jxl->height = basic.ysize;
    jxl->has_alpha = basic.alpha_bits > 0;
    input->colours->premultiplied = basic.alpha_premultiplied != 0;
    jxl->deep = basic.bits_per_sample > 8 || basic.alpha_bits > 8;
    uint64_t pixels = (uint64_t)jxl->width * jxl->height;
    info->orientation =
        basic.orientation >= 1 && basic.orientation <= 8 ? (uint8_t)basic.orientation : 1;
    info->channels = (uint8_t)((basic.num_color_channels == 1 ? 1 : 3) + (jxl->has_alpha ? 1 : 0));
    info->memory = PICTURE_MEMORY + (uint64_t)PLANE_MEMORY * basic.num_extra_channels +
                   (PIXEL_MEMORY + CHANNEL_MEMORY * basic.num_extra_channels + 3) * pixels;
    jxl->most = MEMORY_TIMES * (info->memory - 3 * pixels);
    input->colours->alphas_wanted = jxl->has_alpha ? jxl->width : 0;
    if (options->icc &&
        read_profile(jxl, basic.num_color_channels == 1, &info->memory, failure) != REASON_NONE)
        return failure->reason;
    info->profile = colours_tell(input->colours, true);
    return REASON_NONE;
}

/* --- pixels ---------------------------------------------------------------------------------- */

/* Receives a run of pixels of a row from libjxl. */
static void on_pixels(void *user, size_t x, size_t y, size_t count, const void *samples)
{
    const struct jxl *jxl = user;
    const struct colours *colours = jxl->input->colours;
    const uint8_t *bytes = samples;
    size_t channels = jxl->has_alpha ? 4 : 3;
    if (y >= jxl->height || x >= jxl->width || count > jxl->width - x)
        return;
    uint8_t *dst = jxl->out + y * jxl->stride + 3 * x;
    for (size_t i = 0; i < channels * count; i++) {
        uint16_t deep;
        if (jxl->deep)
            memcpy(&deep, bytes + 2 * i, sizeof deep);
        uint8_t *to = i % channels == 3 ? &colours->alphas[i / channels]
                                        : &dst[3 * (i / channels) + i % channels];
        *to = jxl->deep ? pixel_scale(deep, 65535) : bytes[i];
    }
    colours_finish(colours, dst, dst, (uint32_t)count);
}

static enum reason read_picture(struct jxl *jxl, uint8_t *dst, size_t stride, uint32_t rows,
                                struct failure *failure)
{
    JxlPixelFormat format = {jxl->has_alpha ? 4 : 3, jxl->deep ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8,
                             JXL_NATIVE_ENDIAN, 0};
    jxl->out = dst;
    jxl->stride = stride;
    if (rows != jxl->height) {
        jxl->stride = 3 * (size_t)jxl->width;
        jxl->out = jxl->pixels = calloc(jxl->height, jxl->stride);
        if (!jxl->pixels)
            return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for %u x %u pixels",
                               jxl->width, jxl->height);
    }
    JxlDecoderStatus status;
    while ((status = process(jxl)) == JXL_DEC_NEED_IMAGE_OUT_BUFFER) {
        if (JxlDecoderSetImageOutCallback(jxl->decoder, &format, on_pixels, jxl) != JXL_DEC_SUCCESS)
            return failure_set(failure, REASON_UNSUPPORTED, "samples that libjxl does not convert");
    }
    release(jxl);
    return status == JXL_DEC_FULL_IMAGE ? REASON_NONE : fail(jxl, status, failure);
}

static enum reason jxl_rows(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                            struct failure *failure)
{
    struct jxl *jxl = state;
    if (!jxl->out && read_picture(jxl, dst, stride, rows, failure) != REASON_NONE)
        return failure->reason;
    for (uint32_t i = 0; i < rows && jxl->pixels; i++, jxl->row++, dst += stride)
        memcpy(dst, jxl->pixels + jxl->row * jxl->stride, jxl->stride);
    return REASON_NONE;
}

const struct codec codec_jxl = {
    .library = library_name,
    .state_bytes = sizeof(struct jxl),
    .begin = jxl_begin,
    .rows = jxl_rows,
    .reset = jxl_reset,
};
