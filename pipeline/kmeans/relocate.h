/* relocate.h: gives rows to empty clusters. */
#ifndef CLPIPE_KMEANS_RELOCATE_H
#define CLPIPE_KMEANS_RELOCATE_H

#include "kmeans/fit_state.h"

uint32_t relocate_count_empty(const struct fit *fit);

/* Gives each empty cluster the row farthest from its centroid (ties: the lowest), skipping
 * duplicates of rows already taken and rows of weight 0; the row becomes the centroid, and labels
 * and sums are updated. A row alone in its cluster has distance zero unless the centroid is not yet
 * the mean; taking it would only empty another cluster, so it stays. The host's labels and sums
 * must be current, and remain so. Collective. STATUS_FAILED: every row lies on its centroid. */
enum status relocate_rows(struct fit *fit, struct error *err);

#endif
