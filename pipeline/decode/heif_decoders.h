/* heif_decoders.h: decoders registered with libheif. Its own decoders return uninitialised memory
 * where data is missing, leak on invalid data, and start threads. These are always strict. */
#ifndef CLPIPE_DECODE_HEIF_DECODERS_H
#define CLPIPE_DECODE_HEIF_DECODERS_H

#include <stdint.h>

#include <libheif/heif.h>
#include <libheif/heif_plugin.h>

extern const struct heif_decoder_plugin heif_hevc_decoder, heif_av1_decoder;

/* The most pixels of a coded picture, whose size may differ from the container's. Set per thread,
 * as decoding runs on the calling thread. */
extern _Thread_local uint64_t heif_most_pixels;

/* If not NULL, a decoder stores the size of the first coded picture here and fails. */
struct heif_size {
    int width, height;
};
extern _Thread_local struct heif_size *heif_probe;

/* Range of grey pictures: 1 full, 0 limited, -1 as coded. */
extern _Thread_local int heif_grey_range;

/* A decoded picture: grey in one plane, or Y, Cb and Cr. */
struct heif_planes {
    unsigned layout; /* 0 grey, 1 4:2:0, 2 4:2:2, 3 4:4:4 */
    int bits;
    int width[3], height[3];
    const uint8_t *data[3]; /* above 8 bits: 16-bit samples in host byte order */
    int64_t stride[3];      /* bytes */
    int primaries, transfer, matrix, full_range;
};

/* Copies it for libheif. Grey is widened to full range, which libheif 1.15 does not do. */
struct heif_error heif_copy_planes(struct heif_image **out, const struct heif_planes *planes);

/* text: static; NULL for success. */
struct heif_error heif_decoder_error(enum heif_suberror_code code, const char *text);
struct heif_error heif_no_memory(const char *text);

#endif
