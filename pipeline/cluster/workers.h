/* workers.h: a fixed team of host threads for loops whose parts do not depend on each other. */
#ifndef CLPIPE_CLUSTER_WORKERS_H
#define CLPIPE_CLUSTER_WORKERS_H

#include "base/error.h"
#include <stdint.h>

struct workers;

/* `threads` in all, the caller of workers_run counted; fewer if they cannot be had. */
enum status workers_open(struct workers **out, unsigned threads, struct error *err);
unsigned workers_count(const struct workers *workers);

/* Calls part(context, i) for i in [0, parts), in any order and on any of the threads, and returns
 * when all are done. From one thread at a time: a second caller waits. */
void workers_run(struct workers *workers, void (*part)(void *context, uint64_t i), void *context,
                 uint64_t parts);

/* Accepts NULL and NULLs. */
void workers_close(struct workers **workers);

#endif
