/* neighbour_types.h: input and output of a neighbour search; neighbours.h has the functions. */
#ifndef CLPIPE_NEIGHBOURS_NEIGHBOUR_TYPES_H
#define CLPIPE_NEIGHBOURS_NEIGHBOUR_TYPES_H

#include "base/watch.h"
#include "kmeans/cluster_types.h"
#include "matrix/matrix.h"

/* Rows are numbered with 32 bits internally. */
#define NEIGHBOURS_ROWS_MAX 0xfffffffeu

struct neighbours_choice;

struct neighbours_config {
    enum cluster_metric metric;
    uint32_t n;             /* neighbours per row, at least 1 */
    unsigned threads;       /* on the host, including the caller */
    uint64_t memory;        /* bytes of host buffers, without the result */
    uint64_t device_memory; /* bytes; 0: all of the device's memory */
    /* GPU contexts are used for the neighbours of all rows; CPU contexts, or NULL and 0, select the
     * host's threads. */
    struct cluster_devices devices;
    struct watch watch;
    const struct neighbours_choice *choice; /* NULL; tests: neighbours/choice.h */
};

/* What neighbours are searched for: `count` rows of the source, by their numbers, or the first ones
 * of another matrix of as many columns. */
struct queries {
    const uint64_t *rows; /* NULL: those of `values` */
    const struct matrix_source *values;
    uint64_t count;
};

/* The result; it owns its arrays. */
struct neighbours {
    uint64_t queries; /* rows that have neighbours */
    uint32_t n;
    int64_t *rows;     /* queries x n, nearest first; -1 if there are fewer */
    double *squared;   /* queries x n squared distances in the metric's space; likewise NaN */
    uint64_t compared; /* pairs of rows whose canonical distance was computed */
    double seconds_read, seconds_build, seconds_search;
};

#endif
