/* graph.h: /neighbours/FEATURE, the nearest rows of every row: `rows` (N, n) int64, nearest first,
 * and `distances` (N, n) float32, squared, in the metric's space; -1 and NaN if there are fewer.
 * Attributes of the group: feature, metric, n, squared (1), and content, the identity of the rows
 * searched. An update renumbers them and leaves new rows without neighbours; content then stays the
 * old one. */
#ifndef CLPIPE_RESULT_GRAPH_H
#define CLPIPE_RESULT_GRAPH_H

#include "result/result.h"
#include <hdf5.h>

/* A graph to be stored. */
struct graph_values {
    const char *feature, *metric, *content;
    uint64_t rows;
    uint32_t n;
    const int64_t *neighbours; /* rows x n */
    const double *squared;     /* rows x n, stored as float32 */
};

/* Checks that a graph of that feature can be stored. STATUS_USAGE: the file has one and `replace` is
 * not set, or the feature's name is not valid for a group (joined features). */
enum status graph_check(struct result *result, const char *feature, bool replace,
                        struct error *err);

/* Replaces the file of `result` with a copy that has that graph. Call graph_check first. */
enum status graph_write(struct result *result, const struct graph_values *values,
                        struct error *err);

/* A graph of a finished file. */
struct graph {
    hid_t rows_dataset, distances_dataset;
    uint64_t rows;
    uint32_t n;
    char metric[16], content[80];
};

/* STATUS_END: the feature has none; STATUS_FAILED: it is damaged. */
enum status graph_open(struct graph *out, struct result *result, const char *feature,
                       struct error *err);
/* Reads rows [first, first + count). */
enum status graph_read(struct graph *graph, uint64_t first, uint64_t count, int64_t *neighbours,
                       float *squared, struct error *err);
/* Accepts a zeroed graph, and one that could not be opened. */
void graph_close(struct graph *graph);

#endif
