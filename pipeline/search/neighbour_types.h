/* neighbour_types.h: what goes into a search and what comes out of it; neighbours.h has the
 * functions. */
#ifndef CLPIPE_SEARCH_NEIGHBOUR_TYPES_H
#define CLPIPE_SEARCH_NEIGHBOUR_TYPES_H

#include "cluster/cluster_types.h"

/* Rows are numbered by 32 bits inside. */
#define NEIGHBOURS_ROWS_MAX 0xfffffffeu

struct neighbours_choice;

struct neighbours_config {
    enum cluster_metric metric;
    uint32_t n;             /* neighbours of each row, at least 1 */
    unsigned threads;       /* of the host, the caller included */
    uint64_t memory;        /* bytes of host buffers beside the answer */
    uint64_t device_memory; /* bytes; 0: what the device has */
    /* Contexts on GPUs are used for neighbours of all rows, those on CPUs stand for the host's
     * threads; NULL and 0: the host. */
    struct cluster_devices devices;
    struct stop *stop; /* may be NULL */
    /* As in struct cluster_config; may be NULL. The phases are "rows read" and "rows compared", the
     * latter in millions of pairs. */
    void (*phase)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *progress_context;
    const struct neighbours_choice *choice; /* NULL; tests: search/choice.h */
};

/* The answer; arrays are owned by it. */
struct neighbours {
    uint64_t queries; /* rows that have neighbours */
    uint32_t n;
    int64_t *rows;     /* queries x n, the nearest first; -1 where there are fewer */
    double *squared;   /* queries x n squared distances in the metric's space; NaN there */
    uint64_t compared; /* pairs of rows whose canonical distance was evaluated */
    double seconds_read, seconds_build, seconds_search;
};

#endif
