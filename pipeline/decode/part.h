/* part.h: a part of an image between decoder and device: its payload, and its layout in memory.
 *
 * An image has one or more parts: strips of rows, or segments of a row that is too long. All
 * coordinates are stored ones, before the orientation is applied. */
#ifndef CLPIPE_DECODE_PART_H
#define CLPIPE_DECODE_PART_H

#include "decode/dct.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum payload {
    PAYLOAD_RGB,         /* rows of 3 bytes per pixel */
    PAYLOAD_STREAM,      /* the entropy code of a JPEG image: stream.h */
    PAYLOAD_DCT,         /* all coefficients of a JPEG image: dct.h */
    PAYLOAD_DESCRIPTORS, /* rows of `stride` bytes, each a local descriptor */
    PAYLOAD_VALUES,      /* 4-byte words of the image's feature row */
};

/* A half-open rectangle of stored pixels. */
struct cell_rect {
    uint32_t x0, y0, x1, y1;
};

/* Where a rectangle of the upright image is in the stored one, of width x height pixels with this
 * EXIF orientation, 1 to 8. */
static inline struct cell_rect cell_rect_stored(struct cell_rect upright, uint32_t width,
                                                uint32_t height, uint8_t orientation)
{
    struct cell_rect rect = upright;
    if (orientation >= 5)
        rect = (struct cell_rect){upright.y0, upright.x0, upright.y1, upright.x1};
    if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        rect = (struct cell_rect){width - rect.x1, rect.y0, width - rect.x0, rect.y1};
    if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        rect = (struct cell_rect){rect.x0, height - rect.y1, rect.x1, height - rect.y0};
    return rect;
}

struct part_shape {
    enum payload payload;
    uint8_t orientation;    /* EXIF */
    uint32_t width, height; /* of the whole image */
    struct cell_rect rect;  /* the part's pixels */
    uint32_t overlap; /* columns and rows shared with the next part, except at the image's edges */
    uint64_t scaled;  /* 0: pixels as decoded; else a whole image that the host has scaled to this
                      * goal (scale.h) for the one step that scales to it */
    uint32_t stride;  /* RGB: bytes from one row to the next */
    uint64_t bytes;   /* STREAM: upper bound */
    struct dct_layout dct; /* DCT and STREAM: layout of the coefficients */
};

/* Sets payload, stride and bytes for packed RGB rows of the part's rect. */
void part_set_rgb(struct part_shape *shape);

/* Whether the part is all of its picture. */
bool part_is_whole(const struct part_shape *shape);

/* The pixels that only this part counts: the overlap belongs to the next part. Empty if the host
 * has scaled the part for a step that has not run yet. */
struct cell_rect part_own(const struct part_shape *shape);

/* Removes `border` columns and rows after an operator on (border + 1)^2 neighbours: pixel (x, y) of
 * the result is computed from (x..x+border, y..y+border). Bytes and stride do not change. */
void part_shrink(struct part_shape *shape, uint32_t border);

#endif
