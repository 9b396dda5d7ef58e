/* heif_av1.c: AV1 for libheif, through dav1d on the calling thread. */
#include "decode/heif_decoders.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <dav1d/dav1d.h>

struct av1 {
    Dav1dContext *context;
    uint8_t *data;
    size_t size;
};

static const char *name(void)
{
    return "AV1 through dav1d";
}

static int supports(enum heif_compression_format format)
{
    return format == heif_compression_AV1 ? 1000 : 0; /* preferred over any other */
}

static void free_decoder(void *decoder)
{
    struct av1 *av1 = decoder;
    if (av1->context)
        dav1d_close(&av1->context);
    free(av1->data);
    free(av1);
}

static struct heif_error new_decoder(void **out)
{
    struct av1 *av1 = *out = calloc(1, sizeof *av1);
    if (!av1)
        return heif_no_memory("no memory for dav1d");
    Dav1dSettings settings;
    dav1d_default_settings(&settings);
    settings.n_threads = 1;
    settings.max_frame_delay = 1;
    settings.all_layers = 0;
    settings.frame_size_limit = heif_most_pixels < UINT_MAX ? (unsigned)heif_most_pixels : UINT_MAX;
    settings.logger.callback = NULL;
    if (dav1d_open(&av1->context, &settings) == 0)
        return heif_decoder_error(heif_suberror_Unspecified, NULL);
    free_decoder(av1);
    *out = NULL;
    return heif_no_memory("no memory for dav1d");
}

static struct heif_error push(void *decoder, const void *data, size_t size)
{
    struct av1 *av1 = decoder;
    uint8_t *grown = size < SIZE_MAX - av1->size ? realloc(av1->data, av1->size + size + 1) : NULL;
    if (!grown)
        return heif_no_memory("no memory for the data");
    if (size > 0)
        memcpy(grown + av1->size, data, size);
    av1->data = grown;
    av1->size += size;
    return heif_decoder_error(heif_suberror_Unspecified, NULL);
}

static struct heif_error copy(struct heif_image **out, const Dav1dPicture *picture)
{
    struct heif_planes planes = {
        .layout = picture->p.layout,
        .bits = picture->p.bpc,
        .primaries = (int)picture->seq_hdr->pri,
        .transfer = (int)picture->seq_hdr->trc,
        .matrix = (int)picture->seq_hdr->mtrx,
        .full_range = picture->seq_hdr->color_range,
    };
    for (int i = 0; i < 3; i++) {
        int across = i > 0 && picture->p.layout != DAV1D_PIXEL_LAYOUT_I444;
        int down = i > 0 && picture->p.layout == DAV1D_PIXEL_LAYOUT_I420;
        planes.data[i] = picture->data[i];
        planes.stride[i] = picture->stride[i > 0];
        planes.width[i] = (picture->p.w + across) >> across;
        planes.height[i] = (picture->p.h + down) >> down;
    }
    return heif_copy_planes(out, &planes);
}

static void keep(const uint8_t *data, void *user)
{
    (void)data;
    (void)user;
}

/* Decodes the first picture; all data is already there. */
static int first_picture(struct av1 *av1, Dav1dPicture *picture)
{
    Dav1dData data = {0};
    if (av1->size == 0)
        return DAV1D_ERR(EAGAIN);
    int result = dav1d_data_wrap(&data, av1->data, av1->size, keep, NULL);
    while (result == 0) {
        result = data.sz > 0 ? dav1d_send_data(av1->context, &data) : 0;
        if (result == 0 || result == DAV1D_ERR(EAGAIN)) {
            size_t left = data.sz;
            result = dav1d_get_picture(av1->context, picture);
            if (result == 0)
                break;
            if (result == DAV1D_ERR(EAGAIN) && left > 0)
                result = 0;
        }
    }
    if (result == DAV1D_ERR(EAGAIN)) /* no more data: return delayed pictures */
        result = dav1d_get_picture(av1->context, picture);
    dav1d_data_unref(&data);
    return result;
}

static struct heif_error decode(void *decoder, struct heif_image **out)
{
    Dav1dPicture picture = {0};
    Dav1dSequenceHeader header;
    const struct av1 *av1 = decoder;
    if (heif_probe) {
        if (av1->size > 0 && dav1d_parse_sequence_header(&header, av1->data, av1->size) == 0)
            *heif_probe = (struct heif_size){header.max_width, header.max_height};
        return heif_decoder_error(heif_suberror_Unspecified, "only its size was asked for");
    }
    int result = first_picture(decoder, &picture);
    if (result == DAV1D_ERR(EAGAIN))
        return heif_decoder_error(heif_suberror_End_of_data, "there is no coded picture");
    if (result == DAV1D_ERR(ERANGE))
        return heif_decoder_error(heif_suberror_Security_limit_exceeded,
                                  "a coded picture that is too large");
    if (result != 0)
        return heif_decoder_error(heif_suberror_Unspecified, "broken data");
    struct heif_error error = copy(out, &picture);
    dav1d_picture_unref(&picture);
    return error;
}

const struct heif_decoder_plugin heif_av1_decoder = {
    .plugin_api_version = 2,
    .get_plugin_name = name,
    .does_support_format = supports,
    .new_decoder = new_decoder,
    .free_decoder = free_decoder,
    .push_data = push,
    .decode_image = decode,
};
