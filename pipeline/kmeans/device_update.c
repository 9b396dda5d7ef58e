/* device_update.c: launches of kmeans_moves.cl and kmeans_means.cl. */
#include "kmeans/device_update.h"
#include "kmeans.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP 256
/* sum_moves: columns per group, and groups per compute unit. */
#define COLUMNS     64
#define GROUPS_UNIT 32
/* count_moves, place_moves: groups per compute unit, as long as there are rows for them. */
#define ROW_GROUPS_UNIT 4
/* The device ranks shifts by comparing each with all; beyond this, sorting on the host is
 * faster. */
#define RANK_MOST (1u << 17)

static enum status open_kernels(struct device_update *device, struct lane_held **held,
                                struct error *err)
{
    struct lane *lane = device->update->lane;
    const bool weighted = device->update->own.weights;
    const char *program = "kmeans_moves", *options = device->options;
    snprintf(device->options, sizeof device->options, "-DDOUBLES=%d -DWEIGHTED=%d",
             !weighted && update_keeps_subnormals(lane->device), weighted);
    const struct lane_wanted kernels[] = {
        KERNEL(device->count, program, options, "count_moves"),
        KERNEL(device->scan, program, options, "scan_moves"),
        KERNEL(device->place, program, options, "place_moves"),
        KERNEL(device->sum, program, options, "sum_moves"),
        KERNEL(device->centroids, "kmeans_means", "", "move_centroids")};
    return lane_hold(held, lane, kernels, COUNT_OF(kernels), "sums of clusters", err);
}

static enum status open_buffers(struct device_update *device, struct lane_held **held,
                                struct error *err)
{
    const struct update *update = device->update;
    struct data *data = update->data;
    struct mailbox *mailbox = &device->filter->mailbox;
    const size_t k = update->k, entries = 2 * (size_t)data->tile_rows;
    const struct lane_wanted wanted[] = {
        BUFFER(device->totals, k * data->stride * sizeof(cl_long)),
        BUFFER(device->entries, entries * sizeof(cl_uint)),
        BUFFER(device->scales, (data->stride + 1) * sizeof(cl_int)),
        BUFFER(device->joined, k * sizeof(cl_uint)),
        BUFFER(device->left, k * sizeof(cl_uint)),
        BUFFER(device->cursors, k * sizeof(cl_uint)),
        BUFFER(device->entry_clusters, entries * sizeof(cl_int)),
        BUFFER(device->units, data->stride * sizeof(cl_double)),
        BUFFER(device->means, data->stride * sizeof(cl_double)),
    };
    if (lane_hold(held, update->lane, wanted, COUNT_OF(wanted), "sums of clusters", err) !=
        STATUS_OK)
        return err->status;
    for (uint32_t i = 0; i < data->tile_count; i++) {
        struct tile *tile = &data->tiles[i];
        const struct lane_wanted labels = BUFFER(tile->summed_labels, tile->rows * sizeof(cl_int));
        if (lane_hold(held, update->lane, &labels, 1, "labels", err) != STATUS_OK)
            return err->status;
    }
    if (mailbox_part_open(&device->counts, held, mailbox, (k + 3) * sizeof(cl_long), err) !=
            STATUS_OK ||
        (update->own.weights &&
         mailbox_part_open(&device->weights, held, mailbox, k * sizeof(cl_long), err) != STATUS_OK))
        return err->status;
    return mailbox_part_open(&device->moves, held, mailbox, k * sizeof(struct centroid_move), err);
}

enum status device_update_open(struct device_update *device, struct lane_held **held,
                               struct update *update, struct filter *filter, struct error *err)
{
    *device = (struct device_update){.update = update, .filter = filter};
    struct data *data = update->data;
    if (!filter->device_layout || !update->lane->device->int64_atomics || !data->resident)
        return STATUS_OK;
    const size_t stride = data->stride;
    enum status status = STATUS_FAILED;
    double *means = calloc(data->stride, sizeof *means);
    if (!means) {
        error_memory(err, data->stride * sizeof *means, "means");
        goto out;
    }
    for (uint32_t j = 0; j < data->dimension; j++)
        means[j] = column_stats_mean(&data->stats, j);
    if (open_kernels(device, held, err) != STATUS_OK ||
        open_buffers(device, held, err) != STATUS_OK ||
        lane_write(update->lane, "means", device->means, 0, data->stride * sizeof *means, means,
                   err) != STATUS_OK ||
        lane_write(update->lane, "units", device->units, 0, stride * sizeof *update->units,
                   update->units, err) != STATUS_OK ||
        lane_write(update->lane, "scales", device->scales, 0, stride * sizeof *update->scales,
                   update->scales, err) != STATUS_OK ||
        lane_write(update->lane, "scales", device->scales, stride * sizeof *update->scales,
                   sizeof data->weights.scale, &data->weights.scale, err) != STATUS_OK)
        goto out;
    device->used = true;
    status = STATUS_OK;
out:
    free(means);
    return status;
}

static size_t bytes_of_sums(const struct device_update *device)
{
    return (size_t)device->update->k * device->update->data->stride * sizeof(cl_long);
}

/* Writes counts and weights of update->own. */
static enum status write_counts(struct device_update *device, struct error *err)
{
    const struct update *update = device->update;
    const size_t bytes = update->k * sizeof(cl_long);
    memset(device->counts.host, 0, bytes + 3 * sizeof(cl_long));
    memcpy(device->counts.host, update->own.counts, bytes);
    device->entries_before = 0;
    if (lane_write(update->lane, "counts", device->counts.buffer, 0, bytes + 3 * sizeof(cl_long),
                   device->counts.host, err) != STATUS_OK)
        return err->status;
    return update->own.weights ? lane_write(update->lane, "weights", device->weights.buffer, 0,
                                            bytes, update->own.weights, err)
                               : STATUS_OK;
}

/* Writes all but the sums. */
static enum status write_clusters(struct device_update *device, struct error *err)
{
    struct lane *lane = device->update->lane;
    const size_t clusters = device->update->k * sizeof(cl_uint);
    if (lane_fill(lane, "zero sums", device->joined, 0, 0, clusters, err) != STATUS_OK ||
        lane_fill(lane, "zero sums", device->left, 0, 0, clusters, err) != STATUS_OK)
        return err->status;
    return write_counts(device, err);
}

enum status device_update_write(struct device_update *device, struct error *err)
{
    const struct update *update = device->update;
    return write_clusters(device, err) == STATUS_OK
               ? lane_write(update->lane, "sums", device->totals, 0, bytes_of_sums(device),
                            update->own.values, err)
               : err->status;
}

enum status device_update_read(struct device_update *device, struct error *err)
{
    return lane_read(device->update->lane, "sums", device->totals, 0, bytes_of_sums(device),
                     device->update->own.values, err);
}

enum status device_update_reset(struct device_update *device, struct error *err)
{
    const struct data *data = device->update->data;
    enum status status = write_clusters(device, err);
    if (status == STATUS_OK)
        status =
            lane_fill(data->lane, "zero sums", device->totals, 0, 0, bytes_of_sums(device), err);
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++)
        status = lane_fill(data->lane, "zero sums", data->tiles[i].summed_labels, UINT32_MAX, 0,
                           data->tiles[i].rows * sizeof(cl_int), err);
    device->no_rows = true;
    return status;
}

/* --- a pass ---------------------------------------------------------------------------------- */

/* The kernel ignores this buffer if rows have no weights. */
static cl_mem row_weights_of(const struct device_update *device, const struct tile *tile)
{
    return tile->weights ? tile->weights : device->scales;
}

static enum status launch_sum(struct device_update *device, struct tile *tile, struct error *err)
{
    const struct update *update = device->update;
    const cl_uint stride = update->data->stride;
    const bool weighted = update->own.weights;
    const cl_mem row_weights = row_weights_of(device, tile);
    const cl_mem weights = weighted ? device->weights.buffer : device->counts.buffer;
    /* The weights are summed like one more column. */
    const size_t columns = (stride + weighted + COLUMNS - 1) / COLUMNS, local[2] = {COLUMNS, 1};
    const size_t spans = (2 * (size_t)tile->rows + KMEANS_MOVES_SPAN - 1) / KMEANS_MOVES_SPAN;
    size_t workers = update->lane->device->compute_units * GROUPS_UNIT / columns + 1;
    const size_t global[2] = {columns * COLUMNS, workers < spans ? workers : spans};
    return LANE_RUN_2D(update->lane, "sum moves", device->sum, global, local, err, OCL_ARG(tile->x),
                       OCL_ARG(device->scales), OCL_ARG(device->entries),
                       OCL_ARG(device->entry_clusters), OCL_ARG(row_weights),
                       OCL_ARG(device->counts.buffer), OCL_ARG(device->totals), OCL_ARG(weights),
                       OCL_ARG(stride), OCL_ARG(update->k));
}

/* How a tile's rows are divided among the groups of count_moves and place_moves. */
struct deal {
    cl_uint each; /* rows per work-item */
    cl_uint bins; /* in a group's table */
    size_t bytes; /* of the table; not 0 even without bins */
};

/* A table is cleared and scanned even if no row moves, so it has no more bins than rows. */
static struct deal deal_rows(const struct device_update *device, const struct tile *tile)
{
    const struct update *update = device->update;
    const struct ocl_device *own = update->lane->device;
    const uint64_t items = (uint64_t)own->compute_units * ROW_GROUPS_UNIT * GROUP;
    const uint64_t wanted = (tile->rows / items / KMEANS_MOVES_STEP + 1) * KMEANS_MOVES_STEP;
    const uint32_t k = update->k;
    struct deal deal = {.each = KMEANS_MOVES_EACH, .bytes = sizeof(cl_uint)};
    if (wanted < deal.each)
        deal.each = (cl_uint)wanted;
    if (k <= deal.each * GROUP && k * sizeof(cl_uint) <= own->local_memory) {
        deal.bins = k;
        deal.bytes = k * sizeof(cl_uint);
    }
    return deal;
}

enum status device_update_tile(struct device_update *device, struct tile *tile,
                               const struct device_count *unless, struct error *err)
{
    const struct update *update = device->update;
    struct lane *lane = update->lane;
    const cl_uint rows = tile->rows, k = update->k;
    const struct deal deal = deal_rows(device, tile);
    const uint64_t items = ((uint64_t)rows + deal.each - 1) / deal.each;
    const cl_mem left = unless ? unless->counts : device->counts.buffer;
    const cl_uint at = unless ? unless->index : KMEANS_ALWAYS;
    const cl_mem weights = row_weights_of(device, tile);
    if (LANE_RUN(lane, "count moves", device->count, items, GROUP, err, OCL_ARG(tile->labels),
                 OCL_ARG(tile->summed_labels), OCL_ARG(weights), OCL_ARG(device->joined),
                 OCL_ARG(device->left), OCL_ARG(left), OCL_ARG(at), OCL_ARG(rows),
                 OCL_ARG(deal.each), OCL_ARG(deal.bins), OCL_LOCAL(deal.bytes)) != STATUS_OK)
        return err->status;
    if (LANE_RUN(lane, "scan moves", device->scan, KMEANS_SCAN_ITEMS, KMEANS_SCAN_ITEMS, err,
                 OCL_ARG(device->joined), OCL_ARG(device->left), OCL_ARG(device->cursors),
                 OCL_ARG(device->counts.buffer), OCL_ARG(k)) != STATUS_OK)
        return err->status;
    if (LANE_RUN(lane, "place moves", device->place, items, GROUP, err, OCL_ARG(tile->labels),
                 OCL_ARG(tile->summed_labels), OCL_ARG(weights), OCL_ARG(device->cursors),
                 OCL_ARG(device->entries), OCL_ARG(device->entry_clusters), OCL_ARG(left),
                 OCL_ARG(at), OCL_ARG(rows), OCL_ARG(deal.each), OCL_ARG(deal.bins),
                 OCL_LOCAL(deal.bytes)) != STATUS_OK)
        return err->status;
    return launch_sum(device, tile, err);
}

enum status device_update_centroids(struct device_update *device, struct prune *prune, bool anyway,
                                    const struct device_count *unless, struct error *err)
{
    struct update *update = device->update;
    struct filter *filter = device->filter;
    const struct data *data = update->data;
    const cl_uint stride = data->stride, columns = data->dimension, k = update->k;
    const cl_uint cosine = data->transform.metric == METRIC_COSINE, move_some = anyway;
    const cl_double shift_scale = prune_shift_scale(prune);
    const cl_mem sums = device->meets ? device->all_sums : device->totals;
    const cl_mem counts = device->meets ? device->all_counts : device->counts.buffer;
    const cl_mem weights = update->own.weights ? device->weights.buffer : counts;
    const cl_double weight_unit =
        update->own.weights ? ldexp(1.0, -data->weights.scale) : 0; /* 0: rows have no weights */
    if (LANE_RUN(update->lane, "move centroids", device->centroids, (uint64_t)k * KMEANS_LANES,
                 KMEANS_LANES, err, OCL_ARG(sums), OCL_ARG(counts), OCL_ARG(weights),
                 OCL_ARG(weight_unit), OCL_ARG(device->units), OCL_ARG(device->means),
                 OCL_ARG(filter->centre_buffer), OCL_ARG(filter->centroids),
                 OCL_ARG(device->moves.buffer), OCL_ARG(prune->shifts), OCL_ARG(k), OCL_ARG(stride),
                 OCL_ARG(columns), OCL_ARG(cosine), OCL_ARG(shift_scale),
                 OCL_ARG(move_some)) != STATUS_OK ||
        (prune->tensor && filter->bounds_usable && k <= RANK_MOST &&
         prune_plan_ahead(prune, k, unless, err) != STATUS_OK))
        return err->status;
    return STATUS_OK;
}

enum status device_update_again(struct device_update *device, struct prune *prune,
                                struct error *err)
{
    const struct data *data = device->update->data;
    uint64_t moved;
    for (uint32_t i = 0; i < data->tile_count; i++)
        if (device_update_tile(device, &data->tiles[i], NULL, err) != STATUS_OK)
            return err->status;
    if ((prune && device_update_centroids(device, prune, true, NULL, err) != STATUS_OK) ||
        mailbox_read(&device->filter->mailbox, err) != STATUS_OK)
        return err->status;
    device_update_count(&moved, device);
    return STATUS_OK;
}

void device_update_count(uint64_t *moved, struct device_update *device)
{
    struct sums *own = &device->update->own;
    const size_t k = device->update->k;
    const cl_long *counts = device->counts.host;
    const uint64_t all = (uint64_t)counts[k + 1], now = all - device->entries_before;
    device->entries_before = all;
    memcpy(own->counts, counts, k * sizeof *counts);
    if (own->weights)
        memcpy(own->weights, device->weights.host, k * sizeof *own->weights);
    /* A row that was in no cluster only joins one. */
    *moved = device->no_rows ? now : now / 2;
    device->no_rows = false;
}

/* --- several ranks --------------------------------------------------------------------------- */

/* Bytes that a rank visits at a time: sums of usual size need one visit, and large ones need little
 * memory. */
#define PIECE_BYTES (8u << 20)

static size_t piece_values(const struct update *update)
{
    const size_t all = (size_t)update->k * update->data->stride;
    const size_t most = PIECE_BYTES / sizeof(cl_long);
    return all < most ? all : most;
}

enum status device_update_join(struct device_update *device, struct lane_held **held,
                               struct error *err)
{
    const struct update *update = device->update;
    struct comm *comm = update->data->comm;
    const size_t k = update->k;
    int64_t able = device->used && !update->own.weights;
    if (comm->size == 1)
        return STATUS_OK;
    if (comm_sum(comm, &able, &able, 1, err) != STATUS_OK)
        return err->status;
    device->meets = able == comm->size;
    const struct lane_wanted wanted[] = {
        KERNEL(device->add, "kmeans_moves", device->options, "add_sums"),
        BUFFER(device->all_sums, k * update->data->stride * sizeof(cl_long)),
        BUFFER(device->all_counts, (k + 3) * sizeof(cl_long)),
        BUFFER(device->arrived, piece_values(update) * sizeof(cl_long)),
        HOST(device->host_counts, k + 3)};
    return device->meets
               ? lane_hold(held, update->lane, wanted, COUNT_OF(wanted), "sums of clusters", err)
               : STATUS_OK;
}

struct piece {
    struct device_update *device;
    size_t from, count;  /* values */
    struct prune *prune; /* of the last piece, after which centroids move; else NULL */
};

/* Adds what has arrived to the rank's own sums (first) or to the sums so far. */
static enum status add(const struct piece *piece, bool first, struct error *err)
{
    const struct device_update *device = piece->device;
    const cl_ulong from = piece->from, count = piece->count;
    const cl_mem to = first ? device->totals : device->all_sums;
    return LANE_RUN(device->update->lane, "add sums", device->add, count, 256, err,
                    OCL_ARG(device->all_sums), OCL_ARG(to), OCL_ARG(device->arrived), OCL_ARG(from),
                    OCL_ARG(count));
}

/* Waits for everything enqueued. */
static enum status finish(const struct piece *piece, struct error *err)
{
    struct device_update *device = piece->device;
    cl_long one;
    if (!piece->prune)
        return lane_read(device->update->lane, "sums", device->all_sums, 0, sizeof one, &one, err);
    return device_update_centroids(device, piece->prune, false, NULL, err) == STATUS_OK
               ? mailbox_read(&device->filter->mailbox, err)
               : err->status;
}

/* Adds the other ranks' sums; no longer reads them on return. */
static enum status add_others(void *context, const void *const *all, struct error *err)
{
    const struct piece *piece = context;
    const struct device_update *device = piece->device;
    struct lane *lane = device->update->lane;
    const struct comm *comm = device->update->data->comm;
    enum status status = STATUS_OK;
    for (uint32_t i = 1; i < comm->size && status == STATUS_OK; i++) {
        const int64_t *theirs = all[(comm->rank + i) % comm->size];
        status = lane_send(lane, "send sums", device->arrived, 0, piece->count * sizeof *theirs,
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

static enum status meet_piece(struct piece *piece, struct error *err)
{
    struct device_update *device = piece->device;
    const struct update *update = device->update;
    struct comm *comm = update->data->comm;
    const size_t offset = piece->from * sizeof(cl_long), bytes = piece->count * sizeof(cl_long);
    int64_t *own = update->own.values + piece->from, *all = update->all.values + piece->from;
    if (offset > 0 &&
        lane_read(update->lane, "sums", device->totals, offset, bytes, own, err) != STATUS_OK)
        return err->status;
    if (comm_can_visit(comm))
        return comm_visit(comm, update->own.values, add_others, piece, err);
    if (comm_sum(comm, all, own, piece->count, err) != STATUS_OK ||
        lane_send(update->lane, "send sums", device->all_sums, offset, bytes, all, err) !=
            STATUS_OK)
        return err->status;
    return finish(piece, err);
}

static enum status send_counts(struct device_update *device, struct error *err)
{
    const struct update *update = device->update;
    int64_t *all = device->host_counts;
    const uint32_t k = update->k;
    memcpy(all, update->all.counts, k * sizeof *all);
    all[k + 2] = 0;
    for (uint32_t c = 0; c < k; c++)
        all[k + 2] += all[c] == 0;
    return lane_send(update->lane, "counts", device->all_counts, 0, (k + 3) * sizeof *all, all,
                     err);
}

enum status device_update_send(struct device_update *device, struct error *err)
{
    const struct update *update = device->update;
    return ocl_enqueue_read(update->lane->compute, "sums", device->totals, false, 0,
                            piece_values(update) * sizeof(cl_long), update->own.values,
                            OCL_NO_WAITS, NULL, err);
}

enum status device_update_meet(struct device_update *device, struct prune *prune, struct error *err)
{
    const struct update *update = device->update;
    const size_t all = (size_t)update->k * update->data->stride, most = piece_values(update);
    if (send_counts(device, err) != STATUS_OK)
        return err->status;
    for (size_t from = 0; from < all; from += most) {
        const bool last = all - from <= most;
        struct piece piece = {device, from, last ? all - from : most, last ? prune : NULL};
        if (meet_piece(&piece, err) != STATUS_OK)
            return err->status;
    }
    return STATUS_OK;
}

/* --- to the host and back -------------------------------------------------------------------- */

enum status device_update_read_centroids(struct device_update *device, float *centroids,
                                         struct error *err)
{
    const struct update *update = device->update;
    return lane_read(update->lane, "centroids", device->filter->centroids, 0,
                     (size_t)update->k * update->data->stride * sizeof *centroids, centroids, err);
}

enum status device_update_fetch(struct device_update *device, int32_t *labels, float *centroids,
                                struct error *err)
{
    struct data *data = device->update->data;
    enum status status =
        centroids ? device_update_read_centroids(device, centroids, err) : STATUS_OK;
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++)
        status =
            fetch_copy(&data->fetch, "labels", data->tiles[i].labels,
                       data->tiles[i].rows * sizeof *labels, labels + data->tiles[i].offset, err);
    return status;
}

enum status device_update_store(struct device_update *device, const int32_t *labels,
                                struct error *err)
{
    const struct data *data = device->update->data;
    enum status status = device_update_write(device, err);
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++)
        status =
            lane_write(data->lane, "labels", data->tiles[i].summed_labels, 0,
                       data->tiles[i].rows * sizeof *labels, labels + data->tiles[i].offset, err);
    return status;
}
