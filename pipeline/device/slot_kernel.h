/* slot_kernel.h: steps whose kernels run over all parts of a slot. Internal to steps.
 *
 * The kernels `step->kernels`, each in the file of its name, are built with the same options. The
 * step's counts are entries, one per part, and work-items or work-groups of each kernel; an entry
 * has the index of its first work-item or work-group of each, by which a work-item finds its
 * part. */
#ifndef CLPIPE_DEVICE_SLOT_KERNEL_H
#define CLPIPE_DEVICE_SLOT_KERNEL_H

#include "device/step.h"

/* The state of such a step. */
struct slot_kernel {
    struct ocl_context *context;
    const struct step_node *node;
    bool cpu;          /* a CPU device */
    char options[160]; /* by default those for ranges of any size, and on CPUs -D CPU */
    unsigned count;    /* kernels in use: the first ones of the step */
    cl_kernel kernel[STEP_KERNELS_MAX];
    cl_mem constants; /* may be set by `build`; released by slot_kernel_close */
};

/* The step functions of these names. Open with all of the step's kernels. slot_kernel_enqueue
 * launches the only one with (in, entries, number of entries, number of work-items, out): `out` is
 * the arena, or the words of a step that produces values. */
enum status slot_kernel_open(void **state, struct step_needs *needs, struct ocl_context *context,
                             const struct step_node *node, uint64_t launch_bytes,
                             struct error *err);
/* The other functions of a step (device/step.h). */
void slot_kernel_close(void **state);
enum status slot_kernel_build(void *state, struct error *err);
enum status slot_kernel_prove(void *state, struct error *err);
enum status slot_kernel_enqueue(void *state, struct ocl_queue *queue, struct step_io *io,
                                struct error *err);

/* The usual number of work-items in a group. */
size_t slot_kernel_group(const struct ocl_device *device);

/* Launches kernel i, whose arguments are set. */
enum status slot_kernel_launch(const struct slot_kernel *slot_kernel, unsigned i,
                               struct ocl_queue *queue, struct step_io *io, size_t global,
                               size_t local, struct error *err);

/* Names of the commands for tables of parts. */
#define STEP_PARTS .upload = "upload parts", .unmap = "unmap parts", .map = "map parts"

/* Common fields of these steps, without and with the default launch. */
#define SLOT_KERNELS STEP_PARTS, .close = slot_kernel_close, .prove = slot_kernel_prove
#define SLOT_KERNEL                                                                                \
    SLOT_KERNELS, .open = slot_kernel_open, .build = slot_kernel_build,                            \
                  .enqueue = slot_kernel_enqueue

#endif
