/* assign.h: the canonical nearest centroid of every row: filter first, then the rows in doubt. */
#ifndef CLPIPE_CLUSTER_ASSIGN_H
#define CLPIPE_CLUSTER_ASSIGN_H

#include "cluster/half.h"
#include "cluster/prune.h"

struct assign {
    struct lane *lane;
    struct data *data;
    struct filter *filter;
    struct half_filter half;
    struct prune prune;
    cl_program program; /* kmeans_exact; NULL where the host does it */
    cl_kernel exact, distances;
    /* Of the largest tile: */
    cl_mem full, partial;         /* lists of rows */
    cl_mem flagged_rows;          /* those in doubt */
    cl_mem upper;                 /* float32 a row */
    struct report_part counts[2]; /* of the lists: for a tile, and for the next one */
    unsigned turn;                /* which of them is the tile's */
    cl_mem tile_distances;        /* float64 a row; NULL where the host does it */
    float *centroids;             /* the host's copy: k x stride; the caller's memory */
    cl_mem facts;                 /* of the device's centroids; NULL: the host's are those of now */
    bool unlaid, unlaid_some;     /* what the half filter has not laid out yet: all; the movers */
    bool zeroed;                  /* the next one's are zero already */
    uint64_t flagged;             /* rows decided by the canonical distance, so far */
    uint64_t scored; /* rows times centroids that they were scored with, at most, so far */
};

/* For the filter's data and up to as many centroids as it was opened for. Closing is safe after an
 * error, too. One thread at a time. */
enum status assign_open(struct assign *assign, struct filter *filter, struct error *err);
void assign_close(struct assign *assign);

/* Takes k centroids (k x stride values); they stay the caller's and must stay as they are until the
 * next call. drifts: k distances that the centroids have moved by at most since all tiles were last
 * assigned, for what was given then; NULL: they were not. measured: see filter_set_centroids.
 * *incremental tells whether tiles may be assigned so. */
enum status assign_centroids(struct assign *assign, bool *incremental, float *centroids, uint32_t k,
                             const double *drifts, bool measured, struct error *err);

/* The same for centroids that are on the device: see filter_use_centroids; facts: what
 * move_centroids gave of them. Where the pass has been planned (prune_plan_ahead), drifts are not
 * looked at. */
enum status assign_use_centroids(struct assign *assign, bool *incremental, uint32_t k,
                                 const double *drifts, cl_mem facts, struct error *err);

/* May be called while commands run, to have less to wait for when the next tile comes. */
enum status assign_prepare(struct assign *assign, struct error *err);

/* The label of a row of a tile is not what it was assigned to any more. */
enum status assign_forget_row(struct assign *assign, struct tile *tile, uint32_t row,
                              struct error *err);

/* Labels an acquired tile. incremental: only rows that may have a new label are searched. Returns
 * when it is done. */
enum status assign_tile(struct assign *assign, struct tile *tile, bool incremental,
                        struct error *err);

/* The same in two parts, where assign_by_device: the first enqueues it; the second, once the report
 * was read, labels the rows that the first one's commands left, and tells whether there were any.
 * Until then assign_rows_left has their number on the device, for commands that are to do nothing
 * then. */
bool assign_by_device(const struct assign *assign);
enum status assign_begin_tile(struct assign *assign, struct tile *tile, bool incremental,
                              struct error *err);
enum status assign_end_tile(bool *left, struct assign *assign, struct tile *tile, bool incremental,
                            struct error *err);

struct report_count assign_rows_left(const struct assign *assign);

/* The canonical distance of each row of an acquired tile to its label's centroid. */
enum status assign_tile_distances(struct assign *assign, struct tile *tile, double *distances,
                                  struct error *err);
/* The same, float64, for whoever takes them in slices: see fetch_slices. */
enum status assign_take_distances(struct assign *assign, struct tile *tile, uint32_t slices,
                                  void (*take)(void *context, const struct fetch_slice *slice),
                                  void *context, struct error *err);

#endif
