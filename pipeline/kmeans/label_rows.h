/* label_rows.h: labels for a few rows of a matrix in host memory: the nearest of given centroids by
 * the canonical distance (canonical.h). Bit-identical to cluster_assign. */
#ifndef CLPIPE_KMEANS_LABEL_ROWS_H
#define CLPIPE_KMEANS_LABEL_ROWS_H

#include "base/error.h"
#include "base/stop.h"
#include <stdint.h>

/* Writes the squared distance of each of `count` rows of `dimension` values, stored row by row, to the
 * centroid of its label; and the label, the nearest centroid, where it is -1. centroids: k x dimension,
 * in the space of `metric`, a name as stored with clusterings. A row that is invalid in that space
 * (NaN, zeros under cosine) gets -1 and NaN. Uses up to `threads` threads. STATUS_FAILED: unknown
 * metric, out of memory; STATUS_INTERRUPTED: `stop` (may be NULL) was set. */
enum status label_rows(int32_t *labels, float *distances, const float *rows, uint64_t count,
                       uint32_t dimension, const float *centroids, uint32_t k, const char *metric,
                       unsigned threads, struct stop *stop, struct error *err);

#endif
