/* part.h: a part of a picture on its way from the decoder through the device: what it is, and how
 * it lies in memory.
 *
 * A picture comes as one part or as several: strips of rows, or pieces of rows that are too long.
 * All coordinates are stored ones, before the orientation is applied.
 */
#ifndef CLPIPE_PART_PART_H
#define CLPIPE_PART_PART_H

#include "part/dct.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum payload {
    PAYLOAD_RGB,    /* rows of 3 bytes a pixel */
    PAYLOAD_DCT,    /* all coefficients of a JPEG picture: dct.h */
    PAYLOAD_VALUES, /* 4-byte words of the picture's row of values */
};

/* A half-open rectangle of stored pixels. */
struct cell_rect {
    uint32_t x0, y0, x1, y1;
};

struct part_shape {
    enum payload payload;
    uint8_t orientation;    /* EXIF */
    uint32_t width, height; /* of the whole picture */
    struct cell_rect rect;  /* the part's pixels */
    uint32_t overlap; /* columns at the right and rows at the bottom that the next part has, too,
                             * except at the picture's edges */
    uint32_t stride;  /* RGB: bytes from row to row */
    uint64_t bytes;
    struct dct_layout dct; /* DCT only */
};

/* Makes it packed rows of RGB of its rect. */
void part_set_rgb(struct part_shape *shape);

/* Is it all of the picture? */
bool part_is_whole(const struct part_shape *shape);

/* The pixels that no other part has: the overlap belongs to the next one. */
struct cell_rect part_own(const struct part_shape *shape);

/* Takes `border` columns and rows off, as an operator on (border + 1)^2 neighbours does: pixel
 * (x, y) of the result comes from those at (x..x+border, y..y+border). Bytes and stride stay. */
void part_shrink(struct part_shape *shape, uint32_t border);

#endif
