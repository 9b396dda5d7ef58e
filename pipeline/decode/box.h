/* box.h: the two sums of a box filter: of rows, then of columns.
 *
 * Weights are sixteenths of a row or column. Sums over rows must be below 2^15, sums over columns
 * below 2^31. */
#ifndef CLPIPE_DECODE_BOX_H
#define CLPIPE_DECODE_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOX_UNIT 16u

/* The end of box `box` of `to` boxes over `from` rows or columns, in units. Boxes of at least 2
 * rows or columns consist of whole ones, as in Pillow's filter: box_is_whole. */
bool box_is_whole(uint32_t from, uint32_t to);
uint64_t box_end(uint32_t from, uint32_t to, uint32_t box);

/* A row to add: bytes, and a weight up to BOX_UNIT; 1 for whole rows is fastest. */
struct box_row {
    const uint8_t *bytes;
    uint16_t weight;
};

/* sums[i] (+)= sum over the rows of bytes[i] * weight, for i < count. */
void box_add_rows(uint16_t *sums, const struct box_row *rows, unsigned row_count, size_t count,
                  bool begin);

/* Columns of each of `to` boxes: box x has the 2 * pairs columns from first[x] on with the weights
 * from weight[2 * pairs * x] on, most of which are 0 or BOX_UNIT; scale[x] is 1 / their sum. */
struct box_columns {
    uint32_t to, pairs;
    uint32_t least;  /* whole columns of a box, or one more; 0: partial ones, or over 16 bits */
    uint32_t *first; /* to + 1 */
    uint16_t *weight;
    float *scale;
    size_t room; /* bytes of the three arrays, one allocation */
};

/* Computes the boxes for `from` columns, 0 < to <= from. false: no memory. */
bool box_place(struct box_columns *columns, uint32_t from, uint32_t to);
void box_clear(struct box_columns *columns);

/* The most whole columns of a box whose sums over fewer than BOX_UNIT rows fit 16 bits: 16 * 15 *
 * 255. */
#define BOX_WHOLE_MOST 15u

/* Sums (3 a column) that box_add_columns may read past the last column. */
#define BOX_BEHIND 12u

/* Writes one row of pixels: the rounded quotients of sums and weights (error below one level);
 * `row_weight` is the sum of the rows' weights. Writes one byte past the last pixel. */
void box_add_columns(uint8_t *out, const uint16_t *sums, const struct box_columns *columns,
                     uint32_t row_weight);

#endif
