/* order.h: the methods that do not need rows' values (defined in order.c). */
#ifndef CLPIPE_JOBS_ORDER_H
#define CLPIPE_JOBS_ORDER_H

#include "jobs/selection.h"

enum status order_balanced(struct selection *selection, struct error *err);
enum status order_nearest(struct selection *selection, struct error *err);
enum status order_random(struct selection *selection, struct error *err);
void reason_balanced(const void *selection, uint64_t i, char text[SELECTION_REASON]);
void reason_nearest(const void *selection, uint64_t i, char text[SELECTION_REASON]);
void reason_random(const void *selection, uint64_t i, char text[SELECTION_REASON]);

#endif
