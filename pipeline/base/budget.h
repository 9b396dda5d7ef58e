/* budget.h: admission by bytes. Takers wait until their bytes fit, first come first served; a taker
 * that wants more than the whole is admitted when everything else has been given back, so that a
 * large item waits and does not fail. */
#ifndef CLPIPE_BASE_BUDGET_H
#define CLPIPE_BASE_BUDGET_H

#include "base/error.h"
#include <stdint.h>

struct budget;

/* One of so many bytes; all calls from any thread. STATUS_FAILED: out of memory. */
enum status budget_open(struct budget **out, uint64_t bytes, struct error *err);
/* Takes `bytes` (0 is free); false if the budget was aborted. */
bool budget_take(struct budget *budget, uint64_t bytes);
/* Gives back what was taken, in one call or in several. */
void budget_give(struct budget *budget, uint64_t bytes);
/* Wakes all takers, which get false, now and later. */
void budget_abort(struct budget *budget);
/* Nobody may be waiting. Accepts NULL and NULLs. */
void budget_close(struct budget **budget);

#endif
