/* transform.h: transforms rows into the metric's space and gathers column statistics. */
#ifndef CLPIPE_KMEANS_TRANSFORM_H
#define CLPIPE_KMEANS_TRANSFORM_H

#include "base/error.h"
#include "base/workers.h"
#include "kmeans/cluster_types.h"
#include <stdint.h>

struct transform {
    enum cluster_metric metric;
    uint32_t dimension, stride; /* stride: dimension rounded up to a multiple of KMEANS_LANES */
    const char *what;           /* "row" or "given centroid", for messages */
};

/* Writes `rows` rows of `stride` values, zero-padded, to `to`; `from` holds rows of `dimension`
 * values and may be `to` if both are equal; without workers it may also be the end of the same
 * memory, to + rows * (stride - dimension). euclidean: unchanged; hellinger: square roots; cosine:
 * divided by the length, in float64 and rounded once. NaN, infinities, negative values under
 * hellinger and zero rows under cosine are STATUS_FAILED; the message counts rows from `first`.
 * workers: NULL for the caller alone. */
enum status transform_rows(const struct transform *transform, struct workers *workers, float *to,
                           const float *from, uint64_t first, uint32_t rows, struct error *err);

/* Reads rows [first, first + rows) of `source` and transforms them. workers: they read, if several
 * threads may read the source, and transform; NULL: the caller alone. */
enum status transform_read(const struct transform *transform, const struct matrix_source *source,
                           struct workers *workers, float *to, uint64_t first, uint64_t rows,
                           struct error *err);

/* Per column, over all rows, in float64: sums of x - x_0 and of its square, x_0 being the first
 * row's value, each times the row's weight if there are weights. Rows are added in order within
 * blocks of KMEANS_BLOCK_ROWS, whole blocks in order within chunks, then chunks in order, then the
 * rows after the last whole block, no matter how blocks arrive and which rank adds a chunk. */
struct column_stats {
    uint32_t dimension;
    uint64_t rows;                     /* before this share, and so far */
    double *sum, *squares;             /* of the chunks added so far */
    double *block_sum, *block_squares; /* of the rows after whole blocks */
    float *origin;                     /* dimension: the first row */
    float *largest;                    /* dimension: the largest absolute value */
    size_t bytes;                      /* in all these arrays, contiguous from `sum` on */
    double *chunks;                    /* room x (sums, squares): of chunks from first_chunk on */
    uint64_t chunk_rows, first_chunk, room;
};

/* Rows per chunk: whole blocks, enough that there are at most 1,024 chunks. */
uint64_t column_stats_chunk(uint64_t rows);

/* For `count` rows from `first` on, whole chunks, of `rows` in total. If they are only a part, each
 * chunk takes 16 bytes per column, and the caller sets `origin`. */
enum status column_stats_open(struct column_stats *stats, uint32_t dimension, uint64_t rows,
                              uint64_t first, uint64_t count, struct error *err);
void column_stats_close(struct column_stats *stats);
/* After the last row: continues `before`, the statistics of the preceding rows (NULL: none). */
void column_stats_follow(struct column_stats *stats, const struct column_stats *before);
/* Adds rows of `stride` values: whole blocks, except at the end of all. weights: of these rows, or NULL. */
enum status column_stats_add(struct column_stats *stats, struct workers *workers, const float *rows,
                             const float *weights, uint32_t count, uint32_t stride,
                             struct error *err);
/* Without weights: the mean of column j. */
double column_stats_mean(const struct column_stats *stats, uint32_t j);
/* With weights, whose sum is `total`. */
double column_stats_weighted_mean(const struct column_stats *stats, uint32_t j, double total);
/* Without weights: the sum over rows of the squared difference from the mean of column j. */
double column_stats_scatter(const struct column_stats *stats, uint32_t j);
/* The weighted sum over rows of the squared difference of column j from `about`; `total` is the sum
 * of the weights. */
double column_stats_scatter_about(const struct column_stats *stats, uint32_t j, double about,
                                  double total);

#endif
