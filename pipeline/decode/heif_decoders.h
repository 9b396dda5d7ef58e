/* heif_decoders.h: the decoders that libheif gets from us, because those it brings along keep what
 * was in memory before where data are missing, leak where they are wrong, and start threads. */
#ifndef CLPIPE_DECODE_HEIF_DECODERS_H
#define CLPIPE_DECODE_HEIF_DECODERS_H

#include <stdint.h>

#include <libheif/heif.h>
#include <libheif/heif_plugin.h>

extern const struct heif_decoder_plugin heif_hevc_decoder, heif_av1_decoder;

/* More pixels than that in one coded picture are refused: what the container declares says nothing
 * about them. Of the calling thread, which is the one that decodes. */
extern _Thread_local uint64_t heif_most_pixels;

/* Where it is not NULL a decoder notes the size of the first coded picture here, and fails. */
struct heif_size {
    int width, height;
};
extern _Thread_local struct heif_size *heif_probe;

/* Whether grey pictures are of full range: 1, 0, or -1: as they say themselves. */
extern _Thread_local int heif_grey_range;

/* A decoded picture: grey in one plane, or Y, Cb and Cr. */
struct heif_planes {
    enum heif_chroma chroma; /* monochrome, 420, 422, 444 */
    int bits;
    int width[3], height[3];
    const uint8_t *data[3]; /* samples of more than 8 bits are 16 in the host's order */
    int64_t stride[3];      /* bytes */
    int primaries, transfer, matrix, full_range;
};

/* A copy of it for libheif; grey of limited range, which libheif 1.15 takes as it is, becomes full. */
struct heif_error heif_copy_planes(struct heif_image **out, const struct heif_planes *planes);

/* text: of static storage, NULL for success. */
struct heif_error heif_decoder_error(enum heif_suberror_code code, const char *text);
struct heif_error heif_no_memory(const char *text);

/* set_strict_decoding for decoders that always are. */
void heif_ignore_strict(void *decoder, int flag);

#endif
