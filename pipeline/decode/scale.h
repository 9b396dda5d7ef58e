/* scale.h: scaling of images in integer arithmetic: its definition, its plain C reference, and the
 * filter with which the host scales an image while it is decoded.
 *
 * Scaling to a side: the longer side of the image becomes `side` pixels, the shorter one keeps the
 * proportion, rounded to the nearest, at least 1; an image that is not larger is unchanged. Scaling
 * to a size: exactly w x h pixels, either of the whole image, or of its middle (scale_window).
 *
 * For w x h pixels from W x H, channel c of pixel (x, y) is
 *
 *     (sum over i, j of a(x, i) b(y, j) p_c(i, j)  +  floor(A B / 2)) / (A B), rounded down, where
 *     w <= W:  a(x, i) = max(0, min((i + 1) w, (x + 1) W) - max(i w, x W)),   A = W
 *     w > W:   a(x, i) = max(0, 2 w - |c - 2 w i|), c = (2 x + 1) W - w,      A = 2 w
 *              with c limited to 0 .. 2 w (W - 1)
 *
 * and b(y, j) and B likewise for h and H: the mean over the area of the pixel where an axis
 * shrinks, linear interpolation between the centres of pixels where it grows, rounded to the
 * nearest, halves up. The weights are symmetric, so rotating or mirroring before or after scaling
 * gives the same pixels: images are scaled as they are stored, and the scaled pixels are written
 * where they are in the upright image. */
#ifndef CLPIPE_DECODE_SCALE_H
#define CLPIPE_DECODE_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCALE_SIDE_MAX 65535u     /* of a feature: feature.h */
#define SCALE_FULL_MAX (1u << 30) /* of the whole image if only its middle is kept */

/* What images are scaled to, as one number: a side, or the result of scale_to. */
typedef uint64_t scale_goal;

/* Exactly width x height upright pixels, 1 to 8192. crop 0: scales the whole image and changes its
 * proportions; 500 to 1000: scales the middle, which has crop / 1000 of the side that limits it. */
static inline scale_goal scale_to(uint32_t width, uint32_t height, uint32_t crop)
{
    return (scale_goal)1 << 63 | (scale_goal)crop << 32 | width << 16 | height;
}

/* The most pixels of a scaled image. */
uint64_t scale_most(scale_goal goal);

/* The scaled image, and the window of it that is kept, as stored. */
struct scale_window {
    uint32_t full_width, full_height; /* of the scaled image */
    uint32_t left, top;               /* of the window */
    uint32_t width, height;
};

/* With a crop the scaled image has round(w / crop) columns or round(h / crop) rows, whichever keeps
 * more of the image; the other side keeps the proportion, rounded to the nearest. Sides are at most
 * SCALE_FULL_MAX, and one longer where the window could not be centred otherwise. */
struct scale_window scale_window(uint32_t width, uint32_t height, uint8_t orientation,
                                 scale_goal goal);

/* Where the pixels of a width x height image belong in the upright one (packed RGB rows): byte
 * offset of pixel (0, 0), and the steps to the next column and row. orientation: EXIF; anything but
 * 2 to 8 is upright. */
struct scale_turn {
    uint32_t first;
    int32_t column, row;
};
struct scale_turn scale_turn(uint32_t width, uint32_t height, uint8_t orientation);

/* The plain C reference: `scaled` is the upright image, packed, of the window's size. Sizes are as
 * stored; stride in bytes. */
void scale_reference(uint8_t *scaled, const struct scale_window *window, const uint8_t *pixels,
                     size_t stride, uint32_t width, uint32_t height, uint8_t orientation);

/* Computes the same pixels from rows in order. */
struct scaler {
    uint32_t width, height;     /* of the rows to come */
    struct scale_window window; /* the result is the window */
    uint8_t orientation;
    struct scale_turn turn;
    uint32_t next, scaled_next; /* next input row; next row of the scaled image */
    uint8_t *rows;              /* NULL, or all rows, stored in `sums`, if an axis grows */
    bool deep;                  /* sums need 64 bits */
    void *sums;                 /* weighted sums of a row's channels */
    uint32_t *totals;           /* of the channels of a scaled row; after the sums */
    uint8_t *means;             /* the scaled row */
    uint8_t *pixels;            /* the scaled image, upright, rows packed */
};

/* Bytes that a scaler allocates. */
uint64_t scaler_bytes(uint32_t width, uint32_t height, uint8_t orientation, scale_goal goal);
/* Starts an image of that size; false: no memory. */
bool scaler_begin(struct scaler *scaler, uint32_t width, uint32_t height, uint8_t orientation,
                  scale_goal goal);
/* Adds the next `rows` rows of RGB pixels; after the last one `pixels` is complete. */
void scaler_rows(struct scaler *scaler, const uint8_t *rgb, size_t stride, uint32_t rows);
/* Accepts a zeroed struct. */
void scaler_clear(struct scaler *scaler);

#endif
