/* on_host.h: a step whose device shares its memory with the host, which computes in place of a kernel. */
#ifndef CLPIPE_STEPS_ON_HOST_H
#define CLPIPE_STEPS_ON_HOST_H

#include "staging/step.h"

/* Maps the pictures, the table and the values of a slot, calls `compute` with them and the number of the table's
 * entries, and unmaps them, after an error, too: io->events[0] is that of the values. */
enum status on_host(enum status (*compute)(const void *context, void *const mapped[3],
                                           uint32_t entries, struct error *err),
                    const void *context, struct ocl_queue *queue, struct step_io *io,
                    struct error *err);

#endif
