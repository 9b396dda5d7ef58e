/* exact_host.c: the canonical distance on the host's threads, which map a tile's rows. */
#include "kmeans/canonical.h"
#include "kmeans/exact.h"
#include <math.h>
#include <stdlib.h>

/* Rows that a thread takes at a time. */
#define ROWS_PART 16

struct job {
    const struct exact *exact;
    const float *rows;
    const uint32_t *list; /* rows to label; NULL: all */
    int32_t *labels;      /* of the tile */
    const int32_t *own;   /* the same, not modified */
    float *upper_bounds;  /* of the tile */
    double *distances;    /* of the tile */
    uint32_t count, k;
};

/* Runs `part` over the job's rows, a few at a time, while the tile's rows are mapped. */
static enum status map_and_run(struct job *job, struct tile *tile,
                               void (*part)(void *context, uint64_t part), struct error *err)
{
    struct data *data = job->exact->data;
    float *rows;
    if (data_map(&rows, data, tile, err) != STATUS_OK)
        return err->status;
    job->rows = rows;
    workers_run(job->exact->lane->workers, part, job, (job->count + ROWS_PART - 1) / ROWS_PART);
    return data_unmap(data, tile, rows, err);
}

static void label_part(void *context, uint64_t part)
{
    const struct job *job = context;
    const uint32_t stride = job->exact->data->stride;
    for (uint64_t i = part * ROWS_PART; i < (part + 1) * ROWS_PART && i < job->count; i++) {
        const uint32_t row = job->list[i];
        double distance;
        job->labels[row] =
            (int32_t)canonical_nearest(&distance, job->rows + (size_t)row * stride,
                                       job->exact->centroids, job->exact->filter->k, stride);
        job->upper_bounds[row] = INFINITY;
    }
}

/* Labels and bounds are mapped, too. */
static enum status label_rows(struct exact *exact, struct tile *tile, cl_mem rows, cl_uint count,
                              cl_mem limit, struct error *err)
{
    (void)limit;
    struct lane *lane = exact->lane;
    const size_t bytes = tile->rows * sizeof(float);
    const cl_map_flags flags = CL_MAP_READ | CL_MAP_WRITE;
    void *labels = NULL, *bounds = NULL;
    enum status status;
    if (count == 0)
        return STATUS_OK;
    uint32_t *list = malloc(count * sizeof *list);
    if (!list)
        return error_memory(err, count * sizeof *list, "undecided rows");
    status = lane_read(lane, "undecided rows", rows, 0, count * sizeof *list, list, err);
    if (status == STATUS_OK)
        status = lane_map(&labels, lane, "map labels", tile->labels, flags, bytes, err);
    if (status == STATUS_OK)
        status = lane_map(&bounds, lane, "map bounds", tile->upper_bounds, flags, bytes, err);
    struct job job = {
        .exact = exact, .list = list, .labels = labels, .upper_bounds = bounds, .count = count};
    if (status == STATUS_OK)
        status = map_and_run(&job, tile, label_part, err);
    status = lane_unmap(lane, "unmap bounds", tile->upper_bounds, bounds, status, err);
    status = lane_unmap(lane, "unmap labels", tile->labels, labels, status, err);
    free(list);
    return status;
}

static void distance_part(void *context, uint64_t part)
{
    const struct job *job = context;
    const uint32_t stride = job->exact->data->stride;
    for (uint64_t i = part * ROWS_PART; i < (part + 1) * ROWS_PART && i < job->count; i++)
        job->distances[i] = canonical_distance(
            job->rows + i * stride, job->exact->centroids + (size_t)job->own[i] * stride, stride);
}

static enum status label_distances(struct exact *exact, struct tile *tile, uint32_t slices,
                                   void (*take)(void *context, const struct fetch_slice *slice),
                                   void *context, struct error *err)
{
    const size_t rows = tile->rows;
    enum status status = STATUS_FAILED;
    int32_t *labels = malloc(rows * sizeof *labels);
    double *distances = malloc(rows * sizeof *distances);
    if (!labels || !distances) {
        error_memory(err, rows * sizeof *distances, "distances");
        goto out;
    }
    status = lane_read(exact->lane, "labels", tile->labels, 0, rows * sizeof *labels, labels, err);
    if (status != STATUS_OK)
        goto out;
    struct job job = {.exact = exact, .own = labels, .distances = distances, .count = tile->rows};
    status = map_and_run(&job, tile, distance_part, err);
    if (status == STATUS_OK)
        fetch_slices_of(exact->lane->workers, distances, rows * sizeof *distances, slices, take,
                        context);
out:
    free(labels);
    free(distances);
    return status;
}

static void other_part(void *context, uint64_t part)
{
    const struct job *job = context;
    const uint32_t stride = job->exact->data->stride;
    for (uint64_t i = part * ROWS_PART; i < (part + 1) * ROWS_PART && i < job->count; i++) {
        double nearest = INFINITY;
        for (uint32_t c = 0; c < job->k; c++)
            if (c != (uint32_t)job->own[i])
                nearest =
                    fmin(nearest,
                         canonical_distance(job->rows + i * stride,
                                            job->exact->centroids + (size_t)c * stride, stride));
        job->distances[i] = nearest;
    }
}

static enum status other_distances(struct exact *exact, struct tile *tile, double *distances,
                                   const int32_t *labels, uint32_t k, struct error *err)
{
    struct job job = {
        .exact = exact, .own = labels, .distances = distances, .count = tile->rows, .k = k};
    enum status status = map_and_run(&job, tile, other_part, err);
    lane_settle(exact->lane);
    return status;
}

const struct exact_ops exact_host = {
    .label = label_rows,
    .distances = label_distances,
    .other_distances = other_distances,
};
