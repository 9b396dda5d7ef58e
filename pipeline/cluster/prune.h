/* prune.h: which rows an iteration need not search in full, by bounds on their distances (Hamerly:
 * Making k-means even faster, 2010).
 *
 * A row keeps an upper bound on the distance to its centroid and a lower bound on that to all others
 * (struct tile; docs/clustering.md). Centroids that have moved by more than a threshold are scored
 * one by one; the others are taken to have moved by the threshold. It is chosen anew for each pass,
 * by what it leaves to do; labels do not depend on it. */
#ifndef CLPIPE_CLUSTER_PRUNE_H
#define CLPIPE_CLUSTER_PRUNE_H

#include "cluster/filter.h"
#include "kmeans.h"

struct prune {
    struct filter *filter;
    struct lane_held *held;
    bool tensor;                                    /* searches are in float16 */
    cl_kernel shift_bounds, split, own, rank, list; /* the last two: of tiled lanes */
    cl_mem shifts;            /* k: how far each has moved at most, in units of 2^row_exponent */
    struct mailbox_part plan; /* KMEANS_PLAN values */
    bool plan_ready;          /* the device has made that of the next pass */
    bool moved_on_device;     /* which centroids are above the threshold only the device knows */
    uint32_t ranks[KMEANS_CANDIDATES], candidates; /* of the plan; see candidate_ranks */
    /* k each; sorted: descending */
    cl_float *host_shifts, *sorted, *scratch;
    uint8_t *moved;           /* k: whether it is above the threshold; not where moved_on_device */
    uint32_t moved_count;     /* of them, at most */
    cl_float threshold, most; /* most: of all shifts */
    uint32_t turn;            /* of lane->any_prune */
};

enum status prune_open(struct prune *prune, struct filter *filter, bool tensor, struct error *err);
void prune_close(struct prune *prune);

/* Chooses for k centroids that have moved by at most shifts[] (distances) since the pass before;
 * NULL: there was none. *incremental tells whether tiles are to be split; then `moved` is set.
 * Precedes filter_set_centroids. */
enum status prune_plan(bool *incremental, struct prune *prune, const double *shifts, uint32_t k,
                       struct error *err);

/* The same in steps, for shifts that a kernel of the compute queue leaves in prune->shifts:
 * prune_plan_ahead enqueues what the choice takes, prune_choose chooses once the mailbox was read. The
 * host does not get to know which centroids have moved: prune_list puts their numbers into ids, as
 * many as moved_count; places that are too many get -1. Only where prune->tensor and
 * filter->bounds_usable. */
enum status prune_plan_ahead(struct prune *prune, uint32_t k, const struct device_count *unless,
                             struct error *err);
void prune_choose(bool *incremental, struct prune *prune, uint32_t k);
enum status prune_list(struct prune *prune, cl_mem ids, uint32_t k, struct error *err);

/* What a distance is multiplied by to be one of prune->shifts, which is rounded up. */
double prune_shift_scale(const struct prune *prune);

/* Lists a tile's rows for a search among all centroids, and for one among their own centroid
 * and those that have moved; COUNT_ALL and COUNT_MOVED of counts grow. */
enum status prune_split(struct prune *prune, struct tile *tile, cl_mem full, cl_mem partial,
                        cl_mem counts, struct error *err);

/* Finds the distances to their own centroids of the COUNT_MOVED rows listed (at most `most`), for
 * kernels that do not do so themselves: those with local tiles. */
enum status prune_own(struct prune *prune, struct tile *tile, cl_mem partial, cl_mem counts,
                      uint32_t most, struct error *err);

#endif
