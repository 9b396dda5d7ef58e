/* assign.h: the nearest centroid of every row of a tile, by the canonical distance: the one way to
 * labels for all that need them.
 *
 *   bounds (prune.h)      which rows may have a new label
 *   a filter (a table)    float32, or float16 on tensor cores: labels most of them
 *   exact.h               the canonical distance decides the rest, on the device or the host */
#ifndef CLPIPE_CLUSTER_ASSIGN_H
#define CLPIPE_CLUSTER_ASSIGN_H

#include "cluster/counters.h"
#include "cluster/exact.h"
#include "cluster/prune.h"

#define ASSIGNERS 2

struct assigner;

struct assign {
    struct lane *lane;
    struct lane_held *held;
    struct data *data;
    struct filter *filter;
    struct prune prune;
    struct exact *exact;
    struct counters counters;
    void *states[ASSIGNERS];         /* of the table's ways; NULL: not possible */
    const struct assigner *assigner; /* that of this pass, */
    void *state;                     /* and its state */
    /* Of the largest tile: */
    cl_mem all, moved;       /* rows to search among all centroids, and among those that moved */
    cl_mem undecided;        /* rows for the canonical distance */
    cl_mem limits;           /* for each row a score that its nearest centroid does not exceed */
    cl_mem device_centroids; /* a struct centroid_move of each centroid, where the pass' centroids
                              * are on the device; NULL: they are the host's */
    uint64_t decided;        /* rows decided by the canonical distance, so far */
    uint64_t scored;         /* rows times centroids that they were scored with, at most, so far */
};

/* For the filter's data and up to as many centroids as it was opened for. Closing is safe after an
 * error, too. One thread at a time. */
enum status assign_open(struct assign *assign, struct filter *filter, struct error *err);
void assign_close(struct assign *assign);

/* Memory that is needed for a tile that is not one of the data's; its owner closes it. */
enum status assign_open_tile(struct assign *assign, struct tile *tile, struct error *err);

/* Takes k centroids (k x stride values); they stay the caller's and must stay as they are until the
 * next call. shifts: k distances that the centroids have moved by at most since all tiles were last
 * assigned, for what was given then; NULL: they were not. measured: see filter_set_centroids.
 * *incremental tells whether tiles may be assigned so. */
enum status assign_centroids(struct assign *assign, bool *incremental, const float *centroids,
                             uint32_t k, const double *shifts, bool measured, struct error *err);

/* The same for centroids that are on the device: see filter_use_centroids; moves: what
 * move_centroids gave of them. Where prune.plan_ready, shifts are not looked at. */
enum status assign_use_centroids(struct assign *assign, bool *incremental, uint32_t k,
                                 const double *shifts, cl_mem moves, struct error *err);

/* The label of a row of a tile is not what it was assigned to any more. */
enum status assign_forget_row(struct assign *assign, struct tile *tile, uint32_t row,
                              struct error *err);

/* Labels an acquired tile. incremental: only rows that may have a new label are searched. Returns
 * when it is done. */
enum status assign_tile(struct assign *assign, struct tile *tile, bool incremental,
                        struct error *err);

/* The same in two parts, where assigner->in_one_wait: the first enqueues it; the second, once the
 * mailbox was read, labels the rows that the first one's commands left, and tells whether there were
 * any. Until then assign_rows_left has their number on the device, for commands that are to do
 * nothing then. */
enum status assign_begin_tile(struct assign *assign, struct tile *tile, bool incremental,
                              struct error *err);
enum status assign_end_tile(bool *left, struct assign *assign, struct tile *tile, bool incremental,
                            struct error *err);
/* See assign_begin_tile. */
struct device_count assign_rows_left(const struct assign *assign);

/* The canonical distance of each row of an acquired tile to its label's centroid. */
enum status assign_tile_distances(struct assign *assign, struct tile *tile, double *distances,
                                  struct error *err);
/* The same, float64, in slices: see fetch_slices. */
enum status assign_take_distances(struct assign *assign, struct tile *tile, uint32_t slices,
                                  void (*take)(void *context, const struct fetch_slice *slice),
                                  void *context, struct error *err);

/* How the nearest centroids of a tile's rows are searched: a table of ways. A way sees what struct assign
 * holds for all of them and keeps what it has beside that behind its own state. */
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
