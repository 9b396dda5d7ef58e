/* assign.c: chooses an assigner for each pass; code shared by all of them. */
#include "kmeans/assign.h"
#include <math.h>
#include <string.h>

enum status assign_open(struct assign *assign, struct lane_held **held, struct filter *filter,
                        struct error *err)
{
    struct data *data = filter->data;
    *assign = (struct assign){.lane = data->lane, .data = data, .filter = filter};
    const size_t list = data->tile_rows * sizeof(cl_uint);
    const struct lane_wanted lists[] = {BUFFER(assign->all, list), BUFFER(assign->moved, list),
                                        BUFFER(assign->undecided, list),
                                        BUFFER(assign->limits, list)};
    if (lane_hold(held, data->lane, lists, COUNT_OF(lists), "lists of rows", err) != STATUS_OK ||
        exact_open(&assign->exact, held, filter, err) != STATUS_OK ||
        counters_open(&assign->counters, held, &filter->mailbox, err) != STATUS_OK ||
        float16_open(assign, held, err) != STATUS_OK)
        return err->status;
    return prune_open(&assign->prune, held, filter, assign->tensor != NULL, err);
}

/* --- a pass ---------------------------------------------------------------------------------- */

static enum status begin_pass(struct assign *assign, bool *incremental, struct error *err)
{
    assign->assigner = float16_usable(assign) ? &assigner_float16 : &assigner_float32;
    return assign->assigner->begin_pass(assign, incremental, err);
}

enum status assign_centroids(struct assign *assign, bool *incremental, const float *centroids,
                             uint32_t k, const double *shifts, struct error *err)
{
    assign->exact.centroids = centroids;
    assign->device_centroids = NULL;
    if (prune_plan(incremental, &assign->prune, shifts, k, err) != STATUS_OK ||
        filter_set_centroids(assign->filter, centroids, k, err) != STATUS_OK)
        return err->status;
    return begin_pass(assign, incremental, err);
}

enum status assign_use_centroids(struct assign *assign, bool *incremental, uint32_t k,
                                 const double *shifts, cl_mem moves, struct error *err)
{
    struct prune *prune = &assign->prune;
    assign->device_centroids = moves;
    enum status status = STATUS_OK;
    if (prune->plan_ready)
        prune_choose(incremental, prune, k);
    else
        status = prune_plan(incremental, prune, shifts, k, err);
    if (status != STATUS_OK)
        return status;
    filter_use_centroids(assign->filter, k);
    return begin_pass(assign, incremental, err);
}

/* --- a tile ---------------------------------------------------------------------------------- */

enum status assign_forget_row(struct assign *assign, struct tile *tile, uint32_t row,
                              struct error *err)
{
    static const cl_float unknown = INFINITY;
    return lane_send(assign->lane, "bound", tile->upper_bounds, row * sizeof unknown,
                     sizeof unknown, &unknown, err);
}

struct device_count assign_rows_left(const struct assign *assign)
{
    return (struct device_count){counters_buffer(&assign->counters), COUNT_LEFT};
}

enum status assign_begin_tile(struct assign *assign, struct tile *tile, bool incremental,
                              struct error *err)
{
    if (counters_begin_tile(&assign->counters, err) != STATUS_OK)
        return err->status;
    return assign->assigner->begin_tile(assign, tile, incremental, err);
}

enum status assign_end_tile(bool *left, struct assign *assign, struct tile *tile, bool incremental,
                            struct error *err)
{
    const cl_uint *counts = counters_host(&assign->counters);
    const uint64_t k = assign->filter->k;
    assign->scored += incremental ? counts[COUNT_ALL] * k +
                                        (uint64_t)counts[COUNT_MOVED] * assign->prune.moved_count
                                  : tile->rows * k;
    return assign->assigner->end_tile(left, assign, tile, incremental, err);
}

enum status assign_tile(struct assign *assign, struct tile *tile, bool incremental,
                        struct error *err)
{
    bool left;
    if (assign_begin_tile(assign, tile, incremental, err) != STATUS_OK)
        return err->status;
    /* If float32 searches all rows, nothing has been counted. */
    if ((incremental || assign->assigner->in_one_wait) &&
        counters_read(&assign->counters, err) != STATUS_OK)
        return err->status;
    return assign_end_tile(&left, assign, tile, incremental, err);
}

/* --- distances ------------------------------------------------------------------------------- */

enum status assign_take_distances(struct assign *assign, struct tile *tile, uint32_t slices,
                                  void (*take)(void *context, const struct fetch_slice *slice),
                                  void *context, struct error *err)
{
    return assign->exact.ops->distances(&assign->exact, tile, slices, take, context, err);
}

enum status assign_tile_distances(struct assign *assign, struct tile *tile, double *distances,
                                  struct error *err)
{
    return assign_take_distances(
        assign, tile, fetch_copiers(&assign->data->fetch, tile->rows * sizeof *distances),
        fetch_copy_slice, distances, err);
}
