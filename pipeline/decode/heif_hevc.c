/* heif_hevc.c: HEVC for libheif, through libde265 on the calling thread. Its warnings are errors.
 *
 * libde265 leaves uninitialised memory in pictures with missing slices, so the same file could
 * decode to different pixels. Pictures are therefore allocated here, zeroed and limited in size.
 * de265_set_image_allocation_functions does not suffice: it applies to output pictures, but not to
 * the input of the sample adaptive offset filter, which is allocated with the library's global
 * default functions (decctx.cc, isOutputImage; 1.0.2 to 1.1.1). These are replaced here, through
 * de265_get_default_image_allocation_functions; no other code of the program uses libde265. */
#include "decode/heif_decoders.h"
#include "decode/pixel.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libde265/de265.h>

#define PLANES 3
/* Its filters read a few bytes past the end. */
#define PADDING 64u

static _Thread_local bool refused; /* a picture was too large */

/* A zeroed plane, or NULL. *stride is in bytes. */
static void *make_plane(int *stride, const struct de265_image_spec *spec,
                        const struct de265_image *image, int channel)
{
    const enum de265_chroma chroma = de265_get_chroma_format(image);
    const bool narrow = channel > 0 && chroma != de265_chroma_444;
    const bool low = channel > 0 && chroma == de265_chroma_420;
    const size_t width = (size_t)spec->width >> narrow, height = (size_t)spec->height >> low;
    const size_t alignment = (size_t)spec->alignment;
    const size_t sample = (size_t)(de265_get_bits_per_pixel(image, channel) + 7) / 8;
    const size_t row = (width + alignment - 1) / alignment * alignment * sample;
    const size_t size = (row * height + 2 * PADDING - 1) / PADDING * PADDING;
    *stride = (int)row;
    refused = refused || row * height / 2 > heif_most_pixels;
    void *plane = refused ? NULL : aligned_alloc(PADDING, size);
    if (plane)
        memset(plane, 0, size);
    return plane;
}

static int get_planes(de265_decoder_context *context, struct de265_image_spec *spec,
                      struct de265_image *image, void *user)
{
    const int count = de265_get_chroma_format(image) == de265_chroma_mono ? 1 : PLANES;
    void *plane[PLANES] = {NULL};
    int stride[PLANES] = {0};
    (void)context;
    (void)user;
    if (heif_probe) {
        *heif_probe = (struct heif_size){spec->visible_width, spec->visible_height};
        return 0;
    }
    for (int i = 0; i < count; i++) {
        plane[i] = make_plane(&stride[i], spec, image, i);
        if (!plane[i]) {
            while (i-- > 0)
                free(plane[i]);
            return 0;
        }
    }
    for (int i = 0; i < PLANES; i++)
        de265_set_image_plane(image, i, plane[i], stride[i], plane[i]);
    return 1;
}

static void release_planes(de265_decoder_context *context, struct de265_image *image, void *user)
{
    (void)context;
    (void)user;
    for (int i = 0; i < PLANES; i++)
        free(de265_get_image_plane_user_data(image, i));
}

static void replace_allocation(void)
{
    struct de265_image_allocation *all =
        (struct de265_image_allocation *)(uintptr_t)de265_get_default_image_allocation_functions();
    *all = (struct de265_image_allocation){get_planes, release_planes};
}

static const char *name(void)
{
    return "HEVC through libde265";
}

static int supports(enum heif_compression_format format)
{
    return format == heif_compression_HEVC ? 1000 : 0; /* preferred over any other */
}

static struct heif_error new_decoder(void **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, replace_allocation);
    de265_decoder_context *context = *out = de265_new_decoder();
    if (!context)
        return heif_no_memory("no memory for libde265");
    de265_set_parameter_bool(context, DE265_DECODER_PARAM_BOOL_SEI_CHECK_HASH, 1);
    return heif_decoder_error(heif_suberror_Unspecified, NULL);
}

static void free_decoder(void *decoder)
{
    de265_free_decoder(decoder);
}

/* Pushes NAL units, each preceded by its size in four bytes. */
static struct heif_error push(void *decoder, const void *data, size_t size)
{
    const uint8_t *at = data;
    while (size > 0) {
        const uint32_t unit = size < 4 ? 0 : big_endian(at, 4);
        if (size < 4 || unit > size - 4 || unit > INT32_MAX)
            return heif_decoder_error(heif_suberror_End_of_data, "a NAL unit ends early");
        de265_error error = de265_push_NAL(decoder, at + 4, (int)unit, 0, NULL);
        if (error != DE265_OK)
            return heif_decoder_error(heif_suberror_Unspecified, de265_get_error_text(error));
        at += 4 + unit;
        size -= 4 + unit;
    }
    return heif_decoder_error(heif_suberror_Unspecified, NULL);
}

static struct heif_error copy(struct heif_image **out, const struct de265_image *image)
{
    struct heif_planes planes = {
        .layout = (unsigned)de265_get_chroma_format(image),
        .bits = de265_get_bits_per_pixel(image, 0),
        .primaries = de265_get_image_colour_primaries(image),
        .transfer = de265_get_image_transfer_characteristics(image),
        .matrix = de265_get_image_matrix_coefficients(image),
        .full_range = de265_get_image_full_range_flag(image),
    };
    if (planes.layout > 3)
        return heif_decoder_error(heif_suberror_Unspecified, "unknown subsampling");
    for (int i = 0; i < (planes.layout == 0 ? 1 : 3); i++) {
        int stride = 0;
        if (de265_get_bits_per_pixel(image, i) != planes.bits)
            return heif_decoder_error(heif_suberror_Unspecified, "planes of different depths");
        planes.data[i] = de265_get_image_plane(image, i, &stride);
        planes.stride[i] = stride;
        planes.width[i] = de265_get_image_width(image, i);
        planes.height[i] = de265_get_image_height(image, i);
    }
    return heif_copy_planes(out, &planes);
}

/* The first warning about missing or wrong pixels, or DE265_OK. */
static de265_error warning(de265_decoder_context *context)
{
    de265_error found;
    while ((found = de265_get_warning(context)) != DE265_OK) {
        if (found != DE265_WARNING_NO_WPP_CANNOT_USE_MULTITHREADING &&
            found != DE265_WARNING_SPS_MISSING_CANNOT_DECODE_SEI)
            break;
    }
    return found;
}

static struct heif_error decode(void *decoder, struct heif_image **out)
{
    const struct de265_image *image = NULL;
    de265_error error = de265_flush_data(decoder);
    int more = 1;
    refused = false;
    while (error == DE265_OK && more && !image) {
        more = 0;
        error = de265_decode(decoder, &more);
        image = error == DE265_OK ? de265_peek_next_picture(decoder) : NULL;
    }
    if (error == DE265_OK)
        error = warning(decoder);
    if (refused)
        return heif_decoder_error(heif_suberror_Security_limit_exceeded,
                                  "a coded picture that is too large");
    if (error == DE265_ERROR_OUT_OF_MEMORY)
        return heif_no_memory("no memory for a picture");
    if (error != DE265_OK)
        return heif_decoder_error(heif_suberror_Unspecified, de265_get_error_text(error));
    if (!image)
        return heif_decoder_error(heif_suberror_End_of_data, "there is no coded picture");
    return copy(out, image);
}

const struct heif_decoder_plugin heif_hevc_decoder = {
    .plugin_api_version = 2,
    .get_plugin_name = name,
    .does_support_format = supports,
    .new_decoder = new_decoder,
    .free_decoder = free_decoder,
    .push_data = push,
    .decode_image = decode,
};
