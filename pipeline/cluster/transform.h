/* transform.h: rows as they come from a file become rows in the metric's space; what is known of
 * the columns is gathered on the way. */
#ifndef CLPIPE_CLUSTER_TRANSFORM_H
#define CLPIPE_CLUSTER_TRANSFORM_H

#include "base/error.h"
#include "cluster/cluster_types.h"
#include "cluster/workers.h"
#include <stdint.h>

struct transform {
    enum cluster_metric metric;
    uint32_t dimension, stride; /* stride: dimension rounded up to a multiple of KMEANS_LANES */
    const char *what;           /* "row" or "given centroid", for messages */
};

/* Writes `rows` rows of `stride` values, padded with zeros, to `to`; `from` holds rows of
 * `dimension` values and may be `to` where both are equal; without workers it may also be the end of the
 * same memory, to + rows * (stride - dimension). euclidean: as they are; hellinger:
 * square roots; cosine: divided by their length, everything in float64 and rounded once. NaN,
 * infinities, negative values under hellinger and zero rows under cosine are STATUS_FAILED; the
 * message counts rows from `first`. workers: NULL for the caller alone. */
enum status transform_rows(const struct transform *transform, struct workers *workers, float *to,
                           const float *from, uint64_t first, uint32_t rows, struct error *err);

/* Per column, over all rows so far, in float64: sums of x - x_0 and of its square, x_0 being the
 * first row's value, each times the row's weight where there are any. Rows are added up in order
 * within blocks of KMEANS_BLOCK_ROWS, and blocks in order, however the rows come. */
struct column_stats {
    uint32_t dimension;
    uint64_t rows;
    double *sum, *squares;             /* of whole blocks */
    double *block_sum, *block_squares; /* of the rows behind them */
    float *origin;                     /* dimension: the first row */
    float *largest;                    /* dimension: the greatest absolute value */
    size_t bytes; /* of all these, which lie together from `sum` on: copied, they continue there */
    double *apart; /* of column_stats_apart, or NULL: sums and squares of each whole block, unadded */
    uint64_t apart_blocks;
};

enum status column_stats_open(struct column_stats *stats, uint32_t dimension, struct error *err);
void column_stats_close(struct column_stats *stats);
/* Rows from the middle on, read before it is known what those before them come to: those before are
 * `rows`, whole blocks, `origin` is the first of them, and up to `count` are to come. Needs 16 bytes for
 * each column of each block. column_stats_follow then continues `before`, which are the statistics of
 * those before (of column_stats_open otherwise). */
enum status column_stats_apart(struct column_stats *stats, uint64_t rows, uint64_t count,
                               struct error *err);
void column_stats_follow(struct column_stats *stats, const struct column_stats *before);
/* Adds rows of `stride` values. weights: of these rows, or NULL. */
enum status column_stats_add(struct column_stats *stats, struct workers *workers, const float *rows,
                             const float *weights, uint32_t count, uint32_t stride,
                             struct error *err);
/* Without weights: the mean of column j. */
double column_stats_mean(const struct column_stats *stats, uint32_t j);
/* With weights, whose sum is `total`. */
double column_stats_weighted_mean(const struct column_stats *stats, uint32_t j, double total);
/* Without weights: the sum over rows of the squared difference from the mean of column j. */
double column_stats_scatter(const struct column_stats *stats, uint32_t j);
/* The sum over rows of the squared difference of column j from `about`, times the weights, whose
 * sum is `total`. */
double column_stats_scatter_about(const struct column_stats *stats, uint32_t j, double about,
                                  double total);

#endif
