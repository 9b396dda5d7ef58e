/* alike.h: keeps one of the images of a cluster that are alike (Abbas et al., SemDeDup, 2023, which
 * may keep any). */
#ifndef CLPIPE_JOBS_ALIKE_H
#define CLPIPE_JOBS_ALIKE_H

#include "jobs/selection.h"

/* Removes from the candidates each one whose cosine with a kept one of its cluster is at least
 * config->alike: the images of a cluster are considered in order of preference, and each names the
 * first that it is like. So no two kept images are alike. Rows without values are kept. If the file
 * has cosine neighbours, counts those hidden by cluster borders. STATUS_FAILED: a cluster does not
 * fit the memory. */
enum status alike_leave_out(struct selection *selection, struct error *err);

#endif
