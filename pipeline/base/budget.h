/* budget.h: admission by bytes. Takers wait until their bytes fit, first come, first served; a
 * taker that wants more than the whole budget is admitted once everything else has been given back,
 * so a large item waits instead of failing. */
#ifndef CLPIPE_BASE_BUDGET_H
#define CLPIPE_BASE_BUDGET_H

#include "base/error.h"
#include <stdint.h>

struct budget;

/* Opens a budget of `bytes`. All calls may come from any thread. STATUS_FAILED: out of memory. */
enum status budget_open(struct budget **out, uint64_t bytes, struct error *err);
/* Takes `bytes`, waiting until they fit (0 never waits); false if the budget was aborted. */
bool budget_take(struct budget *budget, uint64_t bytes);
/* Gives back what was taken, in one call or in several. */
void budget_give(struct budget *budget, uint64_t bytes);
/* Wakes all takers; these and all later calls get false. */
void budget_abort(struct budget *budget);
/* No thread may be waiting. Accepts NULL; sets *budget to NULL. */
void budget_close(struct budget **budget);

#endif
