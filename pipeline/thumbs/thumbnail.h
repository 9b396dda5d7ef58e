/* thumbnail.h: makes a thumbnail from the rows of a picture while they are decoded.
 *
 *     thumbnail_begin         the size of the rows to come
 *     thumbnail_rows          all rows, top to bottom as stored, in any number of calls;
 *     thumbnail_coefficients  or instead of them all DCT coefficients
 *     thumbnail_decode        or begin and all rows, from a decoder
 *     thumbnail_finish        the thumbnail as a JPEG file
 *     thumbnail_encode        or the pixels themselves, where a device has made them
 *
 * The pixels are those of part/shrink.h. A picture is never enlarged.
 * One thread per maker. Without memory there is no thumbnail: that is no error. */
#ifndef CLPIPE_THUMBS_THUMBNAIL_H
#define CLPIPE_THUMBS_THUMBNAIL_H

#include "decode/decode.h"
#include "part/dct.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The range of sizes, pixels of the longest side. */
#define THUMBNAIL_LEAST 16u
#define THUMBNAIL_MOST  1024u
/* Of libjpeg, with 4:2:0 subsampling, but for those whose shorter side has at most so many pixels: their
 * colours would be those of the pixels beside them. */
#define THUMBNAIL_QUALITY 80
#define THUMBNAIL_FINE    32u
/* About so many bytes of rows are decoded at a time; at least one row. */
#define THUMBNAIL_STRIP (256u << 10)

/* A size that suits so many images on one page: 160 up to 10,000, 64 from 100,000, else 96. */
uint32_t thumbnail_suitable_size(uint64_t images);

struct thumbnail_maker;

/* NULL without memory. */
struct thumbnail_maker *thumbnail_maker_new(uint32_t size);
/* Accepts NULL. */
void thumbnail_maker_free(struct thumbnail_maker *maker);
/* From now on none has subsampling. */
void thumbnail_maker_fine(struct thumbnail_maker *maker);

/* Begins a picture of rows of that size; one under way is forgotten. orientation: EXIF 1 to 8, which
 * the thumbnail has applied. All functions accept a maker that is NULL and then make nothing. */
void thumbnail_begin(struct thumbnail_maker *maker, uint32_t width, uint32_t height,
                     uint8_t orientation);

/* The next `rows` rows of RGB pixels, `stride` bytes apart. */
void thumbnail_rows(struct thumbnail_maker *maker, const uint8_t *rgb, size_t stride,
                    uint32_t rows);

/* All of the picture, as decode_coefficients gives it. */
void thumbnail_coefficients(struct thumbnail_maker *maker, const void *coefficients,
                            const struct dct_layout *layout);

/* Decodes all of a picture whose header has been read, to its end; false: that failed, or `stop` (may be
 * NULL) is overdue, and decode_abort is the caller's to call. */
bool thumbnail_decode(struct thumbnail_maker *maker, struct decode *decode,
                      const struct image_info *info, struct stop *stop);

/* After the last row: a JPEG file, which is the caller's to free(); NULL: there is none. */
uint8_t *thumbnail_finish(struct thumbnail_maker *maker, uint32_t *bytes);

/* A thumbnail of pixels that were made already, width x height as stored, at most the maker's size; as
 * thumbnail_finish. */
uint8_t *thumbnail_encode(struct thumbnail_maker *maker, uint32_t *bytes, const uint8_t *pixels,
                          uint32_t width, uint32_t height, uint8_t orientation);

#endif
