/* alike.h: of images of a cluster that are alike one stays (Abbas et al., SemDeDup, 2023, where any of them
 * may). */
#ifndef CLPIPE_SELECTION_ALIKE_H
#define CLPIPE_SELECTION_ALIKE_H

#include "selection/selection.h"

/* Takes from the candidates of a selection each one that has a cosine of at least config->alike with one of
 * its cluster that stays: the images of a cluster are looked at in the order of the preference, and each
 * names the first that it is like. So no two that stay are alike. Rows without values stay. Counts what
 * clusters hide where the file has neighbours by cosine. STATUS_FAILED: a cluster does not fit the memory. */
enum status alike_leave_out(struct selection *selection, struct error *err);

#endif
