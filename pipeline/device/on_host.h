/* on_host.h: for steps computed by the host instead of a kernel, on devices that share its
 * memory. */
#ifndef CLPIPE_DEVICE_ON_HOST_H
#define CLPIPE_DEVICE_ON_HOST_H

#include "device/step.h"

/* Maps the pictures, the table and the values of a slot, calls `compute` with them and the number
 * of table entries, and unmaps them, also after errors; io->events[0] is the event of unmapping the
 * values. */
enum status on_host(enum status (*compute)(const void *context, void *const mapped[3],
                                           uint32_t entries, struct error *err),
                    const void *context, struct ocl_queue *queue, struct step_io *io,
                    struct error *err);

#endif
