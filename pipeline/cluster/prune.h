/* prune.h: which rows an iteration need not search in full, by bounds on their distances.
 *
 * A row keeps an upper bound on the distance to its centroid and a lower one on that to all others
 * (tile->near, tile->far; docs/clustering.md). Centroids that have moved by more than a threshold,
 * the movers, are scored one by one; the others are taken to have moved by the threshold. It is
 * chosen anew for each pass, by what it leaves to do; labels do not depend on it. */
#ifndef CLPIPE_CLUSTER_PRUNE_H
#define CLPIPE_CLUSTER_PRUNE_H

#include "cluster/filter.h"

struct prune {
    struct filter *filter;
    bool tensor; /* searches are in float16 */
    cl_kernel drift_rows, split, own;
    cl_mem drifts, thresholds, counts;
    /* k each, in units of 2^row_exponent; sorted: descending */
    cl_float *host_drifts, *sorted, *scratch;
    uint8_t *movers; /* k */
    uint32_t mover_count;
    cl_float threshold;
    uint32_t turn; /* of lane->any_prune */
};

enum status prune_open(struct prune *prune, struct filter *filter, bool tensor, struct error *err);
void prune_close(struct prune *prune);

/* Chooses for k centroids that have moved by at most drifts[] (distances) since the pass before;
 * NULL: there was none. *incremental tells whether tiles are to be split; then the movers are set.
 * Precedes filter_set_centroids. */
enum status prune_plan(bool *incremental, struct prune *prune, const double *drifts, uint32_t k,
                       struct error *err);

/* Lists a tile's rows for a search among all centroids, and for one among the movers and their own;
 * counts[0] and counts[1] are added to. */
enum status prune_split(struct prune *prune, struct tile *tile, cl_mem full, cl_mem partial,
                        cl_mem counts, struct error *err);

/* Finds the distances to their own centroids of the counts[1] rows listed (at most `most`), for
 * kernels that do not do so themselves: those with local tiles. */
enum status prune_own(struct prune *prune, struct tile *tile, cl_mem partial, cl_mem counts,
                      uint32_t most, struct error *err);

#endif
