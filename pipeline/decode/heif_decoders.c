/* heif_decoders.c: shared code of the libheif decoders. */
#include "decode/heif_decoders.h"

#include <string.h>

_Thread_local uint64_t heif_most_pixels = UINT64_MAX;
_Thread_local struct heif_size *heif_probe;
_Thread_local int heif_grey_range = -1;

struct heif_error heif_decoder_error(enum heif_suberror_code code, const char *text)
{
    if (!text)
        return (struct heif_error){heif_error_Ok, heif_suberror_Unspecified, "Success"};
    return (struct heif_error){heif_error_Decoder_plugin_error, code, text};
}

struct heif_error heif_no_memory(const char *text)
{
    return (struct heif_error){heif_error_Memory_allocation_error, heif_suberror_Unspecified, text};
}

/* libheif converts Y, Cb, Cr to RGB; it needs their colour description. */
static void set_colours(struct heif_image *image, const struct heif_planes *planes)
{
    struct heif_color_profile_nclx *profile = heif_nclx_color_profile_alloc();
    if (!profile)
        return;
    heif_nclx_color_profile_set_color_primaries(profile, (uint16_t)planes->primaries);
    heif_nclx_color_profile_set_transfer_characteristics(profile, (uint16_t)planes->transfer);
    heif_nclx_color_profile_set_matrix_coefficients(profile, (uint16_t)planes->matrix);
    profile->full_range_flag = planes->full_range != 0 || planes->layout == 0;
    heif_image_set_nclx_color_profile(image, profile);
    heif_nclx_color_profile_free(profile);
}

/* Widens 16 to 235 (of 8 bits; likewise of more) to the full range. */
static void widen(uint8_t *row, int width, int bits)
{
    const int most = (1 << bits) - 1, black = 16 << (bits - 8), span = 219 << (bits - 8);
    for (int x = 0; x < width; x++) {
        uint16_t *deep = (uint16_t *)(void *)row + x;
        const int value = ((bits > 8 ? *deep : row[x]) - black) * most;
        const int wide = value <= 0 ? 0 : value >= span * most ? most : (value + span / 2) / span;
        if (bits > 8)
            *deep = (uint16_t)wide;
        else
            row[x] = (uint8_t)wide;
    }
}

struct heif_error heif_copy_planes(struct heif_image **out, const struct heif_planes *planes)
{
    static const enum heif_channel channels[] = {heif_channel_Y, heif_channel_Cb, heif_channel_Cr};
    static const enum heif_chroma chroma[] = {heif_chroma_monochrome, heif_chroma_420,
                                              heif_chroma_422, heif_chroma_444};
    int grey = planes->layout == 0;
    const int full = grey && heif_grey_range >= 0 ? heif_grey_range : planes->full_range;
    struct heif_image *image = NULL;
    struct heif_error error = heif_image_create(
        planes->width[0], planes->height[0],
        grey ? heif_colorspace_monochrome : heif_colorspace_YCbCr, chroma[planes->layout], &image);
    for (int i = 0; i < (grey ? 1 : 3) && error.code == heif_error_Ok; i++) {
        int stride = 0;
        error = heif_image_add_plane(image, channels[i], planes->width[i], planes->height[i],
                                     planes->bits);
        uint8_t *to =
            error.code == heif_error_Ok ? heif_image_get_plane(image, channels[i], &stride) : NULL;
        size_t row = (size_t)planes->width[i] * (planes->bits > 8 ? 2 : 1);
        for (int y = 0; to && y < planes->height[i]; y++, to += stride) {
            memcpy(to, planes->data[i] + y * planes->stride[i], row);
            if (grey && !full)
                widen(to, planes->width[i], planes->bits);
        }
        if (!to && error.code == heif_error_Ok)
            error = heif_no_memory("no memory for a picture");
    }
    if (error.code == heif_error_Ok)
        set_colours(image, planes);
    else if (image)
        heif_image_release(image);
    *out = error.code == heif_error_Ok ? image : NULL;
    return error;
}
