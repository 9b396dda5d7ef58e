/* exact_device.c: launches of kmeans_exact.cl, on devices with float64. */
#include "kmeans.h"
#include "kmeans/exact.h"
#include <stdio.h>
#include <stdlib.h>

struct device {
    struct exact exact;
    struct lane_held *held;
    cl_kernel label, distances, others;
    cl_mem values; /* float64 per row of the largest tile */
};

static void close_device(struct exact *exact)
{
    struct device *device = (struct device *)exact;
    lane_release(&device->held);
    free(device);
}

static enum status open_device(struct exact **out, struct filter *filter, struct error *err)
{
    struct lane *lane = filter->lane;
    enum status status = STATUS_FAILED;
    char options[64];
    *out = NULL;
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return error_memory(err, sizeof *device, "distances");
    device->exact =
        (struct exact){.ops = &exact_device, .filter = filter, .data = filter->data, .lane = lane};
    snprintf(options, sizeof options, "-DGROUP=%u -DSPAN=%u%s", lane->tiled ? filter->width : 1,
             lane->tiled ? 1 : 16, lane->device->nvidia ? " -DNVIDIA" : "");
    if (lane_program(&device->exact.program, lane, "kmeans_exact", options, err) != STATUS_OK)
        goto out;
    const cl_program program = device->exact.program;
    const struct lane_wanted wanted[] = {
        KERNEL(device->label, program, "assign_exact"),
        KERNEL(device->distances, program, "label_distances"),
        KERNEL(device->others, program, "other_distances"),
        BUFFER(device->values, filter->data->tile_rows * sizeof(double))};
    if (lane_hold(&device->held, lane, wanted, COUNT_OF(wanted), "distances", err) != STATUS_OK)
        goto out;
    *out = &device->exact;
    status = STATUS_OK;
out:
    if (status != STATUS_OK)
        close_device(&device->exact);
    return status;
}

static enum status label_rows(struct exact *exact, struct tile *tile, cl_mem rows, cl_uint count,
                              cl_mem limit, struct error *err)
{
    const struct device *device = (struct device *)exact;
    struct filter *filter = exact->filter;
    if (count == 0)
        return STATUS_OK;
    if (filter_lay_out_all(filter, exact->centroids, err) != STATUS_OK)
        return err->status;
    const struct panels *all = &filter->all;
    const cl_uint stride = exact->data->stride, columns = exact->data->dimension;
    const size_t group = exact->lane->tiled ? filter->width : 1;
    return LANE_RUN(exact->lane, "assign exact", device->label, (uint64_t)count * group, group, err,
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
    const struct device *device = (struct device *)exact;
    const cl_uint rows = tile->rows, stride = exact->data->stride;
    if (LANE_RUN(exact->lane, "distances", device->distances, items_of(exact, tile),
                 group_of(exact), err, OCL_ARG(tile->x), OCL_ARG(exact->filter->centroids),
                 OCL_ARG(tile->labels), OCL_ARG(device->values), OCL_ARG(rows),
                 OCL_ARG(stride)) != STATUS_OK)
        return err->status;
    return fetch_slices(&exact->data->fetch, "distances", device->values,
                        tile->rows * sizeof(double), slices, take, context, err);
}

static enum status other_distances(struct exact *exact, struct tile *tile, double *distances,
                                   const int32_t *labels, uint32_t k, struct error *err)
{
    const struct device *device = (struct device *)exact;
    const cl_uint rows = tile->rows, stride = exact->data->stride;
    if (lane_write(exact->lane, "labels", tile->labels, 0, rows * sizeof *labels, labels, err) !=
            STATUS_OK ||
        LANE_RUN(exact->lane, "other distances", device->others, items_of(exact, tile),
                 group_of(exact), err, OCL_ARG(tile->x), OCL_ARG(exact->filter->centroids),
                 OCL_ARG(tile->labels), OCL_ARG(device->values), OCL_ARG(rows), OCL_ARG(stride),
                 OCL_ARG(k)) != STATUS_OK)
        return err->status;
    return fetch_copy(&exact->data->fetch, "distances", device->values, rows * sizeof *distances,
                      distances, err);
}

const struct exact_ops exact_device = {
    .open = open_device,
    .close = close_device,
    .label = label_rows,
    .distances = label_distances,
    .other_distances = other_distances,
};
