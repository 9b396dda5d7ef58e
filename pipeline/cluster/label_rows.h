/* label_rows.h: labels for a few rows on the host: those of a matrix in memory, by the canonical
 * distance (canonical.h), to given centroids. The same bits as cluster_assign. */
#ifndef CLPIPE_CLUSTER_LABEL_ROWS_H
#define CLPIPE_CLUSTER_LABEL_ROWS_H

#include "base/error.h"
#include "base/stop.h"
#include <stdint.h>

/* Writes the label and the squared distance of each of `count` rows of `dimension` values, row by
 * row. centroids: k x dimension, in the space of the metric, which is named as clusterings name it.
 * A row that has no place in that space (NaN, zeros under cosine) gets -1 and NaN. Uses up to
 * `threads` threads. STATUS_FAILED: an unknown metric, no memory; STATUS_INTERRUPTED: `stop`, which
 * may be NULL, came. */
enum status label_rows(int32_t *labels, float *distances, const float *rows, uint64_t count,
                       uint32_t dimension, const float *centroids, uint32_t k, const char *metric,
                       unsigned threads, struct stop *stop, struct error *err);

#endif
