/* on_host.c: maps, computes, unmaps. */
#include "device/on_host.h"

enum status on_host(enum status (*compute)(const void *context, void *const mapped[3],
                                           uint32_t entries, struct error *err),
                    const void *context, struct ocl_queue *queue, struct step_io *io,
                    struct error *err)
{
    cl_mem buffers[] = {io->in, io->table, io->values};
    const cl_map_flags flags[] = {CL_MAP_READ, CL_MAP_READ, CL_MAP_READ | CL_MAP_WRITE};
    void *mapped[3] = {NULL};
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < 3 && status == STATUS_OK; i++) {
        size_t bytes = 0;
        clGetMemObjectInfo(buffers[i], CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
        status = ocl_enqueue_map(&mapped[i], queue, "map for the network", buffers[i], true, flags[i],
                                 0, bytes, io->waits, NULL, err);
    }
    if (status == STATUS_OK)
        status = compute(context, mapped, io->counts[0], err);
    for (unsigned i = 0; i < 3; i++)
        if (mapped[i] &&
            ocl_enqueue_unmap(queue, "unmap", buffers[i], mapped[i], OCL_NO_WAITS,
                              i == 2 ? &io->events[0] : NULL, status == STATUS_OK ? err : NULL) !=
                STATUS_OK)
            status = STATUS_FAILED;
    io->last = &io->events[0];
    return status;
}
