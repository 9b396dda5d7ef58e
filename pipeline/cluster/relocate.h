/* relocate.h: rows for clusters that have none. */
#ifndef CLPIPE_CLUSTER_RELOCATE_H
#define CLPIPE_CLUSTER_RELOCATE_H

#include "cluster/fit_state.h"

uint32_t relocate_count_empty(const struct fit *fit);

/* Gives each empty cluster the row farthest from its centroid (ties to the lowest), rows of equal
 * values once, and none of weight 0; the row becomes the centroid, and labels and sums follow. A row
 * that is alone in its cluster is at distance zero unless the centroid is not the mean yet; taking
 * it would only empty another cluster, so it stays. Labels and sums of the host are the newest, and
 * are so afterwards. All ranks call it. STATUS_FAILED: no row is off its centroid. */
enum status relocate_rows(struct fit *fit, struct error *err);

#endif
