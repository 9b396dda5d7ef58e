/* comm.c: a single rank exchanges nothing; several call their implementation. */
#include "ranks/comm.h"
#include <stdlib.h>
#include <string.h>

enum status comm_sum(struct comm *comm, int64_t *sums, const int64_t *values, size_t count,
                     struct error *err)
{
    if (comm->size > 1)
        return comm->ops->sum(comm, sums, values, count, err);
    if (sums != values)
        memcpy(sums, values, count * sizeof *sums);
    return STATUS_OK;
}

enum status comm_gather(struct comm *comm, void *all, const size_t *ends, struct error *err)
{
    return comm->size > 1 ? comm->ops->gather(comm, all, ends, err) : STATUS_OK;
}

enum status comm_collect(struct comm *comm, void *all, const void *own, const size_t *ends,
                         struct error *err)
{
    if (comm->size > 1)
        return comm->ops->collect(comm, all, own, ends, err);
    if (all != own)
        memcpy(all, own, ends[0]);
    return STATUS_OK;
}

enum status comm_gather_each(struct comm *comm, void *all, size_t bytes, struct error *err)
{
    return comm_gather_parts(comm, all, comm->size, bytes, err);
}

enum status comm_broadcast(struct comm *comm, void *data, size_t bytes, uint32_t root,
                           struct error *err)
{
    return comm->size > 1 ? comm->ops->broadcast(comm, data, bytes, root, err) : STATUS_OK;
}

enum status comm_receive(struct comm *comm, void *data, size_t bytes, struct error *err)
{
    return comm->rank > 0 ? comm->ops->receive(comm, data, bytes, err) : STATUS_OK;
}

enum status comm_send(struct comm *comm, const void *data, size_t bytes, struct error *err)
{
    return comm->rank + 1 < comm->size ? comm->ops->send(comm, data, bytes, err) : STATUS_OK;
}

enum status comm_fold(struct comm *comm, double *sums, size_t count, double *before,
                      void (*add)(void *context, double *sums), void *context, struct error *err)
{
    const size_t bytes = count * sizeof *sums;
    if (comm_receive(comm, sums, bytes, err) != STATUS_OK)
        return err->status;
    if (before)
        *before = sums[0];
    add(context, sums);
    if (comm_send(comm, sums, bytes, err) != STATUS_OK)
        return err->status;
    return comm_broadcast(comm, sums, bytes, comm->size - 1, err);
}

struct own_values {
    const double *values;
    uint64_t count;
};

static void add_values(void *context, double *sums)
{
    const struct own_values *own = context;
    for (uint64_t i = 0; i < own->count; i++)
        sums[0] += own->values[i];
}

enum status comm_fold_values(struct comm *comm, double *sum, double *before, const double *values,
                             uint64_t count, struct error *err)
{
    struct own_values own = {values, count};
    *sum = 0;
    return comm_fold(comm, sum, 1, before, add_values, &own, err);
}

bool comm_can_visit(const struct comm *comm)
{
    return comm->size == 1 || comm->ops->visit;
}

enum status comm_visit(struct comm *comm, const void *own,
                       enum status (*take)(void *context, const void *const *all,
                                           struct error *err),
                       void *context, struct error *err)
{
    return comm->size > 1 ? comm->ops->visit(comm, own, take, context, err)
                          : take(context, &own, err);
}

void comm_fail(struct comm *comm, const struct error *err)
{
    if (comm->size > 1)
        comm->ops->fail(comm, err);
}

void comm_part(uint64_t *begin, uint64_t *end, const struct comm *comm, uint32_t rank,
               uint64_t count)
{
    *begin = count / comm->size * rank + count % comm->size * rank / comm->size;
    *end = count / comm->size * (rank + 1) + count % comm->size * (rank + 1) / comm->size;
}

enum status comm_gather_parts(struct comm *comm, void *all, uint64_t count, size_t each,
                              struct error *err)
{
    if (comm->size == 1)
        return STATUS_OK;
    size_t *ends = malloc(comm->size * sizeof *ends);
    if (!ends)
        return error_memory(err, comm->size * sizeof *ends, "ranks");
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        uint64_t begin, end;
        comm_part(&begin, &end, comm, rank, count);
        ends[rank] = (size_t)end * each;
    }
    enum status status = comm->ops->gather(comm, all, ends, err);
    free(ends);
    return status;
}
