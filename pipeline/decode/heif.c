/* heif.c: HEIF (HEVC) and AVIF (AV1) through libheif: the primary picture.
 *
 * libheif applies the container's rotation and cropping; mirroring is applied last, here. So rows
 * are upright and no orientation is reported: the Exif block of such files repeats it. The
 * container's size may be that before the rotation or, from some cameras, that after it; so if
 * there is a rotation, the coded picture's header is checked before decoding. The whole picture is
 * decoded at once, on the calling thread, to RGB at its own depth. libheif reads through callbacks.
 * Its decoders only warn of missing data; strict decoding makes that an error. */
#include "decode/codec.h"
#include "decode/heif_decoders.h"
#include "decode/heif_items.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dav1d/dav1d.h>
#include <libde265/de265.h>
#include <libheif/heif.h>

struct heif {
    struct heif_context *context;
    struct heif_image_handle *handle;
    struct heif_image *image;
    struct input *input;
    struct heif_items items;
    bool ended; /* libheif read past the end of the file */
    int64_t position;
    uint32_t width, height, row;
    uint64_t max_pixels;
    bool has_alpha;
    uint32_t bits; /* per sample */
    const uint8_t *pixels;
    size_t stride;
};

static const char *library_name(void)
{
    static _Thread_local char text[48];
    snprintf(text, sizeof text, "libheif %s, libde265 %s", heif_get_version(), de265_get_version());
    return text;
}

static const char *avif_library_name(void)
{
    static _Thread_local char text[48];
    snprintf(text, sizeof text, "libheif %s, dav1d %.16s", heif_get_version(), dav1d_version());
    return text;
}

/* --- reading --------------------------------------------------------------------------------- */

static int64_t on_position(void *user)
{
    return ((struct heif *)user)->position;
}

static int on_read(void *out, size_t size, void *user)
{
    struct heif *heif = user;
    size_t got = input_at(heif->input, (uint64_t)heif->position, out, size);
    const struct heif_items *items = &heif->items;
    const uint64_t at = (uint64_t)heif->position, end = items->at + items->size;
    const uint64_t first = at > items->at ? at : items->at, last = at + got < end ? at + got : end;
    if (items->lists && first < last)
        memcpy((uint8_t *)out + (first - at), items->lists + (first - items->at), last - first);
    heif->position += (int64_t)got;
    heif->ended = heif->ended || got < size;
    return got == size ? 0 : -1;
}

static int on_seek(int64_t position, void *user)
{
    struct heif *heif = user;
    if (position < 0)
        return -1;
    heif->position = position;
    return 0;
}

static enum heif_reader_grow_status on_wait(int64_t size, void *user)
{
    struct heif *heif = user;
    const int64_t bytes = (int64_t)heif->input->blob.bytes;
    if (size <= bytes)
        return heif_reader_grow_status_size_reached;
    heif->ended = heif->position < bytes; /* at the end it looks for another box */
    return heif_reader_grow_status_size_beyond_eof;
}

static enum reason fail(const struct heif *heif, const struct heif_error *error,
                        struct failure *failure)
{
    enum reason reason = REASON_CORRUPT;
    if (heif->input->error_number)
        return codec_short(heif->input, failure, "");
    if (heif->ended || error->subcode == heif_suberror_End_of_data)
        reason = REASON_TRUNCATED;
    else if (error->subcode == heif_suberror_Security_limit_exceeded)
        reason = REASON_TOO_LARGE;
    else if (error->code == heif_error_Memory_allocation_error)
        reason = REASON_OUT_OF_MEMORY;
    else if (error->code == heif_error_Unsupported_feature ||
             error->code == heif_error_Unsupported_filetype)
        reason = REASON_UNSUPPORTED;
    static const char prefix[] = "Decoder plugin generated an error: Unspecified: ";
    const char *text = error->message && *error->message ? error->message : "broken data";
    if (strncmp(text, prefix, sizeof prefix - 1) == 0)
        text += sizeof prefix - 1;
    return failure_set(failure, reason, "%s", text);
}

static void register_decoders(void)
{
    heif_register_decoder_plugin(&heif_hevc_decoder);
    heif_register_decoder_plugin(&heif_av1_decoder);
}

static void heif_start(void *state)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)state;
    pthread_once(&once, register_decoders);
}

static void heif_reset(void *state)
{
    struct heif *heif = state;
    if (heif->image)
        heif_image_release(heif->image);
    if (heif->handle)
        heif_image_handle_release(heif->handle);
    if (heif->context)
        heif_context_free(heif->context);
    free(heif->items.lists);
    *heif = (struct heif){.image = NULL};
}

/* libheif's limit is a width, which it squares. */
static int width_limit(uint64_t max_pixels)
{
    uint64_t width = 1;
    while (width * width < max_pixels && width < 1u << 20)
        width *= 2;
    return (int)width;
}

/* Profiles of grey pictures are ignored: libheif returns these as RGB. */
static enum reason read_profile(struct heif *heif, uint64_t *memory, struct failure *failure)
{
    size_t size = heif_image_handle_get_raw_color_profile_size(heif->handle);
    if (size == 0 || size > ICC_PROFILE_MAX)
        return REASON_NONE;
    uint8_t *profile = malloc(size);
    if (!profile ||
        heif_image_handle_get_raw_color_profile(heif->handle, profile).code == heif_error_Ok)
        colours_profile(heif->input->colours, memory, profile, size, ICC_RGB, failure);
    free(profile);
    return failure->reason;
}

/* Is the stated size of a rotated picture that after the rotation, contrary to the standard? */
static bool is_size_turned(struct heif *heif)
{
    struct heif_size coded = {0};
    struct heif_image *image = NULL;
    const int width = heif_image_handle_get_ispe_width(heif->handle);
    const int height = heif_image_handle_get_ispe_height(heif->handle);
    if (!heif->items.turned || width == height)
        return false;
    heif_probe = &coded;
    heif_decode_image(heif->handle, &image, heif_colorspace_undefined, heif_chroma_undefined, NULL);
    heif_probe = NULL;
    if (image)
        heif_image_release(image);
    return coded.width != coded.height && (coded.width > coded.height) != (width > height);
}

static enum reason heif_begin(void *state, struct input *input,
                              const struct decode_options *options, struct image_info *info,
                              struct failure *failure)
{
    static const struct heif_reader reader = {.reader_api_version = 1,
                                              .get_position = on_position,
                                              .read = on_read,
                                              .seek = on_seek,
                                              .wait_for_file_size = on_wait};
    struct heif *heif = state;
    *heif = (struct heif){.input = input, .max_pixels = options->max_pixels};
    if (heif_items_read(&heif->items, input, failure) != REASON_NONE)
        return failure->reason;
    heif->context = heif_context_alloc();
    if (!heif->context)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for libheif");
    heif_context_set_maximum_image_size_limit(heif->context, width_limit(options->max_pixels));
    heif_context_set_max_decoding_threads(heif->context, 0);
    struct heif_error error = heif_context_read_from_reader(heif->context, &reader, heif, NULL);
    if (error.code == heif_error_Ok)
        error = heif_context_get_primary_image_handle(heif->context, &heif->handle);
    if (error.code != heif_error_Ok)
        return fail(heif, &error, failure);
    int width = heif_image_handle_get_width(heif->handle);
    int height = heif_image_handle_get_height(heif->handle);
    int bits = heif_image_handle_get_luma_bits_per_pixel(heif->handle);
    if (width < 0 || height < 0)
        return failure_set(failure, REASON_CORRUPT, "a picture without a size");
    if (codec_set_size(info, (uint64_t)width, (uint64_t)height, options, failure) != REASON_NONE)
        return failure->reason;
    const bool turned = is_size_turned(heif);
    info->width = heif->width = (uint32_t)(turned ? height : width);
    info->height = heif->height = (uint32_t)(turned ? width : height);
    heif->has_alpha = heif_image_handle_has_alpha_channel(heif->handle) != 0;
    input->colours->premultiplied = heif_image_handle_is_premultiplied_alpha(heif->handle) != 0;
    heif->bits = bits > 8 ? (uint32_t)bits : 8;
    info->channels = heif->has_alpha ? 4 : 3;
    /* The decoded picture and its RGB version, each with up to 4 samples per pixel, and the
     * data. */
    info->memory =
        input->blob.bytes + (bits > 8 ? 24ull : 12ull) * heif->width * heif->height + (4u << 20);
    input->colours->alphas_wanted = heif->has_alpha ? heif->width : 0;
    if (options->icc && read_profile(heif, &info->memory, failure) != REASON_NONE)
        return failure->reason;
    info->profile = colours_tell(input->colours,
                                 heif_image_handle_get_raw_color_profile_size(heif->handle) > 0);
    return REASON_NONE;
}

/* --- rows ------------------------------------------------------------------------------------ */

/* Reverses the pixels (`size` bytes each) of a plane from left to right, or from top to bottom. */
static void mirror(const struct heif *heif, uint8_t *plane, size_t size, bool across)
{
    const size_t width = heif->width, height = heif->height;
    uint8_t kept[8];
    for (size_t y = 0; y < (across ? height : height / 2); y++)
        for (size_t x = 0; x < (across ? width / 2 : width); x++) {
            uint8_t *a = plane + y * heif->stride + x * size;
            uint8_t *b = across ? plane + y * heif->stride + (width - 1 - x) * size
                                : plane + (height - 1 - y) * heif->stride + x * size;
            memcpy(kept, a, size);
            memcpy(a, b, size);
            memcpy(b, kept, size);
        }
}

static enum reason read_picture(struct heif *heif, struct failure *failure)
{
    struct heif_decoding_options *options = heif_decoding_options_alloc();
    if (!options)
        return failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for libheif");
    options->strict_decoding = 1;
    options->convert_hdr_to_8bit = 0;
    enum heif_chroma chroma = heif->bits > 8
                                  ? (heif->has_alpha ? heif_chroma_interleaved_RRGGBBAA_LE
                                                     : heif_chroma_interleaved_RRGGBB_LE)
                              : heif->has_alpha ? heif_chroma_interleaved_RGBA
                                                : heif_chroma_interleaved_RGB;
    /* Coded pictures are padded to blocks of up to 64 x 64 pixels. */
    heif_most_pixels = heif->max_pixels + (64ull + heif->width + heif->height) * 64;
    struct heif_color_profile_nclx *nclx = NULL;
    heif_image_handle_get_nclx_color_profile(heif->handle, &nclx);
    /* Alpha is grey too, and in HEVC its range is mostly unspecified. */
    heif_grey_range = heif->has_alpha ? (heif->items.hevc ? 1 : -1)
                      : nclx          ? nclx->full_range_flag
                                      : -1;
    heif_nclx_color_profile_free(nclx);
    struct heif_error error =
        heif_decode_image(heif->handle, &heif->image, heif_colorspace_RGB, chroma, options);
    heif_decoding_options_free(options);
    if (error.code != heif_error_Ok)
        return fail(heif, &error, failure);
    if (heif_image_get_decoding_warnings(heif->image, 0, &error, 1) > 0)
        return fail(heif, &error, failure);
    int stride = 0,
        bits = heif_image_get_bits_per_pixel_range(heif->image, heif_channel_interleaved);
    uint8_t *plane = heif_image_get_plane(heif->image, heif_channel_interleaved, &stride);
    heif->pixels = plane;
    if (!heif->pixels || stride <= 0 ||
        heif_image_get_width(heif->image, heif_channel_interleaved) != (int)heif->width ||
        heif_image_get_height(heif->image, heif_channel_interleaved) != (int)heif->height)
        return failure_set(failure, REASON_CORRUPT, "two sizes for one picture");
    if (bits < 1 || bits > 16 || (bits > 8) != (heif->bits > 8))
        return failure_set(failure, REASON_CORRUPT, "two depths for one picture");
    heif->bits = (uint32_t)bits;
    heif->stride = (size_t)stride;
    if (heif->items.mirror >= 0)
        mirror(heif, plane, (heif->has_alpha ? 4 : 3) * (bits > 8 ? 2 : 1),
               heif->items.mirror == 1);
    return REASON_NONE;
}

static uint32_t sample_at(const struct heif *heif, const uint8_t *row, size_t i)
{
    if (heif->bits <= 8)
        return row[i];
    uint32_t v = row[2 * i] | (uint32_t)row[2 * i + 1] << 8, max = (1u << heif->bits) - 1;
    return pixel_scale(v < max ? v : max, max);
}

static void put_row(uint8_t *dst, const struct heif *heif, const uint8_t *row)
{
    const size_t samples = heif->has_alpha ? 4 : 3;
    if (heif->bits == 8 && !heif->has_alpha) {
        memcpy(dst, row, 3 * (size_t)heif->width);
        return;
    }
    for (size_t x = 0; x < heif->width; x++) {
        if (heif->has_alpha)
            heif->input->colours->alphas[x] = (uint8_t)sample_at(heif, row, samples * x + 3);
        for (size_t c = 0; c < 3; c++)
            dst[3 * x + c] = (uint8_t)sample_at(heif, row, samples * x + c);
    }
}

static enum reason heif_rows(void *state, uint8_t *dst, size_t stride, uint32_t rows,
                             struct failure *failure)
{
    struct heif *heif = state;
    if (!heif->image && read_picture(heif, failure) != REASON_NONE)
        return failure->reason;
    for (uint32_t i = 0; i < rows; i++, heif->row++, dst += stride) {
        put_row(dst, heif, heif->pixels + heif->row * heif->stride);
        colours_finish(heif->input->colours, dst, dst, heif->width);
    }
    return REASON_NONE;
}

#define CODEC                                                                                      \
    .state_bytes = sizeof(struct heif), .init = heif_start, .begin = heif_begin,                   \
    .rows = heif_rows, .reset = heif_reset

const struct codec codec_heif = {.library = library_name, CODEC};
const struct codec codec_avif = {.library = avif_library_name, CODEC};
