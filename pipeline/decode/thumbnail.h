/* thumbnail.h: makes a thumbnail from the rows of a picture while they are decoded.
 *
 *     thumbnail_begin         sets the size of the rows
 *     thumbnail_rows          all rows, top to bottom as stored, in any number of calls;
 *     thumbnail_coefficients  or all DCT coefficients instead
 *     thumbnail_decode        or both of the above from a decoder
 *     thumbnail_finish        the thumbnail as a JPEG file
 *     thumbnail_encode        encodes pixels computed by a device instead
 *
 * The pixels are those of decode/shrink.h. A picture is never enlarged. One thread per maker. A
 * lack of memory is not an error: then there is no thumbnail. */
#ifndef CLPIPE_DECODE_THUMBNAIL_H
#define CLPIPE_DECODE_THUMBNAIL_H

#include "decode/dct.h"
#include "decode/decode.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The range of sizes, longest side in pixels. */
#define THUMBNAIL_LEAST 16u
#define THUMBNAIL_MOST  1024u
/* libjpeg quality, with 4:2:0 subsampling, except if the shorter side has at most THUMBNAIL_FINE
 * pixels, whose colours would be blurred. */
#define THUMBNAIL_QUALITY 80
#define THUMBNAIL_FINE    32u
/* Bytes of rows decoded at a time; at least one row. */
#define THUMBNAIL_STRIP (256u << 10)

/* The default size for a page with this many images: 160 up to 10,000, 64 from 100,000, else 96. */
uint32_t thumbnail_suitable_size(uint64_t images);

struct thumbnail_maker;

/* fine: never subsamples. NULL: no memory. */
struct thumbnail_maker *thumbnail_maker_new(uint32_t size, bool fine);
/* Accepts NULL. */
void thumbnail_maker_free(struct thumbnail_maker *maker);

/* Starts a picture with rows of that size, dropping an unfinished one. orientation: EXIF 1 to 8,
 * applied to the thumbnail. All functions accept a NULL maker and do nothing. */
void thumbnail_begin(struct thumbnail_maker *maker, uint32_t width, uint32_t height,
                     uint8_t orientation);

/* Adds the next `rows` rows of RGB pixels, `stride` bytes apart. */
void thumbnail_rows(struct thumbnail_maker *maker, const uint8_t *rgb, size_t stride,
                    uint32_t rows);

/* Processes the whole picture from the result of decode_coefficients. */
void thumbnail_coefficients(struct thumbnail_maker *maker, const void *coefficients,
                            const struct dct_layout *layout);

/* Decodes a whole picture once its header is read; false: failed, or `stop` (may be NULL) is
 * overdue, and the caller must call decode_abort. */
bool thumbnail_decode(struct thumbnail_maker *maker, struct decode *decode,
                      const struct image_info *info, struct stop *stop);

/* After the last row: returns a JPEG file to be freed by the caller; NULL: none. */
uint8_t *thumbnail_finish(struct thumbnail_maker *maker, uint32_t *bytes);

/* Encodes existing pixels, width x height in stored orientation, at most the maker's size; returns
 * like thumbnail_finish. */
uint8_t *thumbnail_encode(struct thumbnail_maker *maker, uint32_t *bytes, const uint8_t *pixels,
                          uint32_t width, uint32_t height, uint8_t orientation);

#endif
