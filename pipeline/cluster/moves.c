/* moves.c: launches of kmeans_moves.cl and kmeans_means.cl. */
#include "cluster/moves.h"
#include "kmeans.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP 256
/* sum_moves: columns of a group, and groups for each compute unit. */
#define COLUMNS     64
#define GROUPS_UNIT 32
/* count_moves, place_moves: groups for each compute unit, while there are rows for them. */
#define ROW_GROUPS_UNIT 4
/* Drifts are ranked by comparing all with all; beyond so many the host sorts them sooner. */
#define RANK_MOST (1u << 17)

static bool can(const struct update *update, const struct filter *filter)
{
    return filter->device_layout && !update->weights && update->lane->device->int64_atomics &&
           update->data->resident && update->data->share.rows <= INT32_MAX;
}

static enum status open_kernels(struct moves *moves, struct error *err)
{
    struct lane *lane = moves->update->lane;
    char options[32];
    snprintf(options, sizeof options, "-DDOUBLES=%d", update_keeps_subnormals(lane->device));
    enum status status = lane_build(&moves->program, lane, "kmeans_moves", options, err);
    const struct {
        cl_kernel *kernel;
        cl_program program;
        const char *name;
    } kernels[] = {{&moves->count, moves->program, "count_moves"},
                   {&moves->scan, moves->program, "scan_moves"},
                   {&moves->place, moves->program, "place_moves"},
                   {&moves->sum, moves->program, "sum_moves"},
                   {&moves->centroids, moves->filter->means_program, "move_centroids"}};
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0] && status == STATUS_OK; i++)
        status = ocl_kernel(kernels[i].kernel, kernels[i].program, kernels[i].name, err);
    return status;
}

static enum status open_buffers(struct moves *moves, struct error *err)
{
    const struct update *update = moves->update;
    struct data *data = update->data;
    struct ocl_context *ocl = update->lane->ocl;
    const size_t k = update->k;
    const struct {
        cl_mem *buffer;
        size_t bytes;
    } wanted[] = {
        {&moves->joins, k * sizeof(cl_uint)},
        {&moves->leaves, k * sizeof(cl_uint)},
        {&moves->cursors, k * sizeof(cl_uint)},
        {&moves->owners, 2 * (size_t)data->tile_rows * sizeof(cl_int)},
        {&moves->units, data->stride * sizeof(cl_double)},
        {&moves->means, data->stride * sizeof(cl_double)},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && status == STATUS_OK; i++)
        status = ocl_buffer(wanted[i].buffer, ocl, CL_MEM_READ_WRITE, wanted[i].bytes, NULL,
                            "moves of rows", err);
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++)
        status = ocl_buffer(&data->tiles[i].kept, ocl, CL_MEM_READ_WRITE,
                            data->tiles[i].rows * sizeof(cl_int), NULL, "labels", err);
    if (status == STATUS_OK)
        status =
            report_part_open(&moves->counts, &moves->filter->report, (k + 3) * sizeof(cl_int), err);
    if (status == STATUS_OK)
        status = report_part_open(&moves->facts, &moves->filter->report,
                                  k * KMEANS_FACTS * sizeof(cl_double), err);
    return status;
}

enum status moves_open(struct moves *moves, struct update *update, struct filter *filter,
                       struct error *err)
{
    *moves = (struct moves){.update = update, .filter = filter};
    if (!can(update, filter))
        return STATUS_OK;
    struct data *data = update->data;
    double *means = calloc(data->stride, sizeof *means);
    enum status status =
        means ? open_kernels(moves, err) : error_memory(err, data->stride * sizeof *means, "means");
    if (status == STATUS_OK)
        status = open_buffers(moves, err);
    for (uint32_t j = 0; j < data->dimension && means; j++)
        means[j] = column_stats_mean(&data->stats, j);
    if (status == STATUS_OK)
        status = lane_write(update->lane, "means", moves->means, 0, data->stride * sizeof *means,
                            means, err);
    if (status == STATUS_OK)
        status = lane_write(update->lane, "units", moves->units, 0,
                            data->stride * sizeof *update->units, update->units, err);
    free(means);
    moves->used = status == STATUS_OK;
    return status;
}

void moves_close(struct moves *moves)
{
    cl_kernel kernels[] = {moves->count, moves->scan, moves->place, moves->sum, moves->centroids};
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i])
            clReleaseKernel(kernels[i]);
    if (moves->program)
        clReleaseProgram(moves->program);
    cl_mem *buffers[] = {&moves->joins,  &moves->leaves, &moves->cursors,
                         &moves->owners, &moves->units,  &moves->means};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        ocl_buffer_release(buffers[i]);
    report_part_close(&moves->counts);
    report_part_close(&moves->facts);
    *moves = (struct moves){0};
}

static enum status fill(struct moves *moves, cl_mem buffer, uint32_t pattern, size_t bytes,
                        struct error *err)
{
    return ocl_enqueue_fill(moves->update->lane->compute, "zero counts", buffer, pattern, 0, bytes,
                            OCL_NO_WAITS, NULL, err);
}

enum status moves_reset(struct moves *moves, struct error *err)
{
    const size_t k = moves->update->k;
    const struct data *data = moves->update->data;
    enum status status = fill(moves, moves->joins, 0, k * sizeof(cl_uint), err);
    if (status == STATUS_OK)
        status = fill(moves, moves->leaves, 0, k * sizeof(cl_uint), err);
    if (status == STATUS_OK)
        status = fill(moves, moves->counts.buffer, 0, (k + 3) * sizeof(cl_int), err);
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++)
        status =
            fill(moves, data->tiles[i].kept, UINT32_MAX, data->tiles[i].rows * sizeof(cl_int), err);
    moves->entries = 0;
    moves->fresh = true;
    return status;
}

/* --- a pass ---------------------------------------------------------------------------------- */

static enum status launch_sum(struct moves *moves, struct tile *tile, struct error *err)
{
    const struct update *update = moves->update;
    const cl_uint stride = update->data->stride;
    enum status status =
        ocl_args(moves->sum, err, sizeof(cl_mem), &tile->x, sizeof(cl_mem), &update->scale_buffer,
                 sizeof(cl_mem), &update->entries, sizeof(cl_mem), &moves->owners, sizeof(cl_mem),
                 &moves->counts.buffer, sizeof(cl_mem), &update->totals, sizeof stride, &stride,
                 sizeof update->k, &update->k, OCL_ARGS_END);
    const size_t columns = (stride + COLUMNS - 1) / COLUMNS, local[2] = {COLUMNS, 1};
    const size_t spans = (2 * (size_t)tile->rows + KMEANS_MOVES_SPAN - 1) / KMEANS_MOVES_SPAN;
    size_t workers = update->lane->device->compute_units * GROUPS_UNIT / columns + 1;
    const size_t global[2] = {columns * COLUMNS, workers < spans ? workers : spans};
    if (status == STATUS_OK)
        status = ocl_enqueue_kernel(update->lane->compute, "sum moves", moves->sum, 2, global,
                                    local, OCL_NO_WAITS, NULL, err);
    return status;
}

/* How a tile's rows are dealt out to the groups of count_moves and place_moves. */
struct deal {
    cl_uint each; /* rows of a work-item */
    cl_uint bins; /* of a group's table */
    size_t bytes; /* of the table; some even where it has no bins */
};

/* A table is cleared and looked through whether or not a row moves: it has no more bins than the
 * group has rows. */
static struct deal deal_rows(const struct moves *moves, const struct tile *tile)
{
    const struct ocl_device *device = moves->update->lane->device;
    const uint64_t items = (uint64_t)device->compute_units * ROW_GROUPS_UNIT * GROUP;
    const uint64_t wanted = (tile->rows / items / KMEANS_MOVES_STEP + 1) * KMEANS_MOVES_STEP;
    const uint32_t k = moves->update->k;
    struct deal deal = {.each = KMEANS_MOVES_EACH, .bytes = sizeof(cl_uint)};
    if (wanted < deal.each)
        deal.each = (cl_uint)wanted;
    if (k <= deal.each * GROUP && k * sizeof(cl_uint) <= device->local_memory) {
        deal.bins = k;
        deal.bytes = k * sizeof(cl_uint);
    }
    return deal;
}

enum status moves_tile(struct moves *moves, struct tile *tile, const struct report_count *unless,
                       struct error *err)
{
    const struct update *update = moves->update;
    struct lane *lane = update->lane;
    const cl_uint rows = tile->rows, k = update->k;
    const struct deal deal = deal_rows(moves, tile);
    const uint64_t items = ((uint64_t)rows + deal.each - 1) / deal.each;
    const cl_mem left = unless ? unless->counts : moves->counts.buffer;
    const cl_uint at = unless ? unless->index : KMEANS_ALWAYS;
    enum status status =
        ocl_args(moves->count, err, sizeof(cl_mem), &tile->labels, sizeof(cl_mem), &tile->kept,
                 sizeof(cl_mem), &moves->joins, sizeof(cl_mem), &moves->leaves, sizeof left, &left,
                 sizeof at, &at, sizeof rows, &rows, sizeof deal.each, &deal.each, sizeof deal.bins,
                 &deal.bins, deal.bytes, (void *)NULL, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = lane_launch(lane, "count moves", moves->count, items, GROUP, err);
    if (status == STATUS_OK)
        status = ocl_args(moves->scan, err, sizeof(cl_mem), &moves->joins, sizeof(cl_mem),
                          &moves->leaves, sizeof(cl_mem), &moves->cursors, sizeof(cl_mem),
                          &moves->counts.buffer, sizeof k, &k, OCL_ARGS_END);
    if (status == STATUS_OK)
        status =
            lane_launch(lane, "scan moves", moves->scan, KMEANS_SCAN_ITEMS, KMEANS_SCAN_ITEMS, err);
    if (status == STATUS_OK)
        status = ocl_args(moves->place, err, sizeof(cl_mem), &tile->labels, sizeof(cl_mem),
                          &tile->kept, sizeof(cl_mem), &moves->cursors, sizeof(cl_mem),
                          &update->entries, sizeof(cl_mem), &moves->owners, sizeof left, &left,
                          sizeof at, &at, sizeof rows, &rows, sizeof deal.each, &deal.each,
                          sizeof deal.bins, &deal.bins, deal.bytes, (void *)NULL, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = lane_launch(lane, "place moves", moves->place, items, GROUP, err);
    return status == STATUS_OK ? launch_sum(moves, tile, err) : status;
}

enum status moves_centroids(struct moves *moves, struct prune *prune,
                            const struct report_count *unless, struct error *err)
{
    struct update *update = moves->update;
    struct filter *filter = moves->filter;
    const struct data *data = update->data;
    const cl_uint stride = data->stride, columns = data->dimension, k = update->k;
    const cl_uint cosine = data->transform.metric == METRIC_COSINE;
    const cl_double drift_scale = prune_drift_scale(prune);
    enum status status =
        ocl_args(moves->centroids, err, sizeof(cl_mem), &update->totals, sizeof(cl_mem),
                 &moves->counts.buffer, sizeof(cl_mem), &moves->units, sizeof(cl_mem),
                 &moves->means, sizeof(cl_mem), &filter->centre_buffer, sizeof(cl_mem),
                 &filter->centroids, sizeof(cl_mem), &moves->facts.buffer, sizeof(cl_mem),
                 &prune->drifts, sizeof k, &k, sizeof stride, &stride, sizeof columns, &columns,
                 sizeof cosine, &cosine, sizeof drift_scale, &drift_scale, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = lane_launch(update->lane, "move centroids", moves->centroids,
                             (uint64_t)k * KMEANS_LANES, KMEANS_LANES, err);
    if (status == STATUS_OK && prune->tensor && filter->bounded && k <= RANK_MOST)
        status = prune_plan_ahead(prune, k, unless, err);
    return status;
}

void moves_count(uint64_t *moved, struct moves *moves)
{
    struct update *update = moves->update;
    const size_t k = update->k;
    const cl_int *counts = moves->counts.host;
    const cl_uint all = (cl_uint)counts[k + 1], now = all - moves->entries;
    moves->entries = all;
    for (size_t c = 0; c < k; c++)
        update->counts[c] = (uint64_t)counts[c];
    /* A row that was in no cluster only joins one. */
    *moved = moves->fresh ? now : now / 2;
    moves->fresh = false;
}

const struct centroid_move *moves_centroid_moves(const struct moves *moves)
{
    return moves->facts.host;
}

/* --- to the host and back -------------------------------------------------------------------- */

enum status moves_read_centroids(struct moves *moves, float *centroids, struct error *err)
{
    const struct update *update = moves->update;
    return lane_read(update->lane, "centroids", moves->filter->centroids, 0,
                     (size_t)update->k * update->data->stride * sizeof *centroids, centroids, err);
}

enum status moves_fetch(struct moves *moves, int32_t *labels, float *centroids, struct error *err)
{
    struct data *data = moves->update->data;
    enum status status = centroids ? moves_read_centroids(moves, centroids, err) : STATUS_OK;
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++)
        status =
            fetch_copy(&data->fetch, "labels", data->tiles[i].labels,
                       data->tiles[i].rows * sizeof *labels, labels + data->tiles[i].offset, err);
    return status;
}

enum status moves_store(struct moves *moves, const int32_t *labels, struct error *err)
{
    struct update *update = moves->update;
    const struct data *data = update->data;
    cl_int *counts = moves->counts.host;
    for (uint32_t c = 0; c < update->k; c++)
        counts[c] = (cl_int)update->counts[c];
    enum status status = lane_write(update->lane, "counts", moves->counts.buffer, 0,
                                    update->k * sizeof *counts, counts, err);
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++)
        status =
            lane_write(update->lane, "labels", data->tiles[i].kept, 0,
                       data->tiles[i].rows * sizeof *labels, labels + data->tiles[i].offset, err);
    return status;
}
