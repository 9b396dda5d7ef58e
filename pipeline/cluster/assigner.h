/* assigner.h: how the nearest centroids of a tile's rows are searched: a table of ways.
 *
 * A way sees what struct assign holds for all of them (bounds, lists of rows, counters, the
 * canonical distance) and keeps what it has beside that behind its own state. */
#ifndef CLPIPE_CLUSTER_ASSIGNER_H
#define CLPIPE_CLUSTER_ASSIGNER_H

#include "cluster/assign.h"

struct assigner {
    const char *name;
    /* Whether device and rows are such that this way pays. */
    bool (*possible)(const struct filter *filter);
    enum status (*open)(void **out, struct assign *assign, struct error *err);
    void (*close)(void **state); /* accepts a pointer to NULL */
    /* Memory that a tile needs beside what data_open has given it. NULL: none. */
    enum status (*open_tile)(void *state, struct tile *tile, struct error *err);
    /* After the filter has taken the pass' centroids: whether they can be searched so. */
    bool (*usable)(void *state);
    /* Prepares a pass; *incremental becomes false where the way must search all rows. */
    enum status (*begin_pass)(void *state, bool *incremental, struct error *err);
    /* Enqueues what can be done before counters_read; all of it where in_one_wait. */
    enum status (*begin_tile)(void *state, struct tile *tile, bool incremental, struct error *err);
    /* After counters_read, labels the rows that are left; *left: there were any. */
    enum status (*end_tile)(bool *left, void *state, struct tile *tile, bool incremental,
                            struct error *err);
    bool in_one_wait; /* begin_tile labels all rows but those counted as COUNT_LEFT */
};

extern const struct assigner assigner_float16, assigner_float32;

/* For other ways: searches `count` listed rows (rows is NULL: all of the tile) by the float32 filter
 * among all centroids and decides what it leaves by the canonical distance. */
enum status float32_search(struct assign *assign, struct tile *tile, cl_mem rows, cl_uint count,
                           struct error *err);

#endif
