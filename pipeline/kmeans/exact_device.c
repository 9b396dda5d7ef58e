/* exact_device.c: chooses where the canonical distance is evaluated, and launches kmeans_exact.cl on
 * devices with float64. */
#include "kmeans.h"
#include "kmeans/exact.h"
#include <stdio.h>

enum status exact_open(struct exact *exact, struct lane_held **held, struct filter *filter,
                       struct error *err)
{
    struct lane *lane = filter->lane;
    *exact =
        (struct exact){.ops = &exact_device, .filter = filter, .data = filter->data, .lane = lane};
    if (lane->host_exact) {
        exact->ops = &exact_host;
        return STATUS_OK;
    }
    snprintf(exact->options, sizeof exact->options, "-DGROUP=%u -DSPAN=%u%s",
             lane->tiled ? filter->width : 1, lane->tiled ? 1 : 16,
             lane->device->nvidia ? " -DNVIDIA" : "");
    const struct lane_wanted wanted[] = {
        KERNEL(exact->label, "kmeans_exact", exact->options, "assign_exact"),
        KERNEL(exact->distances, "kmeans_exact", exact->options, "label_distances"),
        KERNEL(exact->others, "kmeans_exact", exact->options, "other_distances"),
        BUFFER(exact->values, filter->data->tile_rows * sizeof(double))};
    return lane_hold(held, lane, wanted, COUNT_OF(wanted), "distances", err);
}

static enum status label_rows(struct exact *exact, struct tile *tile, cl_mem rows, cl_uint count,
                              cl_mem limit, struct error *err)
{
    struct filter *filter = exact->filter;
    if (count == 0)
        return STATUS_OK;
    if (filter_lay_out_all(filter, exact->centroids, err) != STATUS_OK)
        return err->status;
    const struct panels *all = &filter->all;
    const cl_uint stride = exact->data->stride, columns = exact->data->dimension;
    const size_t group = exact->lane->tiled ? filter->width : 1;
    return LANE_RUN(exact->lane, "assign exact", exact->label, (uint64_t)count * group, group, err,
                    OCL_ARG(tile->x), OCL_ARG(all->factors), OCL_ARG(all->ids),
                    OCL_ARG(filter->centroids), OCL_ARG(tile->norms),
                    OCL_ARG(filter->centre_buffer), OCL_ARG(rows), OCL_ARG(tile->labels),
                    OCL_ARG(tile->upper_bounds), OCL_ARG(limit), OCL_ARG(stride), OCL_ARG(columns),
                    OCL_ARG(all->count), OCL_ARG(all->width));
}

/* Work-items for all rows of a tile, and for a group of them. */
static uint64_t items_of(const struct exact *exact, const struct tile *tile)
{
    return (uint64_t)tile->rows * (exact->lane->tiled ? KMEANS_LANES : 1);
}

static size_t group_of(const struct exact *exact)
{
    return exact->lane->tiled ? exact->filter->width : 64;
}

static enum status label_distances(struct exact *exact, struct tile *tile, uint32_t slices,
                                   void (*take)(void *context, const struct fetch_slice *slice),
                                   void *context, struct error *err)
{
    const cl_uint rows = tile->rows, stride = exact->data->stride;
    if (LANE_RUN(exact->lane, "distances", exact->distances, items_of(exact, tile), group_of(exact),
                 err, OCL_ARG(tile->x), OCL_ARG(exact->filter->centroids), OCL_ARG(tile->labels),
                 OCL_ARG(exact->values), OCL_ARG(rows), OCL_ARG(stride)) != STATUS_OK)
        return err->status;
    return fetch_slices(&exact->data->fetch, "distances", exact->values,
                        tile->rows * sizeof(double), slices, take, context, err);
}

static enum status other_distances(struct exact *exact, struct tile *tile, double *distances,
                                   const int32_t *labels, uint32_t k, struct error *err)
{
    const cl_uint rows = tile->rows, stride = exact->data->stride;
    if (lane_write(exact->lane, "labels", tile->labels, 0, rows * sizeof *labels, labels, err) !=
            STATUS_OK ||
        LANE_RUN(exact->lane, "other distances", exact->others, items_of(exact, tile),
                 group_of(exact), err, OCL_ARG(tile->x), OCL_ARG(exact->filter->centroids),
                 OCL_ARG(tile->labels), OCL_ARG(exact->values), OCL_ARG(rows), OCL_ARG(stride),
                 OCL_ARG(k)) != STATUS_OK)
        return err->status;
    return fetch_copy(&exact->data->fetch, "distances", exact->values, rows * sizeof *distances,
                      distances, err);
}

const struct exact_ops exact_device = {
    .label = label_rows,
    .distances = label_distances,
    .other_distances = other_distances,
};
