/* shrink.h: a smaller picture from rows while they are decoded, or from DCT coefficients.
 *
 *     shrink_begin         sets the size of the rows
 *     shrink_rows          all rows, top to bottom, in any number of calls
 *
 * Pixels are means of rectangles: of whole pixels if the picture is at least twice as large as the
 * smaller one, else with partial weights. If it is at least 8 times as high, rows are skipped and 4
 * to 8 are read for each row. shrink_coefficients uses the lowest frequencies of each block that
 * give at least the requested size; it is the plain C reference of kernels/thumbnail_slot.cl. One
 * thread at a time. */
#ifndef CLPIPE_DECODE_SHRINK_H
#define CLPIPE_DECODE_SHRINK_H

#include "decode/box.h"
#include "decode/reduced.h"

/* Rows, and columns, read for one of the smaller picture: at least this many if there are that
 * many, and fewer than twice as many, so that a sum of rows fits 16 bits: 2 * 4 * 16 * 255. */
#define SHRINK_SAMPLES 4u

/* Zeroed by its owner; its buffers are reused for the next picture. */
struct shrink {
    uint32_t height;              /* of the input rows */
    uint32_t to_width, to_height; /* of the smaller picture */
    uint32_t step_x, step_y;      /* steps between the columns and rows that are read */
    uint32_t columns, lines;      /* numbers of columns and rows that are read */
    uint32_t y;                   /* the next input row */
    uint32_t line;                /* the next row that is read */
    uint32_t to_row;              /* output row being added up */
    uint32_t row_weight;          /* total weight of its sums */
    uint8_t *out;
    uint16_t *sums;                                 /* columns x 3, and BOX_BEHIND */
    size_t sums_room;                               /* bytes */
    struct box_row pending[2 * SHRINK_SAMPLES + 2]; /* rows waiting to be added to the sums */
    unsigned pending_count;
    struct box_columns boxes;
    struct reduced reduced;
};

/* Scales the longer side down to `size` if it is larger; the other side is at least 1. */
void shrink_dimensions(uint32_t *width, uint32_t *height, uint32_t size);

/* The step at which `count` rows are read for `to` output rows, starting in the middle of a
 * step. */
uint32_t shrink_step(uint32_t count, uint32_t to);
uint32_t shrink_lines(uint32_t count, uint32_t step);

/* Starts a picture of width x height that becomes out: to_width x to_height pixels of 3 bytes, and
 * one byte past them. false: no memory. */
bool shrink_begin(struct shrink *shrink, uint32_t width, uint32_t height, uint8_t *out,
                  uint32_t to_width, uint32_t to_height);

/* Adds the next `rows` rows of RGB pixels, `stride` bytes apart. false: no memory. */
bool shrink_rows(struct shrink *shrink, const uint8_t *rgb, size_t stride, uint32_t rows);

/* Whether the last row of the smaller picture has been made. */
bool shrink_is_done(const struct shrink *shrink);

/* Shrinks a whole picture from the tables and blocks of dct.h. false: no memory. */
bool shrink_coefficients(struct shrink *shrink, const void *coefficients,
                         const struct dct_layout *layout, uint8_t *out, uint32_t to_width,
                         uint32_t to_height);

/* Frees the sums; accepts a zeroed struct. */
void shrink_clear(struct shrink *shrink);

#endif
