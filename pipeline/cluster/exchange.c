/* exchange.c: pieces of the sums on their way between devices. */
#include "cluster/exchange.h"
#include "kmeans.h"
#include <stdlib.h>
#include <string.h>

/* What a rank visits at a time: sums of usual sizes take one visit, large ones little memory. */
#define PIECE_BYTES (8u << 20)

static size_t piece_values(const struct update *update)
{
    const size_t all = (size_t)update->k * update->data->stride;
    const size_t most = PIECE_BYTES / sizeof(cl_long);
    return all < most ? all : most;
}

/* The same answer on all ranks. */
static enum status agree(bool *used, struct comm *comm, const struct device_update *device,
                         struct error *err)
{
    int64_t able = device->used && !device->update->own.weights;
    *used = false;
    if (comm->size == 1)
        return STATUS_OK;
    if (comm_sum(comm, &able, &able, 1, err) != STATUS_OK)
        return err->status;
    *used = able == comm->size;
    return STATUS_OK;
}

enum status exchange_open(struct exchange *exchange, struct comm *comm,
                          struct device_update *device, struct error *err)
{
    *exchange = (struct exchange){.comm = comm, .device = device};
    if (agree(&exchange->used, comm, device, err) != STATUS_OK || !exchange->used)
        return err->status;
    const struct update *update = device->update;
    const size_t k = update->k;
    const struct lane_wanted wanted[] = {
        KERNEL(exchange->add, device->program, "add_sums"),
        BUFFER(exchange->sums, k * update->data->stride * sizeof(cl_long)),
        BUFFER(exchange->counts, (k + 3) * sizeof(cl_long)),
        BUFFER(exchange->arrived, piece_values(update) * sizeof(cl_long)),
        HOST(exchange->host_counts, k + 3)};
    device->all_sums = &exchange->sums;
    device->all_counts = &exchange->counts;
    return lane_hold(&exchange->held, update->lane, wanted, COUNT_OF(wanted), "sums of clusters",
                     err);
}

void exchange_close(struct exchange *exchange)
{
    lane_release(&exchange->held);
    *exchange = (struct exchange){0};
}

/* --- a piece --------------------------------------------------------------------------------- */

struct piece {
    struct exchange *exchange;
    size_t from, count;                                    /* values */
    enum status (*then)(void *context, struct error *err); /* after the last one; else NULL */
    void *context;
};

/* sums become what the rank has and what has arrived; or what they are and what has arrived. */
static enum status add(const struct piece *piece, bool first, struct error *err)
{
    struct exchange *exchange = piece->exchange;
    const struct update *update = exchange->device->update;
    const cl_ulong from = piece->from, count = piece->count;
    const cl_mem to = first ? exchange->device->totals : exchange->sums;
    return LANE_RUN(update->lane, "add sums", exchange->add, count, 256, err,
                    OCL_ARG(exchange->sums), OCL_ARG(to), OCL_ARG(exchange->arrived), OCL_ARG(from),
                    OCL_ARG(count));
}

/* Waits for all that was enqueued. */
static enum status wait_for_sums(const struct exchange *exchange, struct error *err)
{
    cl_long one;
    return lane_read(exchange->device->update->lane, "sums", exchange->sums, 0, sizeof one, &one,
                     err);
}

static enum status finish(const struct piece *piece, struct error *err)
{
    return piece->then ? piece->then(piece->context, err) : wait_for_sums(piece->exchange, err);
}

/* Adds the other ranks' sums, of which nothing is read any more on return. */
static enum status add_others(void *context, const void *const *all, struct error *err)
{
    const struct piece *piece = context;
    const struct exchange *exchange = piece->exchange;
    struct lane *lane = exchange->device->update->lane;
    const uint32_t size = exchange->comm->size, rank = exchange->comm->rank;
    enum status status = STATUS_OK;
    for (uint32_t i = 1; i < size && status == STATUS_OK; i++) {
        const int64_t *theirs = all[(rank + i) % size];
        status = lane_send(lane, "send sums", exchange->arrived, 0, piece->count * sizeof *theirs,
                           theirs + piece->from, err);
        if (status == STATUS_OK)
            status = add(piece, i == 1, err);
    }
    if (status == STATUS_OK)
        status = finish(piece, err);
    if (status != STATUS_OK)
        lane_settle(lane);
    return status;
}

static enum status exchange_piece(const struct piece *piece, struct error *err)
{
    struct exchange *exchange = piece->exchange;
    const struct update *update = exchange->device->update;
    const size_t offset = piece->from * sizeof(cl_long), bytes = piece->count * sizeof(cl_long);
    if (offset > 0 && lane_read(update->lane, "sums", exchange->device->totals, offset, bytes,
                                update->own.values + piece->from, err) != STATUS_OK)
        return err->status;
    if (comm_can_visit(exchange->comm))
        return comm_visit(exchange->comm, update->own.values, add_others, (void *)(uintptr_t)piece,
                          err);
    /* Nobody needs what all.values hold while centroids move on devices. */
    int64_t *totals = update->all.values + piece->from;
    if (comm_sum(exchange->comm, totals, update->own.values + piece->from, piece->count, err) !=
            STATUS_OK ||
        lane_send(update->lane, "send sums", exchange->sums, offset, bytes, totals, err) !=
            STATUS_OK)
        return err->status;
    return finish(piece, err);
}

static enum status send_counts(struct exchange *exchange, struct error *err)
{
    const struct update *update = exchange->device->update;
    int64_t *all = exchange->host_counts;
    const uint32_t k = update->k;
    memcpy(all, update->all.counts, k * sizeof *all);
    all[k + 2] = 0;
    for (uint32_t c = 0; c < k; c++)
        all[k + 2] += all[c] == 0;
    return lane_send(update->lane, "counts", exchange->counts, 0, (k + 3) * sizeof *all, all, err);
}

enum status exchange_begin(struct exchange *exchange, struct error *err)
{
    const struct update *update = exchange->device->update;
    return ocl_enqueue_read(update->lane->compute, "sums", exchange->device->totals, false, 0,
                            piece_values(update) * sizeof(cl_long), update->own.values,
                            OCL_NO_WAITS, NULL, err);
}

enum status exchange_end(struct exchange *exchange,
                         enum status (*then)(void *context, struct error *err), void *context,
                         struct error *err)
{
    const struct update *update = exchange->device->update;
    const size_t all = (size_t)update->k * update->data->stride, most = piece_values(update);
    if (send_counts(exchange, err) != STATUS_OK)
        return err->status;
    for (size_t from = 0; from < all; from += most) {
        const bool last = all - from <= most;
        const struct piece piece = {.exchange = exchange,
                                    .from = from,
                                    .count = last ? all - from : most,
                                    .then = last ? then : NULL,
                                    .context = context};
        if (exchange_piece(&piece, err) != STATUS_OK)
            return err->status;
    }
    return STATUS_OK;
}
