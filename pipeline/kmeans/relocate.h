/* relocate.h: gives rows to empty clusters. */
#ifndef CLPIPE_KMEANS_RELOCATE_H
#define CLPIPE_KMEANS_RELOCATE_H

#include "kmeans/fit_state.h"

uint32_t relocate_count_empty(const struct fit *fit);

/* Gives each empty cluster the row farthest from its centroid (ties: the lowest), skipping
 * duplicates of rows already taken and rows of weight 0; labels and counts are updated, sums only on
 * the host. A row alone in its cluster has distance zero unless the centroid is not yet the mean;
 * taking it would only empty another cluster, so it stays. place: the row becomes the centroid; else
 * the device moves all centroids afterwards. The host's labels must be current, and remain so, and
 * its sums unless fit->host_stale. Collective. STATUS_FAILED: every row lies on its centroid. */
enum status relocate_rows(struct fit *fit, bool place, struct error *err);

#endif
