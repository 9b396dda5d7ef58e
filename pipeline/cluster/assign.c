/* assign.c: what runs on a tile, and the stand-in for devices without float64, which maps the tile
 * and decides the rows in doubt on host threads. */
#include "cluster/assign.h"
#include "cluster/canonical.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* So many rows in doubt do not fill a GPU: the float32 filter would take as long as for more. */
#define FEW_ROWS 2048

enum {
    COUNT_FULL,
    COUNT_PARTIAL,
    COUNT_FULL_FLAGGED,
    COUNT_PARTIAL_FLAGGED,
    COUNT_HALF_FLAGGED,
    COUNTS
};

enum status assign_open(struct assign *assign, struct filter *filter, struct error *err)
{
    struct data *data = filter->data;
    struct lane *lane = data->lane;
    *assign = (struct assign){.lane = lane, .data = data, .filter = filter};
    enum status status = STATUS_OK;
    if (!lane->host_exact) {
        char options[64];
        snprintf(options, sizeof options, "-DGROUP=%u -DSPAN=%u", lane->tiled ? filter->width : 1,
                 lane->tiled ? 1 : 16);
        status = lane_build(&assign->program, lane, "kmeans_exact", options, err);
        if (status == STATUS_OK)
            status = ocl_kernel(&assign->exact, assign->program, "assign_exact", err);
        if (status == STATUS_OK)
            status = ocl_kernel(&assign->distances, assign->program, "label_distances", err);
        if (status == STATUS_OK)
            status = ocl_buffer(&assign->tile_distances, lane->ocl, CL_MEM_READ_WRITE,
                                data->tile_rows * sizeof(double), NULL, "distances", err);
    }
    cl_mem *lists[] = {&assign->full, &assign->partial, &assign->full_flagged,
                       &assign->partial_flagged, &assign->upper};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0] && status == STATUS_OK; i++)
        status = ocl_buffer(lists[i], lane->ocl, CL_MEM_READ_WRITE,
                            data->tile_rows * sizeof(cl_uint), NULL, "lists of rows", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&assign->counts, lane->ocl, CL_MEM_READ_WRITE, COUNTS * sizeof(cl_uint),
                            NULL, "lists of rows", err);
    return status == STATUS_OK ? half_open(&assign->half, filter, err) : status;
}

void assign_close(struct assign *assign)
{
    half_close(&assign->half);
    if (assign->exact)
        clReleaseKernel(assign->exact);
    if (assign->distances)
        clReleaseKernel(assign->distances);
    if (assign->program)
        clReleaseProgram(assign->program);
    ocl_buffer_release(&assign->full);
    ocl_buffer_release(&assign->partial);
    ocl_buffer_release(&assign->full_flagged);
    ocl_buffer_release(&assign->partial_flagged);
    ocl_buffer_release(&assign->upper);
    ocl_buffer_release(&assign->counts);
    ocl_buffer_release(&assign->tile_distances);
    *assign = (struct assign){0};
}

enum status assign_centroids(struct assign *assign, bool *incremental, float *centroids, uint32_t k,
                             const uint8_t *moved, struct error *err)
{
    bool comparable;
    assign->centroids = centroids;
    enum status status =
        filter_set_centroids(assign->filter, &comparable, centroids, k, moved, err);
    *incremental = moved && comparable;
    if (status == STATUS_OK && assign->half.used)
        status = half_set_centroids(&assign->half, err);
    return status;
}

enum status assign_use_centroids(struct assign *assign, bool *incremental, uint32_t k,
                                 const uint8_t *moved, struct error *err)
{
    bool comparable;
    enum status status = filter_use_centroids(assign->filter, &comparable, k, moved, err);
    *incremental = moved && comparable;
    if (status == STATUS_OK && assign->half.used)
        status = half_set_centroids(&assign->half, err);
    return status;
}

/* --- on the device --------------------------------------------------------------------------- */

/* One search: `rows` (NULL: all of the tile) among `panels`. */
struct search {
    const struct panels *panels;
    cl_mem rows;
    cl_uint count;
    cl_mem flagged;
    unsigned flagged_count; /* index into counts */
    cl_uint with_own;
};

static enum status launch_filter(struct assign *assign, struct tile *tile,
                                 const struct search *search, struct error *err)
{
    struct filter *filter = assign->filter;
    if (search->count == 0)
        return STATUS_OK;
    const cl_uint stride = assign->data->stride, columns = assign->data->dimension;
    const cl_uint use_rows = search->rows ? 1 : 0, panels = search->panels->count;
    cl_mem rows = search->rows ? search->rows : assign->full;
    const double spread = ldexp(1.0, filter->row_exponent - filter->exponent);
    const cl_float slack = (cl_float)(8 * canonical_error(stride) * spread * spread);
    enum status status = ocl_args(
        filter->assign, err, sizeof tile->x, &tile->x, sizeof(cl_mem), &search->panels->factors,
        sizeof(cl_mem), &search->panels->ids, sizeof(cl_mem), &filter->slope, sizeof(cl_mem),
        &filter->offset, sizeof(cl_mem), &tile->norms, sizeof(cl_mem), &filter->centre_buffer,
        sizeof(cl_mem), &rows, sizeof(cl_mem), &tile->labels, sizeof(cl_mem), &tile->scores,
        sizeof(cl_mem), &assign->upper, sizeof(cl_mem), &search->flagged, sizeof(cl_mem),
        &assign->counts, sizeof(cl_uint), &search->flagged_count, sizeof(cl_uint), &search->count,
        sizeof stride, &stride, sizeof columns, &columns, sizeof panels, &panels, sizeof use_rows,
        &use_rows, sizeof(cl_uint), &search->with_own, sizeof slack, &slack, OCL_ARGS_END);
    if (status != STATUS_OK)
        return status;
    assign->searched += (uint64_t)search->count * panels * search->panels->width;
    uint64_t groups = (search->count + (uint64_t)filter->points - 1) / filter->points;
    size_t group = assign->lane->tiled ? 256 : 1;
    return lane_launch(assign->lane, "assign filter", filter->assign, groups * group, group, err);
}

static enum status launch_exact(struct assign *assign, struct tile *tile,
                                const struct search *search, cl_uint count, struct error *err)
{
    struct filter *filter = assign->filter;
    if (count == 0)
        return STATUS_OK;
    const cl_uint stride = assign->data->stride, columns = assign->data->dimension;
    const cl_uint panels = search->panels->count, width = search->panels->width;
    enum status status = ocl_args(
        assign->exact, err, sizeof tile->x, &tile->x, sizeof(cl_mem), &search->panels->factors,
        sizeof(cl_mem), &search->panels->ids, sizeof(cl_mem), &filter->centroids, sizeof(cl_mem),
        &tile->norms, sizeof(cl_mem), &filter->centre_buffer, sizeof(cl_mem), &search->flagged,
        sizeof(cl_mem), &tile->labels, sizeof(cl_mem), &tile->scores, sizeof(cl_mem),
        &assign->upper, sizeof stride, &stride, sizeof columns, &columns, sizeof panels, &panels,
        sizeof width, &width, sizeof(cl_uint), &search->with_own, OCL_ARGS_END);
    if (status != STATUS_OK)
        return status;
    size_t group = assign->lane->tiled ? filter->width : 1;
    return lane_launch(assign->lane, "assign exact", assign->exact, (uint64_t)count * group, group,
                       err);
}

/* --- on the host ----------------------------------------------------------------------------- */

#define ROWS_PART 16

struct host_search {
    const struct assign *assign;
    const float *rows;
    const uint32_t *list;
    int32_t *labels;
    float *scores;
    double *distances;
    uint32_t count;
};

static void search_part(void *context, uint64_t part)
{
    const struct host_search *job = context;
    const uint32_t stride = job->assign->data->stride, k = job->assign->filter->k;
    for (uint64_t i = part * ROWS_PART; i < (part + 1) * ROWS_PART && i < job->count; i++) {
        uint32_t row = job->list[i];
        double distance;
        job->labels[row] = (int32_t)canonical_nearest(&distance, job->rows + (size_t)row * stride,
                                                      job->assign->centroids, k, stride);
        job->scores[row] = NAN;
    }
}

/* Decides the listed rows; labels and scores are mapped as well. */
static enum status host_exact(struct assign *assign, struct tile *tile, cl_mem flagged,
                              cl_uint count, struct error *err)
{
    struct lane *lane = assign->lane;
    if (count == 0)
        return STATUS_OK;
    struct host_search job = {.assign = assign, .count = count};
    uint32_t *list = malloc(count * sizeof *list);
    if (!list)
        return error_memory(err, count * sizeof *list, "rows in doubt");
    job.list = list;
    float *rows = NULL;
    void *labels = NULL, *scores = NULL;
    size_t bytes = tile->rows * sizeof(float);
    enum status status =
        lane_read(lane, "rows in doubt", flagged, 0, count * sizeof *list, list, err);
    if (status == STATUS_OK)
        status = data_map(&rows, assign->data, tile, err);
    if (status == STATUS_OK)
        status = ocl_enqueue_map(&labels, lane->compute, "map labels", tile->labels, true,
                                 CL_MAP_READ | CL_MAP_WRITE, 0, bytes, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK)
        status = ocl_enqueue_map(&scores, lane->compute, "map scores", tile->scores, true,
                                 CL_MAP_READ | CL_MAP_WRITE, 0, bytes, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK) {
        job.rows = rows;
        job.labels = labels;
        job.scores = scores;
        workers_run(lane->workers, search_part, &job, (count + ROWS_PART - 1) / ROWS_PART);
    }
    struct error *late = err, ignored = ERROR_INIT;
    if (status != STATUS_OK)
        late = &ignored;
    enum status unmapped = STATUS_OK;
    if (scores)
        unmapped = ocl_enqueue_unmap(lane->compute, "unmap scores", tile->scores, scores,
                                     OCL_NO_WAITS, NULL, late);
    if (labels && unmapped == STATUS_OK)
        unmapped = ocl_enqueue_unmap(lane->compute, "unmap labels", tile->labels, labels,
                                     OCL_NO_WAITS, NULL, late);
    if (rows && unmapped == STATUS_OK)
        unmapped = data_unmap(assign->data, tile, rows, late);
    free(list);
    return status == STATUS_OK ? unmapped : status;
}

/* --- a tile ---------------------------------------------------------------------------------- */

static enum status resolve(struct assign *assign, struct tile *tile, const struct search *search,
                           cl_uint count, struct error *err)
{
    assign->flagged += count;
    return assign->lane->host_exact ? host_exact(assign, tile, search->flagged, count, err)
                                    : launch_exact(assign, tile, search, count, err);
}

static enum status read_counts(struct assign *assign, cl_uint counts[COUNTS], struct error *err)
{
    return lane_read(assign->lane, "counts", assign->counts, 0, COUNTS * sizeof *counts, counts,
                     err);
}

/* Lists the rows for the two searches; how many there are is in the device's counts. */
static enum status split(struct assign *assign, struct tile *tile, struct error *err)
{
    struct filter *filter = assign->filter;
    const cl_uint rows = tile->rows;
    enum status status = ocl_args(filter->split, err, sizeof(cl_mem), &tile->labels, sizeof(cl_mem),
                                  &tile->scores, sizeof(cl_mem), &filter->moved, sizeof(cl_mem),
                                  &assign->full, sizeof(cl_mem), &assign->partial, sizeof(cl_mem),
                                  &assign->counts, sizeof rows, &rows, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = lane_launch(assign->lane, "split rows", filter->split,
                             (rows + KMEANS_SPLIT_ROWS - 1) / KMEANS_SPLIT_ROWS,
                             assign->lane->tiled ? 64 : 1, err);
    return status;
}

/* Both searches by tensor cores. What they leave in doubt becomes `full`, a search by the float32
 * filter among all centroids; or, where it is little, it is decided by the canonical distance at
 * once. */
static enum status search_half(struct assign *assign, struct tile *tile, struct search *full,
                               struct search *partial, cl_uint counts[COUNTS], struct error *err)
{
    struct half_filter *half = &assign->half;
    enum status status = half_search(half, tile, false, full->rows, COUNT_FULL, false,
                                     assign->upper, assign->counts, COUNT_HALF_FLAGGED, err);
    if (status == STATUS_OK && full->rows)
        status = half_search(half, tile, true, partial->rows, COUNT_PARTIAL, true, assign->upper,
                             assign->counts, COUNT_HALF_FLAGGED, err);
    if (status == STATUS_OK)
        status = read_counts(assign, counts, err);
    full->rows = half->flagged;
    full->count = counts[COUNT_HALF_FLAGGED];
    partial->count = 0;
    if (status == STATUS_OK && full->count <= FEW_ROWS && assign->program) {
        full->flagged = half->flagged;
        status = resolve(assign, tile, full, full->count, err);
        full->count = 0;
    }
    return status;
}

enum status assign_tile(struct assign *assign, struct tile *tile, bool incremental,
                        struct error *err)
{
    struct filter *filter = assign->filter;
    cl_uint counts[COUNTS] = {tile->rows, 0, 0, 0};
    enum status status = filter_norms(filter, tile, err);
    if (status == STATUS_OK)
        status = ocl_enqueue_fill(assign->lane->compute, "zero counts", assign->counts, 0, 0,
                                  sizeof counts, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK && incremental)
        status = split(assign, tile, err);
    const bool half = assign->half.used && assign->half.ready;
    if (status == STATUS_OK && incremental && !half)
        status = read_counts(assign, counts, err);
    if (status != STATUS_OK)
        return status;
    struct search full = {&filter->all,       incremental ? assign->full : NULL,
                          counts[COUNT_FULL], assign->full_flagged,
                          COUNT_FULL_FLAGGED, 0};
    struct search partial = {&filter->some,           assign->partial,       counts[COUNT_PARTIAL],
                             assign->partial_flagged, COUNT_PARTIAL_FLAGGED, 1};
    if (filter->some.count == 0)
        partial.count = 0;
    if (half)
        status = search_half(assign, tile, &full, &partial, counts, err);
    if (status == STATUS_OK)
        status = launch_filter(assign, tile, &full, err);
    if (status == STATUS_OK)
        status = launch_filter(assign, tile, &partial, err);
    if (status == STATUS_OK && full.count + partial.count == 0)
        return STATUS_OK;
    if (status == STATUS_OK)
        status = read_counts(assign, counts, err);
    if (status == STATUS_OK)
        status = resolve(assign, tile, &full, counts[COUNT_FULL_FLAGGED], err);
    if (status == STATUS_OK)
        status = resolve(assign, tile, &partial, counts[COUNT_PARTIAL_FLAGGED], err);
    return status;
}

static void distance_part(void *context, uint64_t part)
{
    const struct host_search *job = context;
    const uint32_t stride = job->assign->data->stride;
    for (uint64_t i = part * ROWS_PART; i < (part + 1) * ROWS_PART && i < job->count; i++)
        job->distances[i] =
            canonical_distance(job->rows + i * stride,
                               job->assign->centroids + (size_t)job->labels[i] * stride, stride);
}

static enum status host_distances(struct assign *assign, struct tile *tile, double *distances,
                                  struct error *err)
{
    int32_t *labels = malloc(tile->rows * sizeof *labels);
    if (!labels)
        return error_memory(err, tile->rows * sizeof *labels, "labels");
    float *rows = NULL;
    enum status status = lane_read(assign->lane, "labels", tile->labels, 0,
                                   tile->rows * sizeof *labels, labels, err);
    if (status == STATUS_OK)
        status = data_map(&rows, assign->data, tile, err);
    if (status == STATUS_OK) {
        struct host_search job = {.assign = assign,
                                  .rows = rows,
                                  .labels = labels,
                                  .distances = distances,
                                  .count = tile->rows};
        workers_run(assign->lane->workers, distance_part, &job,
                    (tile->rows + ROWS_PART - 1) / ROWS_PART);
        status = data_unmap(assign->data, tile, rows, err);
    }
    free(labels);
    return status;
}

enum status assign_tile_distances(struct assign *assign, struct tile *tile, double *distances,
                                  struct error *err)
{
    if (assign->lane->host_exact)
        return host_distances(assign, tile, distances, err);
    const cl_uint rows = tile->rows, stride = assign->data->stride;
    enum status status =
        ocl_args(assign->distances, err, sizeof tile->x, &tile->x, sizeof(cl_mem),
                 &assign->filter->centroids, sizeof(cl_mem), &tile->labels, sizeof(cl_mem),
                 &assign->tile_distances, sizeof rows, &rows, sizeof stride, &stride, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = lane_launch(assign->lane, "distances", assign->distances,
                             (uint64_t)rows * (assign->lane->tiled ? KMEANS_LANES : 1),
                             assign->lane->tiled ? assign->filter->width : 64, err);
    if (status == STATUS_OK)
        status = lane_read(assign->lane, "distances", assign->tile_distances, 0,
                           rows * sizeof *distances, distances, err);
    return status;
}
