/* prune.h: which rows an iteration need not search in full, by bounds on their distances.
 *
 * A row keeps an upper bound on the distance to its centroid and a lower one on that to all others
 * (tile->near, tile->far; docs/clustering.md). Centroids that have moved by more than a threshold,
 * the movers, are scored one by one; the others are taken to have moved by the threshold. It is
 * chosen anew for each pass, by what it leaves to do; labels do not depend on it. */
#ifndef CLPIPE_CLUSTER_PRUNE_H
#define CLPIPE_CLUSTER_PRUNE_H

#include "cluster/filter.h"
#include "kmeans.h"

struct prune {
    struct filter *filter;
    bool tensor;                                   /* searches are in float16 */
    cl_kernel drift_rows, split, own, rank, list;  /* the last two: of tiled lanes */
    cl_mem drifts;                                 /* k, in units of 2^row_exponent */
    struct report_part plan;                       /* KMEANS_PLAN values */
    bool planned;                                  /* the plan is of the next pass already */
    bool on_device;                                /* the movers are known to the device alone */
    uint32_t ranks[KMEANS_CANDIDATES], candidates; /* of the plan; see candidate_ranks */
    /* k each; sorted: descending */
    cl_float *host_drifts, *sorted, *scratch;
    uint8_t *movers;          /* k; not where the plan is the device's */
    uint32_t mover_count;     /* at most so many */
    cl_float threshold, most; /* most: of all drifts */
    uint32_t turn;            /* of lane->any_prune */
};

enum status prune_open(struct prune *prune, struct filter *filter, bool tensor, struct error *err);
void prune_close(struct prune *prune);

/* Chooses for k centroids that have moved by at most drifts[] (distances) since the pass before;
 * NULL: there was none. *incremental tells whether tiles are to be split; then the movers are set.
 * Precedes filter_set_centroids. */
enum status prune_plan(bool *incremental, struct prune *prune, const double *drifts, uint32_t k,
                       struct error *err);

/* The same in steps, for drifts that a kernel of the compute queue leaves in prune->drifts:
 * enqueues what the choice takes, and chooses, once the report was read. The movers stay on the
 * device: prune_list puts their numbers into ids, as many as mover_count; places that are too many
 * get -1. Only where prune->tensor and filter->bounded. */
enum status prune_plan_ahead(struct prune *prune, uint32_t k, const struct report_count *unless,
                             struct error *err);
void prune_choose(bool *incremental, struct prune *prune, uint32_t k);
enum status prune_list(struct prune *prune, cl_mem ids, uint32_t k, struct error *err);

/* What a distance is multiplied by to be a drift, which is rounded up. */
double prune_drift_scale(const struct prune *prune);

/* Lists a tile's rows for a search among all centroids, and for one among the movers and their own;
 * counts[0] and counts[1] are added to. */
enum status prune_split(struct prune *prune, struct tile *tile, cl_mem full, cl_mem partial,
                        cl_mem counts, struct error *err);

/* Finds the distances to their own centroids of the counts[1] rows listed (at most `most`), for
 * kernels that do not do so themselves: those with local tiles. */
enum status prune_own(struct prune *prune, struct tile *tile, cl_mem partial, cl_mem counts,
                      uint32_t most, struct error *err);

#endif
