/* tile.h: products of the codes of a few rows, on the host, and which pairs they leave in doubt. */
#ifndef CLPIPE_SEARCH_TILE_H
#define CLPIPE_SEARCH_TILE_H

#include <stddef.h>
#include <stdint.h>

/* Rows on one side of a tile, and on the other, whose codes lie in panels. */
#define TILE_ROWS  12
#define TILE_LANES 32
/* Partial sums of a distance. */
#define TILE_SUMS 16

/* Of rows on either side: what a test needs (codes.h); error and reach are longer, square is less by
 * CODES_SLACK than they are. */
struct tile_side {
    float *scale, *error, *square, *reach;
};

struct tile_ops {
    const char *name;
    uint32_t group;      /* neighbouring columns of a lane that lie together in a panel */
    uint32_t code_bytes; /* of a code, on both sides */
    int32_t offset;      /* added to the codes in panels */
    /* out[row * TILE_LANES + lane] = start[row] + the product of codes. rows: TILE_ROWS x stride codes;
     * panel: stride / group x TILE_LANES x group. */
    void (*multiply)(int32_t *out, const void *rows, const void *panel, uint32_t stride,
                     const int32_t *start);
    /* found[row]: a bit for each lane that may be within the row's reach, or have the row in its
     * own. `row` and `lane`: the first ones of the tile in `rows` and `lanes`. */
    void (*test)(uint32_t found[TILE_ROWS], const int32_t *products, const struct tile_side *rows,
                 size_t row, const struct tile_side *lanes, size_t lane);
    /* The squared distance of two rows in float32, by TILE_SUMS partial sums or more: within
     * (stride / TILE_SUMS + 16) * 2^-23 of it, relatively, unless numbers leave float32's range. */
    float (*distance)(const float *x, const float *y, uint32_t stride);
};

/* The fastest that this processor can run; name: NULL, or which one (tests). NULL: not here. */
const struct tile_ops *tile_choose(const char *name);

/* Puts the codes of a row into lane `lane` of its panel. */
void tile_put_lane(const struct tile_ops *ops, void *panel, uint32_t lane, const int8_t *codes,
                   uint32_t stride);
/* And into `row` as it lies on the other side. */
void tile_put_row(const struct tile_ops *ops, void *row, const int8_t *codes, uint32_t stride);

#endif
