/* box.h: the two sums of a box filter: of rows, then of columns.
 *
 * Weights are sixteenths of a row or column. Sums of rows must stay below 2^15, and those of columns
 * below 2^31. */
#ifndef CLPIPE_PART_BOX_H
#define CLPIPE_PART_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOX_UNIT 16u

/* Where box `box` of `to` boxes over `from` rows or columns ends, in units. From 2 for a box on, boxes
 * consist of whole ones, as those of Pillow's filter do: box_is_whole. */
bool box_is_whole(uint32_t from, uint32_t to);
uint64_t box_end(uint32_t from, uint32_t to, uint32_t box);

/* A row that is to be added: bytes, and a weight up to BOX_UNIT; 1 for whole rows is fastest. */
struct box_row {
    const uint8_t *bytes;
    uint16_t weight;
};

/* sums[i] (+)= the rows' bytes i times their weights, for i < count. */
void box_add_rows(uint16_t *sums, const struct box_row *rows, unsigned row_count, size_t count,
                  bool begin);

/* Which columns each of `to` boxes takes: first[x] and the following, 2 * pairs of them, with
 * weight[2 * pairs * x] and the following, most of them 0 or BOX_UNIT; scale[x] is 1 / their sum. */
struct box_columns {
    uint32_t to, pairs;
    uint32_t least;  /* whole columns of a box, or one more; 0: parts, or too many for 16 bits */
    uint32_t *first; /* to + 1 */
    uint16_t *weight;
    float *scale;
    size_t room; /* bytes of the three, which lie together */
};

/* `from` columns for `to` boxes, 0 < to <= from. false: no memory. */
bool box_place(struct box_columns *columns, uint32_t from, uint32_t to);
void box_clear(struct box_columns *columns);

/* With fewer rows than BOX_UNIT, so many columns fit 16 bits: 16 * 15 * 255. */
#define BOX_WHOLE_MOST 15u

/* Sums of pixels, 3 a column, that box_add_columns reads behind the last column. */
#define BOX_BEHIND 12u

/* One row of pixels: the rounded sum of columns / weights (to less than a level), where `row_weight` is the sum of the weights of
 * the rows. Writes a byte behind the last pixel. */
void box_add_columns(uint8_t *out, const uint16_t *sums, const struct box_columns *columns,
                     uint32_t row_weight);

#endif
