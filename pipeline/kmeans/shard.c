/* shard.c: divides rows among devices.
 *
 * Rebalancing after each pass by the time it took was rejected: the devices of a run are alike, or
 * were selected by number. */
#include "kmeans/shard.h"
#include "kmeans.h"
#include "kmeans/method.h"
#include <stdlib.h>
#include <string.h>

/* Computes each rank's range of rows from the speeds of all devices. */
static enum status find_range(struct data_share *share, const struct shard *shard, uint64_t rows,
                              struct error *err)
{
    struct comm *comm = shard->comm;
    const uint64_t chunk = column_stats_chunk(rows), chunks = (rows + chunk - 1) / chunk;
    const struct ocl_device *device = shard->lane->device;
    enum status status = STATUS_FAILED;
    double *speeds = calloc(comm->size, sizeof *speeds), all = 0, reached = 0;
    uint64_t begin = 0, end = 0;
    if (!speeds) {
        error_memory(err, comm->size * sizeof *speeds, "ranks");
        goto out;
    }
    if (chunks < comm->size) {
        error_set(err, STATUS_FAILED, "%llu rows are too few for %u ranks",
                  (unsigned long long)rows, comm->size);
        goto out;
    }
    speeds[comm->rank] = (double)device->compute_units * device->clock_mhz + 1;
    if (comm_gather_each(comm, speeds, sizeof *speeds, err) != STATUS_OK)
        goto out;
    for (uint32_t i = 0; i < comm->size; i++)
        all += speeds[i];
    for (uint32_t i = 0; i <= comm->rank; i++) {
        begin = end;
        reached += speeds[i];
        /* Each gets at least one chunk and leaves one to each that follows. */
        const uint64_t most = chunks - (comm->size - 1 - i);
        end = (uint64_t)(reached / all * (double)chunks);
        end = end > begin ? end : begin + 1;
        end = end < most && i + 1 < comm->size ? end : most;
    }
    const uint64_t last = end * chunk;
    share->first = begin * chunk;
    share->rows = (last < rows ? last : rows) - share->first;
    status = STATUS_OK;
out:
    free(speeds);
    return status;
}

/* Programs built by one rank are in the cache for similar devices, so threads build one after
 * another; among processes, which may have separate caches, the first one builds before the
 * others. */
static enum status begin_builds(struct comm *comm, struct error *err)
{
    char token = 0;
    if (comm->apart)
        return comm->rank > 0 ? comm_broadcast(comm, &token, sizeof token, 0, err) : STATUS_OK;
    return comm_receive(comm, &token, sizeof token, err);
}

static enum status end_builds(struct comm *comm, struct error *err)
{
    char token = 0;
    if (comm->apart)
        return comm->rank == 0 ? comm_broadcast(comm, &token, sizeof token, 0, err) : STATUS_OK;
    return comm_send(comm, &token, sizeof token, err);
}

enum status shard_open(struct shard *shard, const struct rank *rank,
                       const struct cluster_config *config, struct error *err)
{
    const uint64_t rows = rank->source->rows;
    *shard = (struct shard){.comm = rank->comm, .lane = rank->lane};
    struct data_share share;
    struct cluster_config own = *config;
    if (find_range(&share, shard, rows, err) != STATUS_OK)
        return err->status;
    if (!shard->comm->apart)
        own.memory = (uint64_t)((double)config->memory * ((double)share.rows / (double)rows));
    struct lane_held **held = &shard->held;
    if (data_open(&shard->data, held, rank->comm, rank->lane, rank->source, &own, &share, err) !=
        STATUS_OK)
        return err->status;
    if (begin_builds(shard->comm, err) != STATUS_OK ||
        filter_open(&shard->filter, held, &shard->data, config->k, err) != STATUS_OK ||
        assign_open(&shard->assign, held, &shard->filter, err) != STATUS_OK ||
        end_builds(shard->comm, err) != STATUS_OK)
        return err->status;
    const size_t most = shard->data.tile_rows;
    const struct lane_wanted wanted[] = {HOST(shard->tile_labels, most),
                                         HOST(shard->tile_distances, most)};
    return lane_hold(held, rank->lane, wanted, COUNT_OF(wanted), "distances", err);
}

enum status shard_open_update(struct shard *shard, const struct cluster_config *config,
                              struct error *err)
{
    struct lane_held **held = &shard->held;
    if (begin_builds(shard->comm, err) != STATUS_OK ||
        update_open(&shard->update, held, &shard->data, config->k, method_samples(config), err) !=
            STATUS_OK ||
        device_update_open(&shard->device_update, held, &shard->update, &shard->filter, err) !=
            STATUS_OK ||
        end_builds(shard->comm, err) != STATUS_OK)
        return err->status;
    return device_update_join(&shard->device_update, held, err);
}

void shard_close(struct shard *shard)
{
    if (shard->lane)
        lane_settle(shard->lane);
    data_close(&shard->data);
    lane_release(&shard->held);
    *shard = (struct shard){0};
}

bool shard_has_row(const struct shard *shard, uint64_t row)
{
    return row - shard->data.share.first < shard->data.share.rows;
}

/* Where each rank's rows end, at `each` bytes per row; the caller frees it. */
static enum status find_ends(size_t **ends, const struct shard *shard, size_t each,
                             struct error *err)
{
    struct comm *comm = shard->comm;
    const struct data_share *share = &shard->data.share;
    *ends = calloc(comm->size, sizeof **ends);
    if (!*ends)
        return error_memory(err, comm->size * sizeof **ends, "ranks");
    (*ends)[comm->rank] = (size_t)(share->first + share->rows) * each;
    return comm_gather_each(comm, *ends, sizeof **ends, err);
}

enum status shard_collect(const struct shard *shard, void *all, const void *own, size_t each,
                          struct error *err)
{
    size_t *ends;
    enum status status = find_ends(&ends, shard, each, err);
    if (status == STATUS_OK)
        status = comm_collect(shard->comm, all, own, ends, err);
    free(ends);
    return status;
}

enum status shard_gather(const struct shard *shard, void *all, size_t each, struct error *err)
{
    size_t *ends;
    enum status status = find_ends(&ends, shard, each, err);
    if (status == STATUS_OK)
        status = comm_gather(shard->comm, all, ends, err);
    free(ends);
    return status;
}

/* Contributes zero bits for other ranks' rows, so that the sum has the bits of the row's owner. */
enum status shard_rows(struct shard *shard, float *out, const uint64_t *rows, uint32_t count,
                       struct error *err)
{
    const size_t stride = shard->data.stride, values = count * stride;
    enum status status = STATUS_OK;
    if (shard->comm->size == 1)
        return data_rows(&shard->data, out, rows, count, err);
    _Static_assert(KMEANS_LANES * sizeof(float) % sizeof(int64_t) == 0, "rows are whole int64");
    int64_t *bits = calloc(values, sizeof(float));
    if (!bits)
        return error_memory(err, values * sizeof(float), "rows");
    for (uint32_t from = 0, to; from < count && status == STATUS_OK; from = to) {
        const bool own = shard_has_row(shard, rows[from]);
        for (to = from + 1; to < count && shard_has_row(shard, rows[to]) == own; to++)
            ;
        if (own)
            status =
                data_rows(&shard->data, (float *)bits + from * stride, rows + from, to - from, err);
    }
    if (status == STATUS_OK)
        status = comm_sum(shard->comm, bits, bits, values * sizeof(float) / sizeof *bits, err);
    if (status == STATUS_OK)
        memcpy(out, bits, values * sizeof(float));
    free(bits);
    return status;
}
