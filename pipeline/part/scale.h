/* scale.h: a box filter that shrinks images, in integer arithmetic: its definition, its plain C
 * reference, and the filter by which the host scales an image while it is decoded.
 *
 * The longer side of the image becomes `side` pixels, the shorter one keeps the proportion, rounded
 * to the nearest, at least 1. An image that is not larger is unchanged. For w x h pixels from W x
 * H, channel c of pixel (x, y) is
 *
 *     (sum over i, j of a(x, i) b(y, j) p_c(i, j)  +  floor(W H / 2)) / (W H), rounded down, where
 *     a(x, i) = max(0, min((i + 1) w, (x + 1) W) - max(i w, x W)), b(y, j) likewise of h and H:
 *
 * the mean over the area of the pixel, rounded to the nearest, halves up. The weights are
 * symmetric, so rotating or mirroring before or after scaling gives the same pixels: images are
 * scaled as they are stored.
 */
#ifndef CLPIPE_PART_SCALE_H
#define CLPIPE_PART_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCALE_SIDE_MAX 65535u /* of scale_size and scale_reference; of a feature: feature.h */

/* The size of the scaled image. */
void scale_size(uint32_t *scaled_width, uint32_t *scaled_height, uint32_t width, uint32_t height,
                uint32_t side);

/* The plain C reference; strides in bytes. */
void scale_reference(uint8_t *scaled, size_t scaled_stride, uint32_t scaled_width,
                     uint32_t scaled_height, const uint8_t *pixels, size_t stride, uint32_t width,
                     uint32_t height);

/* The same pixels from rows that come one after another. */
struct scaler {
    uint32_t width, height;               /* of the rows to come */
    uint32_t scaled_width, scaled_height; /* of the result */
    uint32_t next, scaled_next;           /* rows: to come, to be written */
    bool deep;                            /* sums need 64 bits */
    void *sums;                           /* of a row's channels, weighted */
    uint8_t *pixels;                      /* the scaled image, rows packed */
};

/* Bytes of memory that it takes. */
uint64_t scaler_bytes(uint32_t width, uint32_t height, uint32_t side);
/* Begins an image of that size; false: no memory. */
bool scaler_begin(struct scaler *scaler, uint32_t width, uint32_t height, uint32_t side);
/* The next `rows` rows of RGB pixels; behind the last one `pixels` is complete. */
void scaler_rows(struct scaler *scaler, const uint8_t *rgb, size_t stride, uint32_t rows);
/* Accepts a zeroed one. */
void scaler_clear(struct scaler *scaler);

#endif
