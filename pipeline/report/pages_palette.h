/* pages_palette.h: the few colours of a cluster's swatch. */
#ifndef CLPIPE_REPORT_PAGES_PALETTE_H
#define CLPIPE_REPORT_PAGES_PALETTE_H

#include "decode/decode.h"
#include "result/result.h"
#include <stddef.h>
#include <stdint.h>

#define PALETTE_COLOURS 6

struct palette {
    unsigned count;
    struct {
        uint8_t rgb[3];
        float share;           /* of the weight; they sum to 1 */
    } colour[PALETTE_COLOURS]; /* the largest share first */
};

/* Weights of colours on a grid of 16 x 16 x 16, with the sums of their values. Zero it first. */
#define PALETTE_AXIS  16
#define PALETTE_CELLS (PALETTE_AXIS * PALETTE_AXIS * PALETTE_AXIS)
struct palette_cells {
    double weight[PALETTE_CELLS], sum[PALETTE_CELLS][3];
};

void palette_add(struct palette_cells *cells, double r, double g, double b, double weight);

/* k-means over the cells, starting from the heaviest and then those farthest from the previous
 * ones, by weight; leaves out colours with less than 2 % of the weight. Without any weight there
 * are no colours. */
void palette_find(struct palette *out, const struct palette_cells *cells);

/* Adds the colours of a centroid, the mean histogram of its rows. False if the feature is not a
 * joint colour histogram (rgb or hsv with three bin counts). `metric` is the space of the
 * centroid. */
bool palette_add_centroid(struct palette_cells *cells, const struct result_feature *feature,
                          const char *metric, const float *centroid, uint32_t dimension);

/* Adds the pixels of a JPEG file with a total weight of 1; of a damaged one those before the damage.
 * The decoder scales them down. */
void palette_add_jpeg(struct palette_cells *cells, struct decode *decode, const uint8_t *jpeg,
                      size_t bytes);

#endif
