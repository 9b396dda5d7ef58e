/* tile.h: products of the codes of a few rows on the host; the pairs that they leave in doubt. */
#ifndef CLPIPE_NEIGHBOURS_TILE_H
#define CLPIPE_NEIGHBOURS_TILE_H

#include <stddef.h>
#include <stdint.h>

/* Rows on each side of a tile; those of the second side, the lanes, are stored in panels. */
#define TILE_ROWS  12
#define TILE_LANES 32
/* Partial sums of a distance. */
#define TILE_SUMS 16

/* Facts of the rows on one side, for the test (codes.h); error and reach are rounded up, and square
 * is rounded down, by CODES_SLACK. */
struct tile_side {
    float *scale, *error, *square, *reach;
};

struct tile_ops {
    const char *name;
    uint32_t group;      /* neighbouring columns of a lane that are adjacent in a panel */
    uint32_t code_bytes; /* bytes per code, on both sides */
    int32_t offset;      /* added to the codes in panels */
    /* out[row * TILE_LANES + lane] = start[row] + the product of the codes. rows: TILE_ROWS x
     * stride codes; panel: stride / group x TILE_LANES x group. */
    void (*multiply)(int32_t *out, const void *rows, const void *panel, uint32_t stride,
                     const int32_t *start);
    /* found[row]: a bit for each lane that may be within the row's reach, or have the row within
     * its own. `row` and `lane`: the tile's first indices into `rows` and `lanes`. */
    void (*test)(uint32_t found[TILE_ROWS], const int32_t *products, const struct tile_side *rows,
                 size_t row, const struct tile_side *lanes, size_t lane);
    /* The squared distance of two rows in float32, from TILE_SUMS partial sums or more: within
     * (stride / TILE_SUMS + 16) * 2^-23 relative error, unless numbers leave float32's range. */
    float (*distance)(const float *x, const float *y, uint32_t stride);
};

/* The fastest version for this processor; name: NULL, or a version (tests). NULL: this processor
 * does not support it. */
const struct tile_ops *tile_choose(const char *name);

/* Stores the codes of a row in lane `lane` of its panel. */
void tile_put_lane(const struct tile_ops *ops, void *panel, uint32_t lane, const int8_t *codes,
                   uint32_t stride);
/* Stores them in `row`, for the first side. */
void tile_put_row(const struct tile_ops *ops, void *row, const int8_t *codes, uint32_t stride);

#endif
