/* workers.h: a fixed team of host threads for loops with independent iterations. */
#ifndef CLPIPE_BASE_WORKERS_H
#define CLPIPE_BASE_WORKERS_H

#include "base/error.h"
#include <stdint.h>

struct workers;

/* `threads` in total, including the caller of workers_run; fewer if they cannot be created. */
enum status workers_open(struct workers **out, unsigned threads, struct error *err);
unsigned workers_count(const struct workers *workers);

/* Within a part: the number of its thread, below workers_count, for data that each thread has of
 * its own. */
unsigned workers_number(void);

/* Calls part(context, i) for i in [0, parts), in any order and on any of the threads, and returns
 * when all are done. One caller at a time: a second one waits. */
void workers_run(struct workers *workers, void (*part)(void *context, uint64_t i), void *context,
                 uint64_t parts);

/* The same for parts that can fail: returns the error of the lowest part that fails; parts above it
 * may be skipped. workers NULL: only the caller works. */
enum status workers_try(struct workers *workers,
                        enum status (*part)(void *context, uint64_t i, struct error *err),
                        void *context, uint64_t parts, struct error *err);

/* workers_run by a team of up to `threads` for this call alone; it needs at least the caller. */
void workers_once(unsigned threads, void (*part)(void *context, uint64_t i), void *context,
                  uint64_t parts);

/* Accepts a pointer to NULL, and sets *workers to NULL. */
void workers_close(struct workers **workers);

#endif
