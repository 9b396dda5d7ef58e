/* relocate.c: selects the farthest rows of all ranks, in order.
 *
 * A rank offers its own farthest rows, about as many at a time as there are empty clusters. All ranks
 * merge the offers of all and so take the same rows; a rank whose offer is used up offers its next
 * rows. */
#include "base/held.h"
#include "base/minmax.h"
#include "kmeans/canonical.h"
#include "kmeans/fit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Minimum number of rows that a rank offers at a time; more clusters are rarely empty. */
#define BATCH_MIN 16
/* Rows whose largest distance is kept. */
#define BLOCK_ROWS 4096

struct far_row {
    double distance; /* 0: the rank has no more */
    uint64_t row;
    float weight;
    int32_t label;
};

struct far_rows {
    struct fit *fit;
    double *distances; /* of the rank's rows; 0: offered, or never to be */
    double *largest;   /* of each block of them */
    uint64_t blocks;
    uint32_t batch;
    struct far_row *given; /* size x batch: each rank's last offer */
    float *values;         /* size x batch x stride: these rows */
    uint32_t *used;        /* rows used of each; size */
};

static bool is_before(const struct far_row *a, const struct far_row *b)
{
    return a->distance > b->distance || (a->distance == b->distance && a->row < b->row);
}

uint32_t relocate_count_empty(const struct fit *fit)
{
    uint32_t empty = 0;
    for (uint32_t c = 0; c < fit->config->k; c++)
        empty += fit->update->all.counts[c] == 0;
    return empty;
}

static double largest_of_block(const struct far_rows *far, uint64_t block)
{
    const uint64_t end = min_u64((block + 1) * BLOCK_ROWS, far->fit->data->share.rows);
    double largest = 0;
    for (uint64_t i = block * BLOCK_ROWS; i < end; i++)
        largest = fmax(largest, far->distances[i]);
    return largest;
}

/* The next of the rank's rows, farthest first, then in their order; distance 0: there is none. */
static struct far_row take_farthest(struct far_rows *far)
{
    const struct data *data = far->fit->data;
    uint64_t block = 0;
    for (uint64_t i = 1; i < far->blocks; i++)
        block = far->largest[i] > far->largest[block] ? i : block;
    const double distance = far->largest[block];
    uint64_t at = block * BLOCK_ROWS;
    if (distance == 0)
        return (struct far_row){0};
    while (far->distances[at] != distance)
        at++;
    far->distances[at] = 0;
    far->largest[block] = largest_of_block(far, block);
    return (struct far_row){distance, data->share.first + at,
                            data->weights.of_row ? data->weights.of_row[at] : 1,
                            far->fit->labels[at]};
}

static enum status far_rows_open(struct far_rows *far, struct fit *fit, uint32_t empty,
                                 struct held *held, struct error *err)
{
    const struct data_share *share = &fit->data->share;
    const uint32_t size = fit->comm->size;
    *far = (struct far_rows){.fit = fit,
                             .blocks = (share->rows + BLOCK_ROWS - 1) / BLOCK_ROWS,
                             .batch = max_u32(empty, BATCH_MIN)};
    const size_t given = (size_t)size * far->batch;
    far->distances = held_array(held, share->rows, sizeof *far->distances);
    far->largest = held_array(held, far->blocks, sizeof *far->largest);
    far->given = held_array(held, given, sizeof *far->given);
    far->used = held_array(held, size, sizeof *far->used);
    far->values = held_array(held, given * fit->data->stride, sizeof *far->values);
    if (held_check(held, "relocating empty clusters", err) != STATUS_OK)
        return err->status;
    for (uint32_t rank = 0; rank < size; rank++)
        far->used[rank] = far->batch;
    struct data *data = fit->data;
    struct tile *tile;
    enum status status = data_begin(data, err);
    while (status == STATUS_OK && (status = data_next(data, &tile, err)) == STATUS_OK)
        status = assign_tile_distances(fit->assign, tile, far->distances + tile->offset, err);
    for (uint64_t i = 0; i < share->rows && data->weights.of_row; i++)
        far->distances[i] = data->weights.of_row[i] == 0 ? 0 : far->distances[i];
    for (uint64_t i = 0; i < far->blocks; i++)
        far->largest[i] = largest_of_block(far, i);
    return data_end(data, status);
}

/* Makes ranks whose offers are used up offer their next rows. */
static enum status refill(struct far_rows *far, struct error *err)
{
    struct comm *comm = far->fit->comm;
    const size_t batch = far->batch;
    bool wanted = false;
    for (uint32_t rank = 0; rank < comm->size; rank++)
        wanted = wanted || far->used[rank] == batch;
    if (!wanted)
        return STATUS_OK;
    struct far_row *own = far->given + comm->rank * batch;
    for (size_t i = 0; i < batch && far->used[comm->rank] == batch; i++)
        own[i] = take_farthest(far);
    for (uint32_t rank = 0; rank < comm->size; rank++)
        if (far->used[rank] == batch)
            far->used[rank] = 0;
    const size_t all = comm->size * batch;
    uint64_t *rows = malloc(all * sizeof *rows);
    if (!rows)
        return error_memory(err, all * sizeof *rows, "relocating empty clusters");
    enum status status = comm_gather_each(comm, far->given, batch * sizeof *own, err);
    for (size_t i = 0; i < all; i++)
        rows[i] = far->given[i].row;
    if (status == STATUS_OK)
        status = shard_rows(far->fit->shard, far->values, rows, (uint32_t)all, err);
    free(rows);
    return status;
}

/* The next row of all ranks, and its values; distance 0 if there is none. */
static enum status next_row(struct far_row *row, const float **values, struct far_rows *far,
                            struct error *err)
{
    const uint32_t size = far->fit->comm->size;
    if (refill(far, err) != STATUS_OK)
        return err->status;
    uint32_t best = 0;
    for (uint32_t rank = 1; rank < size; rank++)
        if (is_before(&far->given[(size_t)rank * far->batch + far->used[rank]],
                      &far->given[(size_t)best * far->batch + far->used[best]]))
            best = rank;
    const size_t at = (size_t)best * far->batch + far->used[best];
    *row = far->given[at];
    *values = far->values + at * far->fit->data->stride;
    if (row->distance > 0)
        far->used[best]++;
    return STATUS_OK;
}

/* Makes a row the centroid of a cluster, on the host or, if only that has them, on the device. */
static enum status place_centroid(struct fit *fit, const float *values, uint32_t cluster,
                                  struct error *err)
{
    const uint32_t stride = fit->data->stride;
    const size_t bytes = stride * sizeof *values, at = cluster * bytes;
    struct filter *filter = &fit->shard->filter;
    struct centroid_move *move = &fit->move[cluster];
    float *centroid = fit->centroids + (size_t)cluster * stride;
    if (fit->host_stale &&
        lane_read(fit->lane, "centroid", filter->centroids, at, bytes, centroid, err) != STATUS_OK)
        return err->status;
    const double shift = canonical_distance(values, centroid, stride);
    fit->shifts[cluster] += sqrt(shift);
    memcpy(centroid, values, bytes);
    if (!fit->host_stale)
        return STATUS_OK;
    filter_measure(move, filter, centroid);
    move->shift = shift;
    const cl_mem moves = fit->device_update->moves.buffer;
    return lane_send(fit->lane, "centroid", filter->centroids, at, bytes, centroid, err) ==
                   STATUS_OK
               ? lane_send(fit->lane, "move", moves, cluster * sizeof *move, sizeof *move, move,
                           err)
               : err->status;
}

/* Gives one row to an empty cluster. */
static enum status give_row(struct fit *fit, const struct far_row *row, const float *values,
                            uint32_t cluster, bool place, struct error *err)
{
    fit->moving = fit->host_stale;
    if (place && place_centroid(fit, values, cluster, err) != STATUS_OK)
        return err->status;
    const bool own = shard_has_row(fit->shard, row->row);
    update_move_row(fit->update, values, row->weight, (uint32_t)row->label, cluster, own);
    if (!own)
        return STATUS_OK;
    struct tile *tile = data_tile_of(fit->data, row->row);
    const uint32_t at = (uint32_t)(row->row - tile->first);
    const int32_t label = (int32_t)cluster;
    fit->labels[tile->offset + at] = label;
    if (lane_send(fit->lane, "label", tile->labels, at * sizeof label, sizeof label,
                  &fit->labels[tile->offset + at], err) != STATUS_OK)
        return err->status;
    return assign_forget_row(fit->assign, tile, at, err);
}

static bool equal_rows(const float *a, const float *b, uint32_t stride)
{
    for (uint32_t j = 0; j < stride; j++)
        if (a[j] != b[j])
            return false;
    return true;
}

enum status relocate_rows(struct fit *fit, bool place, struct error *err)
{
    const uint32_t stride = fit->data->stride, empty = relocate_count_empty(fit);
    const uint64_t *counts = fit->update->all.counts;
    SCOPED_HELD held = {0};
    struct far_rows far = {0};
    struct far_row row = {0};
    uint32_t given = 0, cluster = 0;
    float *values = held_array(&held, (uint64_t)empty * stride, sizeof *values);
    enum status status = far_rows_open(&far, fit, empty, &held, err);
    while (status == STATUS_OK && given < empty) {
        const float *value = NULL;
        status = next_row(&row, &value, &far, err);
        if (status != STATUS_OK || row.distance == 0) /* every row lies on its centroid */
            break;
        if (counts[row.label] == 1)
            continue;
        uint32_t same = 0; /* index of an equal row given before */
        while (same < given && !equal_rows(value, values + (size_t)same * stride, stride))
            same++;
        if (same < given)
            continue;
        while (counts[cluster] > 0)
            cluster++;
        memcpy(values + (size_t)given++ * stride, value, stride * sizeof *value);
        status = give_row(fit, &row, value, cluster, place, err);
    }
    if (status == STATUS_OK && given == 0)
        status = error_set(err, STATUS_FAILED,
                           "k is %u, but there are fewer distinct rows; choose a smaller k",
                           fit->config->k);
    if (status == STATUS_OK && fit->shard->device_update.used && !fit->host_stale)
        status = device_update_store(&fit->shard->device_update, fit->labels, err);
    return status;
}
