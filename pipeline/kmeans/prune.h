/* prune.h: bounds on distances that spare rows a full search in an iteration (Hamerly: Making
 * k-means even faster, 2010).
 *
 * A row keeps an upper bound on the distance to its centroid and a lower bound on that to all
 * others (struct tile; docs/clustering.md). Centroids that have moved by more than a threshold are
 * scored one by one; the others are assumed to have moved by the threshold. Each pass chooses it to
 * minimize the remaining work; labels do not depend on it. */
#ifndef CLPIPE_KMEANS_PRUNE_H
#define CLPIPE_KMEANS_PRUNE_H

#include "kmeans.h"
#include "kmeans/filter.h"

struct prune {
    struct filter *filter;
    bool tensor;                                    /* searches use float16 */
    cl_kernel shift_bounds, split, own, rank, list; /* the last two: for tiled lanes */
    cl_mem shifts;            /* k: upper bounds on the moves, in units of 2^row_exponent */
    struct mailbox_part plan; /* KMEANS_PLAN values */
    bool plan_ready;          /* the device has already planned the next pass */
    bool moved_on_device;     /* only the device knows which centroids exceed the threshold */
    uint32_t ranks[KMEANS_CANDIDATES], candidates; /* of the plan; see candidate_ranks */
    /* k each; sorted: descending */
    cl_float *host_shifts, *sorted, *scratch;
    uint8_t *moved;           /* k: exceeds the threshold; not if moved_on_device */
    uint32_t moved_count;     /* how many do, at most */
    cl_float threshold, most; /* most: the largest shift */
    uint32_t turn;            /* for lane->any_prune */
};

/* For up to filter->capacity centroids; `filter` must outlive it. tensor: as prune->tensor.
 * lane_release of *held frees it. */
enum status prune_open(struct prune *prune, struct lane_held **held, struct filter *filter,
                       bool tensor, struct error *err);

/* Plans a pass for k centroids that have moved by at most shifts[] (distances) since the previous
 * pass; NULL: there was none. *incremental: whether tiles are to be split; then `moved` is set.
 * Call it before filter_set_centroids. */
enum status prune_plan(bool *incremental, struct prune *prune, const double *shifts, uint32_t k,
                       struct error *err);

/* The same in steps, for shifts that a kernel on the compute queue leaves in prune->shifts:
 * prune_plan_ahead enqueues the preparation, prune_choose decides after the mailbox was read. The
 * host does not learn which centroids have moved: prune_list writes their numbers to ids,
 * moved_count places, filled up with -1. Only if prune->tensor and filter->bounds_usable. */
enum status prune_plan_ahead(struct prune *prune, uint32_t k, const struct device_count *unless,
                             struct error *err);
void prune_choose(bool *incremental, struct prune *prune, uint32_t k);
enum status prune_list(struct prune *prune, cl_mem ids, uint32_t k, struct error *err);

/* Factor from distances to prune->shifts, whose values are rounded up. */
double prune_shift_scale(const struct prune *prune);

/* Lists a tile's rows for a search among all centroids, and for one among their own centroid and
 * those that have moved; increments COUNT_ALL and COUNT_MOVED of counts. */
enum status prune_split(struct prune *prune, struct tile *tile, cl_mem full, cl_mem partial,
                        cl_mem counts, struct error *err);

/* Computes the distances to their own centroids for the COUNT_MOVED rows listed (at most `most`),
 * for kernels with local tiles, which do not do so themselves. */
enum status prune_own(struct prune *prune, struct tile *tile, cl_mem partial, cl_mem counts,
                      uint32_t most, struct error *err);

#endif
