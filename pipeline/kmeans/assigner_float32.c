/* assigner_float32.c: the float32 filter on any device; the canonical distance decides the rows
 * that it leaves. */
#include "kmeans/assign.h"
#include <math.h>

static enum status begin_pass(struct assign *assign, bool *incremental, struct error *err)
{
    /* The host must know which centroids have moved. */
    *incremental = *incremental && !assign->prune.moved_on_device;
    return filter_lay_out(assign->filter, assign->exact.centroids,
                          *incremental ? assign->prune.moved : NULL, err);
}

/* --- searches -------------------------------------------------------------------------------- */

/* Searches `count` rows (NULL: the whole tile) among `panels`; appends undecided rows to a list. */
struct search {
    const struct panels *panels;
    cl_mem rows;
    cl_uint count;
    cl_mem undecided;
    unsigned counter; /* of that list */
    cl_uint some;     /* the panels hold some centroids, or none: see label_among_some */
};

static enum status launch_search(struct assign *assign, struct tile *tile,
                                 const struct search *search, struct error *err)
{
    struct filter *filter = assign->filter;
    if (search->count == 0)
        return STATUS_OK;
    const cl_uint stride = assign->data->stride, columns = assign->data->dimension;
    const cl_uint use_rows = search->rows ? 1 : 0;
    const cl_uint panel_count = search->some ? filter->some.count : filter->all.count;
    cl_mem rows = search->rows ? search->rows : assign->all;
    cl_mem counts = counters_buffer(&assign->counters);
    const double spread = ldexp(1.0, filter->row_exponent - filter->exponent);
    const cl_float slack = (cl_float)(8 * canonical_error(stride) * spread * spread);
    uint64_t groups = (search->count + (uint64_t)filter->points - 1) / filter->points;
    size_t group = assign->lane->tiled ? 256 : 1;
    return LANE_RUN(
        assign->lane, "assign filter", filter->assign, groups * group, group, err, OCL_ARG(tile->x),
        OCL_ARG(search->panels->factors), OCL_ARG(search->panels->ids), OCL_ARG(filter->slope),
        OCL_ARG(filter->offset), OCL_ARG(tile->norms), OCL_ARG(filter->centre_buffer),
        OCL_ARG(filter->centroids), OCL_ARG(rows), OCL_ARG(tile->labels),
        OCL_ARG(tile->upper_bounds), OCL_ARG(tile->lower_bounds), OCL_ARG(assign->limits),
        OCL_ARG(search->undecided), OCL_ARG(counts), OCL_ARG(search->counter),
        OCL_ARG(search->count), OCL_ARG(stride), OCL_ARG(columns), OCL_ARG(panel_count),
        OCL_ARG(use_rows), OCL_ARG(search->some), OCL_ARG(slack), OCL_ARG(filter->half_scale),
        OCL_ARG(filter->growth), OCL_ARG(filter->tiny), OCL_ARG(filter->bounds));
}

enum status float32_search(struct assign *assign, struct tile *tile, cl_mem rows, cl_uint count,
                           struct error *err)
{
    const struct search search = {.panels = &assign->filter->all,
                                  .rows = rows,
                                  .count = count,
                                  .undecided = assign->undecided,
                                  .counter = COUNT_UNDECIDED};
    if (count == 0)
        return STATUS_OK;
    enum status status = filter_lay_out_all(assign->filter, assign->exact.centroids, err);
    if (status == STATUS_OK)
        status = launch_search(assign, tile, &search, err);
    if (status == STATUS_OK)
        status = counters_read(&assign->counters, err);
    const cl_uint undecided = counters_host(&assign->counters)[COUNT_UNDECIDED];
    assign->decided += status == STATUS_OK ? undecided : 0;
    return status == STATUS_OK ? assign->exact.ops->label(&assign->exact, tile, assign->undecided,
                                                          undecided, assign->limits, err)
                               : status;
}

/* --- a tile ---------------------------------------------------------------------------------- */

/* Decides what the bounds and the moved centroids allow; the other rows are in assign->all. */
static enum status begin_tile(struct assign *assign, struct tile *tile, bool incremental,
                              struct error *err)
{
    struct filter *filter = assign->filter;
    struct prune *prune = &assign->prune;
    cl_mem counts = counters_buffer(&assign->counters);
    enum status status = filter_norms(filter, tile, err);
    if (status != STATUS_OK || !incremental)
        return status;
    status = prune_split(prune, tile, assign->all, assign->moved, counts, err);
    if (status == STATUS_OK)
        status = counters_read(&assign->counters, err);
    const cl_uint moved = counters_host(&assign->counters)[COUNT_MOVED];
    if (status == STATUS_OK && assign->lane->tiled)
        status = prune_own(prune, tile, assign->moved, counts, moved, err);
    const struct search search = {.panels = prune->moved_count > 0 ? &filter->some : &filter->all,
                                  .rows = assign->moved,
                                  .count = moved,
                                  .undecided = assign->all,
                                  .counter = COUNT_ALL,
                                  .some = 1};
    return status == STATUS_OK ? launch_search(assign, tile, &search, err) : status;
}

static enum status end_tile(bool *left, struct assign *assign, struct tile *tile, bool incremental,
                            struct error *err)
{
    const cl_uint count = incremental ? counters_host(&assign->counters)[COUNT_ALL] : tile->rows;
    *left = count > 0;
    return float32_search(assign, tile, incremental ? assign->all : NULL, count, err);
}

const struct assigner assigner_float32 = {
    .begin_pass = begin_pass,
    .begin_tile = begin_tile,
    .end_tile = end_tile,
};
