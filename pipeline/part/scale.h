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
 * scaled as they are stored, and the scaled pixels are written where they are in the upright image.
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

/* Where the pixels of an image of width x height go in the upright one, of packed RGB rows: bytes from
 * its begin to pixel (0, 0), and from there to the next column and row. orientation: EXIF; anything
 * but 2 to 8 is upright. */
struct scale_turn {
    uint32_t first;
    int32_t column, row;
};
struct scale_turn scale_turn(uint32_t width, uint32_t height, uint8_t orientation);

/* The plain C reference: `scaled` is the upright image, packed. The other sizes are as stored; stride
 * in bytes. */
void scale_reference(uint8_t *scaled, uint32_t scaled_width, uint32_t scaled_height,
                     const uint8_t *pixels, size_t stride, uint32_t width, uint32_t height,
                     uint8_t orientation);

/* The same pixels from rows that come one after another. */
struct scaler {
    uint32_t width, height;               /* of the rows to come */
    uint32_t scaled_width, scaled_height; /* of the result, as stored */
    struct scale_turn turn;
    uint32_t next, scaled_next; /* rows: to come, to be written */
    bool deep;                  /* sums need 64 bits */
    void *sums;                 /* of a row's channels, weighted */
    uint32_t *totals;           /* of the channels of a scaled row; behind the sums */
    uint8_t *means;             /* the scaled row */
    uint8_t *pixels;            /* the scaled image, upright, rows packed */
};

/* Bytes of memory that it takes. */
uint64_t scaler_bytes(uint32_t width, uint32_t height, uint32_t side);
/* Begins an image of that size; false: no memory. */
bool scaler_begin(struct scaler *scaler, uint32_t width, uint32_t height, uint32_t side,
                  uint8_t orientation);
/* The next `rows` rows of RGB pixels; behind the last one `pixels` is complete. */
void scaler_rows(struct scaler *scaler, const uint8_t *rgb, size_t stride, uint32_t rows);
/* Accepts a zeroed one. */
void scaler_clear(struct scaler *scaler);

#endif
