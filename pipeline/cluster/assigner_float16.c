/* assigner_float16.c: the float16 filter of tensor cores, which lists for an undecided row the
 * centroids that may be its nearest, for the canonical distance; and the float32 filter for rows with
 * too many of them. */
#include "cluster/assigner.h"
#include "cluster/float16_filter.h"
#include <stdlib.h>

/* This few rows do not fill a GPU: the float32 filter would take as long as for more. */
#define FEW_ROWS 2048

/* What begin_tile is still to lay out of the pass' centroids: while the first tile's rows are split,
 * there is time. */
enum layout { LAID_OUT, ALL_DUE, ALL_AND_MOVED_DUE };

struct tensor {
    struct assign *assign;
    struct float16_filter filter;
    enum layout layout;
};

static void close_tensor(void **state)
{
    struct tensor *tensor = *state;
    if (tensor)
        float16_close(&tensor->filter);
    free(tensor);
    *state = NULL;
}

static enum status open_tile(void *state, struct tile *tile, struct error *err)
{
    struct tensor *tensor = state;
    return float16_open_tile(&tensor->filter, tile, err);
}

static enum status open_tensor(void **out, struct assign *assign, struct error *err)
{
    struct data *data = assign->data;
    struct tensor *tensor = *out = calloc(1, sizeof *tensor);
    if (!tensor)
        return error_memory(err, sizeof *tensor, "centroids");
    tensor->assign = assign;
    if (float16_open(&tensor->filter, assign->filter, err) != STATUS_OK)
        return err->status;
    /* The rows' copies stay with the tiles, for all filters. */
    for (uint32_t i = 0; i < data->tile_count; i++)
        if (!data->tiles[i].float16)
            if (float16_open_tile(&tensor->filter, &data->tiles[i], err) != STATUS_OK)
                return err->status;
    return STATUS_OK;
}

static bool usable(void *state)
{
    const struct tensor *tensor = state;
    return float16_usable(&tensor->filter);
}

static enum status begin_pass(void *state, bool *incremental, struct error *err)
{
    (void)err;
    struct tensor *tensor = state;
    tensor->layout = *incremental ? ALL_AND_MOVED_DUE : ALL_DUE;
    return STATUS_OK;
}

static enum status lay_out(struct tensor *tensor, struct error *err)
{
    struct assign *assign = tensor->assign;
    struct float16_filter *filter = &tensor->filter;
    struct prune *prune = &assign->prune;
    const enum layout due = tensor->layout;
    tensor->layout = LAID_OUT;
    if (due != LAID_OUT && float16_lay_out(filter, assign->device_centroids, err) != STATUS_OK)
        return err->status;
    if (due != ALL_AND_MOVED_DUE)
        return STATUS_OK;
    enum status status = prune->moved_on_device
                             ? prune_list(prune, filter->some.ids, assign->filter->k, err)
                             : float16_send_ids(filter, prune->moved, prune->moved_count, err);
    if (status != STATUS_OK)
        return status;
    return float16_lay_out_some(filter, assign->device_centroids, prune->moved_count, err);
}

static enum status begin_tile(void *state, struct tile *tile, bool incremental, struct error *err)
{
    struct tensor *tensor = state;
    struct assign *assign = tensor->assign;
    struct float16_filter *filter = &tensor->filter;
    cl_mem counts = counters_buffer(&assign->counters);
    if (float16_round(filter, tile, err) != STATUS_OK ||
        (incremental &&
         prune_split(&assign->prune, tile, assign->all, assign->moved, counts, err) != STATUS_OK) ||
        lay_out(tensor, err) != STATUS_OK ||
        (incremental && float16_search_some(filter, tile, assign->moved, COUNT_MOVED, assign->all,
                                            counts, COUNT_RETRY, COUNT_ALL, err) != STATUS_OK) ||
        float16_search(filter, tile, incremental ? assign->all : NULL, COUNT_ALL, assign->limits,
                       counts, COUNT_FLOAT16_UNDECIDED, err) != STATUS_OK)
        return err->status;
    return float16_decide(filter, tile, assign->limits, assign->moved, counts,
                          COUNT_FLOAT16_UNDECIDED, COUNT_LEFT, err);
}

static enum status end_tile(bool *left, void *state, struct tile *tile, bool incremental,
                            struct error *err)
{
    (void)incremental;
    struct assign *assign = ((struct tensor *)state)->assign;
    const cl_uint *counts = counters_host(&assign->counters);
    const cl_uint count = counts[COUNT_LEFT];
    assign->decided += counts[COUNT_FLOAT16_UNDECIDED] - count;
    *left = count > 0;
    if (count > FEW_ROWS)
        return float32_search(assign, tile, assign->moved, count, err);
    assign->decided += count;
    return assign->exact->ops->label(assign->exact, tile, assign->moved, count, assign->limits,
                                     err);
}

const struct assigner assigner_float16 = {
    .name = "float16",
    .possible = float16_pays,
    .open = open_tensor,
    .close = close_tensor,
    .open_tile = open_tile,
    .usable = usable,
    .begin_pass = begin_pass,
    .begin_tile = begin_tile,
    .end_tile = end_tile,
    .in_one_wait = true,
};
