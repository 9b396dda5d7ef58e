/* diverse.h: k-centre greedy (Gonzalez, Clustering to minimize the maximum intercluster distance, 1985). */
#ifndef CLPIPE_JOBS_DIVERSE_H
#define CLPIPE_JOBS_DIVERSE_H

#include "jobs/selection.h"

enum status order_diverse(struct selection *selection, struct error *err);
void reason_diverse(const void *selection, uint64_t i, char text[SELECTION_REASON]);

#endif
