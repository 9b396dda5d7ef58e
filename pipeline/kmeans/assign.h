/* assign.h: finds the nearest centroid of every row of a tile by the canonical distance. All labels
 * come from here.
 *
 *   bounds (prune.h)      which rows may change their label
 *   a filter              float32, or float16 on tensor cores: labels most of them
 *   exact.h               the canonical distance decides the rest, on the device or the host */
#ifndef CLPIPE_KMEANS_ASSIGN_H
#define CLPIPE_KMEANS_ASSIGN_H

#include "kmeans/counters.h"
#include "kmeans/exact.h"
#include "kmeans/prune.h"
#include "kmeans_half.h"

struct assigner;
struct tensor;

struct assign {
    struct lane *lane;
    struct data *data;
    struct filter *filter;
    struct prune prune;
    struct exact exact;
    struct counters counters;
    struct tensor *tensor;           /* of assigner_float16; NULL: it is not possible */
    const struct assigner *assigner; /* of this pass */
    /* For the largest tile: */
    cl_mem all, moved;       /* rows to search among all centroids, and among those that moved */
    cl_mem undecided;        /* rows for the canonical distance */
    cl_mem limits;           /* per row, an upper bound on its nearest centroid's score */
    cl_mem device_centroids; /* struct centroid_move per centroid; NULL: centroids are on the
                              * host */
    uint64_t decided;        /* rows decided by the canonical distance so far */
    uint64_t scored;         /* upper bound on the (row, centroid) pairs scored so far */
};

/* For the filter's data and its capacity of centroids. lane_release of *held frees it. One thread. */
enum status assign_open(struct assign *assign, struct lane_held **held, struct filter *filter,
                        struct error *err);

/* Takes k centroids (k x stride values); they remain the caller's and must not change until the
 * next call. shifts: k upper bounds on the distances that the centroids have moved since all tiles
 * were last assigned; NULL: they were not. *incremental: whether tiles may be assigned
 * incrementally. */
enum status assign_centroids(struct assign *assign, bool *incremental, const float *centroids,
                             uint32_t k, const double *shifts, struct error *err);

/* The same for centroids on the device: see filter_use_centroids. moves: the output of
 * move_centroids for them. If prune.plan_ready, shifts are ignored. */
enum status assign_use_centroids(struct assign *assign, bool *incremental, uint32_t k,
                                 const double *shifts, cl_mem moves, struct error *err);

/* Invalidates the bounds of a row whose label was changed elsewhere. */
enum status assign_forget_row(struct assign *assign, struct tile *tile, uint32_t row,
                              struct error *err);

/* Labels an acquired tile and waits. incremental: searches only rows that may change their
 * label. */
enum status assign_tile(struct assign *assign, struct tile *tile, bool incremental,
                        struct error *err);

/* The same in two steps, if assigner->in_one_wait: the first enqueues; the second, after the
 * mailbox is read, labels the rows that the first left, and tells whether there were any. In
 * between, assign_rows_left has their number on the device, for commands that must do nothing if
 * there are any. */
enum status assign_begin_tile(struct assign *assign, struct tile *tile, bool incremental,
                              struct error *err);
enum status assign_end_tile(bool *left, struct assign *assign, struct tile *tile, bool incremental,
                            struct error *err);
/* See assign_begin_tile. */
struct device_count assign_rows_left(const struct assign *assign);

/* The canonical distance (squared) of each row of an acquired tile to its label's centroid. */
enum status assign_tile_distances(struct assign *assign, struct tile *tile, double *distances,
                                  struct error *err);
/* The same as float64 slices: see fetch_slices. */
enum status assign_take_distances(struct assign *assign, struct tile *tile, uint32_t slices,
                                  void (*take)(void *context, const struct fetch_slice *slice),
                                  void *context, struct error *err);

/* A way to find the nearest centroids of a tile's rows. */
struct assigner {
    /* Prepares a pass; clears *incremental if all rows must be searched. */
    enum status (*begin_pass)(struct assign *assign, bool *incremental, struct error *err);
    /* Enqueues what needs no counters; everything if in_one_wait. */
    enum status (*begin_tile)(struct assign *assign, struct tile *tile, bool incremental,
                              struct error *err);
    /* After counters_read, labels the remaining rows; *left: there were any. */
    enum status (*end_tile)(bool *left, struct assign *assign, struct tile *tile, bool incremental,
                            struct error *err);
    bool in_one_wait; /* begin_tile labels all rows except those counted in COUNT_LEFT */
};

extern const struct assigner assigner_float16, assigner_float32;

/* Allocates assign->tensor, if the device can search in float16 and that is worthwhile for the rows; and what
 * a tile outside the data needs for it. lane_release of *held frees these. */
enum status float16_open(struct assign *assign, struct lane_held **held, struct error *err);
enum status float16_open_tile(const struct assign *assign, struct lane_held **held,
                              struct tile *tile, struct error *err);
/* Whether float16 can search the centroids, or the candidates of seeding, that the filter has taken. */
bool float16_usable(const struct assign *assign);

/* For other assigners: searches `count` listed rows (rows NULL: the whole tile) among all centroids
 * with the float32 filter and decides the rest by the canonical distance. */
enum status float32_search(struct assign *assign, struct tile *tile, cl_mem rows, cl_uint count,
                           struct error *err);

/* Centroids laid out for the float16 filter, in panels of KMEANS_HALF_PANEL. */
struct half_panels {
    cl_mem values;  /* lanes x columns float16 */
    cl_mem starts;  /* lanes x (start, slope) */
    cl_mem ids;     /* per lane: its centroid */
    uint32_t count; /* panels */
};

/* Filters candidates of seeding in float16; their scores compare with thresholds as those of the
 * float32 filter do. Where a kernel lays out candidates (lane_start of kmeans_half.h), of which there are none yet. */
struct float16_candidates {
    cl_mem values, starts; /* KMEANS_TRIALS_MAX x columns float16; (start, slope) of each */
    cl_uint columns;
    struct kmeans_half_terms terms;
};
enum status float16_open_candidates(struct float16_candidates *out, struct assign *assign,
                                    struct error *err);
/* A kernel with its arguments. */
struct seed_launch {
    const char *tag;
    cl_kernel kernel;
    uint64_t items;
    size_t group;
};
/* A launch that sets bit i of a row's mask if candidate i may be nearer than its threshold. */
enum status float16_open_filter(struct seed_launch *out, struct lane_held **held,
                                struct assign *assign, struct tile *tile, cl_mem thresholds,
                                cl_mem mask, struct error *err);

/* The rows of a tile as centroids, to list which of them may be within a distance of which. A row has the number
 * that `panels.ids` gives it, a squared length less the centre, and as a candidate the score that others must not
 * exceed: the caller fills these three (list_lengths of kmeans_lists.cl). */
struct float16_pairs {
    struct half_panels panels;
    cl_mem squares, limits;
};
enum status float16_open_pairs(struct float16_pairs *out, struct lane_held **held,
                               struct assign *assign, const struct tile *tile, struct error *err);
/* within: the squared distance of each row within which a candidate counts. */
enum status float16_lay_out_pairs(struct float16_pairs *pairs, struct assign *assign,
                                  struct tile *tile, cl_mem within, struct error *err);
/* For each row as a candidate, the numbers of the rows that may be within their distance of it go to `slots`, from
 * slot taken[row] on, as far as there is `room` in all; taken[row] grows by their number, room or not. The same
 * numbers each time. */
enum status float16_list_pairs(const struct float16_pairs *pairs, struct assign *assign,
                               struct tile *tile, cl_mem slots, cl_mem taken, cl_uint room,
                               struct error *err);

#endif
