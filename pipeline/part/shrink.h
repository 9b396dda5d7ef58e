/* shrink.h: a smaller picture from rows while they are decoded, or from DCT coefficients.
 *
 *     shrink_begin         the size of the rows to come
 *     shrink_rows          all rows, top to bottom, in any number of calls
 *
 * Pixels are means of rectangles of the picture: of whole pixels where it is at least twice as large as
 * the smaller one, else with partial weights. Of one at least 8 times as high only every second, third, ...
 * row is looked at, 4 to 8 for each row. shrink_coefficients takes the lowest frequencies of each block that
 * give at least the wanted size: it is the plain C reference of kernels/thumbnail_slot.cl. One thread at a
 * time. */
#ifndef CLPIPE_PART_SHRINK_H
#define CLPIPE_PART_SHRINK_H

#include "part/box.h"
#include "part/reduced.h"

/* Rows, and columns, that are looked at for one of the smaller picture: at least so many of those that
 * there are, and fewer than twice as many, so that a sum of rows fits 16 bits: 2 * 4 * 16 * 255. */
#define SHRINK_SAMPLES 4u

/* Zeroed by its owner; its memory is used again for the next picture. */
struct shrink {
    uint32_t height;              /* of the rows to come */
    uint32_t to_width, to_height; /* of the smaller picture */
    uint32_t step_x, step_y;      /* every so many columns and rows count */
    uint32_t columns, lines;      /* that count */
    uint32_t y;                   /* the next row */
    uint32_t line;                /* the next one that counts */
    uint32_t to_row;              /* that is being added up */
    uint32_t row_weight;          /* of its sums */
    uint8_t *out;
    uint16_t *sums;                                 /* columns x 3, and BOX_BEHIND */
    size_t sums_room;                               /* bytes */
    struct box_row pending[2 * SHRINK_SAMPLES + 2]; /* rows of the sums, not added yet */
    unsigned pending_count;
    struct box_columns boxes;
    struct reduced reduced;
};

/* The longest side becomes `size` where it is larger; the other side at least 1. */
void shrink_dimensions(uint32_t *width, uint32_t *height, uint32_t size);

/* Every so many of `count` rows count for `to`, from the middle one of them on; how many that are. */
uint32_t shrink_step(uint32_t count, uint32_t to);
uint32_t shrink_lines(uint32_t count, uint32_t step);

/* Begins a picture of width x height that becomes out: to_width x to_height pixels of 3 bytes, and one byte
 * behind them. false: no memory. */
bool shrink_begin(struct shrink *shrink, uint32_t width, uint32_t height, uint8_t *out,
                  uint32_t to_width, uint32_t to_height);

/* The next `rows` rows of RGB pixels, `stride` bytes apart. false: no memory. */
bool shrink_rows(struct shrink *shrink, const uint8_t *rgb, size_t stride, uint32_t rows);

/* Have all rows come? */
bool shrink_is_done(const struct shrink *shrink);

/* All of a picture at once, from tables and blocks of dct.h. false: no memory. */
bool shrink_coefficients(struct shrink *shrink, const void *coefficients,
                         const struct dct_layout *layout, uint8_t *out, uint32_t to_width,
                         uint32_t to_height);

void shrink_clear(struct shrink *shrink);

#endif
