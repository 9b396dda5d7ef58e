/* slot_kernel.h: steps with a single kernel over all parts of a slot. Internal to steps.
 *
 * The kernel `step->kernel`, in the file of that name, takes (in, entries, number of entries,
 * number of work-items, out). The step's counts are entries, one per part, and work-items; an entry
 * has the index of its first work-item, with which a work-item finds its part. `out` is the arena,
 * or the words of a step that produces values. */
#ifndef CLPIPE_DEVICE_SLOT_KERNEL_H
#define CLPIPE_DEVICE_SLOT_KERNEL_H

#include "device/step.h"

/* The step functions of these names. */
enum status slot_kernel_open(void **state, struct step_needs *needs, struct ocl_context *context,
                             const struct step_node *node, uint64_t launch_bytes,
                             struct error *err);
void slot_kernel_close(void **state);
enum status slot_kernel_build(void *state, struct error *err);
enum status slot_kernel_prove(void *state, struct error *err);
enum status slot_kernel_enqueue(void *state, struct ocl_queue *queue, struct step_io *io,
                                struct error *err);

const struct step_node *slot_kernel_node(const void *state);
/* Is it built with -D CPU, as on all CPU devices? */
bool slot_kernel_on_cpu(const void *state);

/* Common fields of these steps. */
#define SLOT_KERNEL                                                                                \
    .upload = "upload parts", .unmap = "unmap parts", .map = "map parts",                          \
    .open = slot_kernel_open, .close = slot_kernel_close, .build = slot_kernel_build,              \
    .prove = slot_kernel_prove, .enqueue = slot_kernel_enqueue

#endif
