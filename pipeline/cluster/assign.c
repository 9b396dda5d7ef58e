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
    COUNT_FULL,    /* of the rows searched among all centroids */
    COUNT_PARTIAL, /* of those searched among the movers */
    COUNT_FLAGGED,
    COUNT_RETRY, /* of those that the bound on the own distance was not enough for */
    COUNT_HALF_FLAGGED,
    COUNT_LEFT, /* of the half filter's, with too many centroids to choose from */
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
    cl_mem *lists[] = {&assign->full, &assign->partial, &assign->flagged_rows, &assign->upper};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0] && status == STATUS_OK; i++)
        status = ocl_buffer(lists[i], lane->ocl, CL_MEM_READ_WRITE,
                            data->tile_rows * sizeof(cl_uint), NULL, "lists of rows", err);
    if (status == STATUS_OK)
        status =
            report_part_open(&assign->counts[0], &filter->report, COUNTS * sizeof(cl_uint), err);
    if (status == STATUS_OK)
        status =
            report_part_open(&assign->counts[1], &filter->report, COUNTS * sizeof(cl_uint), err);
    if (status == STATUS_OK)
        status = half_open(&assign->half, filter, err);
    return status == STATUS_OK ? prune_open(&assign->prune, filter, assign->half.used, err)
                               : status;
}

void assign_close(struct assign *assign)
{
    half_close(&assign->half);
    prune_close(&assign->prune);
    if (assign->exact)
        clReleaseKernel(assign->exact);
    if (assign->distances)
        clReleaseKernel(assign->distances);
    if (assign->program)
        clReleaseProgram(assign->program);
    ocl_buffer_release(&assign->full);
    ocl_buffer_release(&assign->partial);
    ocl_buffer_release(&assign->flagged_rows);
    ocl_buffer_release(&assign->upper);
    report_part_close(&assign->counts[0]);
    report_part_close(&assign->counts[1]);
    ocl_buffer_release(&assign->tile_distances);
    *assign = (struct assign){0};
}

/* The centroids that the filter has taken, for the search that there will be. The half filter's are
 * laid out when they are wanted: see lay_out_half. */
static enum status lay_out(struct assign *assign, bool *incremental, bool on_device,
                           struct error *err)
{
    struct half_filter *half = &assign->half;
    if (half->used)
        half_take(half);
    assign->unlaid = half->used && half->ready;
    /* Movers that only the device knows are no use to the other filter. */
    *incremental = *incremental && (assign->unlaid || !on_device);
    assign->unlaid_some = assign->unlaid && *incremental;
    /* Rows that the first filter cannot settle are few, if any: see launch_filter. */
    if (assign->unlaid)
        return STATUS_OK;
    return filter_lay_out(assign->filter, assign->centroids,
                          *incremental ? assign->prune.movers : NULL, err);
}

static enum status lay_out_half(struct assign *assign, struct error *err)
{
    struct half_filter *half = &assign->half;
    struct prune *prune = &assign->prune;
    const uint32_t movers = prune->mover_count;
    enum status status = STATUS_OK;
    if (assign->unlaid)
        status = half_lay_out(half, assign->facts, err);
    if (status == STATUS_OK && assign->unlaid_some) {
        status = prune->on_device ? prune_list(prune, half->some.ids, assign->filter->k, err)
                                  : half_send_ids(half, prune->movers, movers, err);
        if (status == STATUS_OK)
            status = half_lay_out_some(half, assign->facts, movers, err);
    }
    assign->unlaid = assign->unlaid_some = false;
    return status;
}

enum status assign_centroids(struct assign *assign, bool *incremental, float *centroids, uint32_t k,
                             const double *drifts, bool measured, struct error *err)
{
    assign->centroids = centroids;
    assign->facts = NULL;
    enum status status = prune_plan(incremental, &assign->prune, drifts, k, err);
    if (status == STATUS_OK)
        status = filter_set_centroids(assign->filter, centroids, k, measured, err);
    return status == STATUS_OK ? lay_out(assign, incremental, false, err) : status;
}

enum status assign_use_centroids(struct assign *assign, bool *incremental, uint32_t k,
                                 const double *drifts, cl_mem facts, struct error *err)
{
    struct prune *prune = &assign->prune;
    assign->facts = facts;
    enum status status = STATUS_OK;
    if (prune->planned)
        prune_choose(incremental, prune, k);
    else
        status = prune_plan(incremental, prune, drifts, k, err);
    if (status != STATUS_OK)
        return status;
    filter_use_centroids(assign->filter, k);
    return lay_out(assign, incremental, prune->on_device, err);
}

/* Of the tile. */
static cl_mem counts_of(const struct assign *assign)
{
    return assign->counts[assign->turn].buffer;
}

enum status assign_prepare(struct assign *assign, struct error *err)
{
    if (assign->zeroed)
        return STATUS_OK;
    const struct report_part *next = &assign->counts[1 - assign->turn];
    enum status status = ocl_enqueue_fill(assign->lane->compute, "zero counts", next->buffer, 0, 0,
                                          next->bytes, OCL_NO_WAITS, NULL, err);
    assign->zeroed = status == STATUS_OK;
    return status;
}

enum status assign_forget_row(struct assign *assign, struct tile *tile, uint32_t row,
                              struct error *err)
{
    const cl_float unknown = INFINITY;
    return lane_write(assign->lane, "bound", tile->near, row * sizeof unknown, sizeof unknown,
                      &unknown, err);
}

/* --- on the device --------------------------------------------------------------------------- */

/* One search: `rows` (NULL: all of the tile) among `panels`, of which `some` has as many as there
 * are movers, even none. */
struct search {
    const struct panels *panels;
    cl_mem rows;
    cl_uint count;
    cl_mem flagged;
    unsigned flagged_count; /* index into counts */
    cl_uint some;           /* the panels are of some centroids: see label_among_some */
};

/* Where the half filter does almost everything the other one is laid out when it is wanted. */
static enum status ready_filter(struct assign *assign, struct error *err)
{
    return assign->filter->ready ? STATUS_OK
                                 : filter_lay_out(assign->filter, assign->centroids, NULL, err);
}

static enum status launch_filter(struct assign *assign, struct tile *tile,
                                 const struct search *search, struct error *err)
{
    struct filter *filter = assign->filter;
    if (search->count == 0)
        return STATUS_OK;
    enum status status = ready_filter(assign, err);
    if (status != STATUS_OK)
        return status;
    const cl_uint stride = assign->data->stride, columns = assign->data->dimension;
    const cl_uint use_rows = search->rows ? 1 : 0;
    const cl_uint panel_count = search->some ? filter->some.count : filter->all.count;
    cl_mem rows = search->rows ? search->rows : assign->full, counts = counts_of(assign);
    const double spread = ldexp(1.0, filter->row_exponent - filter->exponent);
    const cl_float slack = (cl_float)(8 * canonical_error(stride) * spread * spread);
    status = ocl_args(
        filter->assign, err, sizeof tile->x, &tile->x, sizeof(cl_mem), &search->panels->factors,
        sizeof(cl_mem), &search->panels->ids, sizeof(cl_mem), &filter->slope, sizeof(cl_mem),
        &filter->offset, sizeof(cl_mem), &tile->norms, sizeof(cl_mem), &filter->centre_buffer,
        sizeof(cl_mem), &filter->centroids, sizeof(cl_mem), &rows, sizeof(cl_mem), &tile->labels,
        sizeof(cl_mem), &tile->near, sizeof(cl_mem), &tile->far, sizeof(cl_mem), &assign->upper,
        sizeof(cl_mem), &search->flagged, sizeof counts, &counts, sizeof(cl_uint),
        &search->flagged_count, sizeof(cl_uint), &search->count, sizeof stride, &stride,
        sizeof columns, &columns, sizeof panel_count, &panel_count, sizeof use_rows, &use_rows,
        sizeof(cl_uint), &search->some, sizeof slack, &slack, sizeof filter->half, &filter->half,
        sizeof filter->growth, &filter->growth, sizeof filter->tiny, &filter->tiny,
        sizeof filter->bounds, &filter->bounds, OCL_ARGS_END);
    if (status != STATUS_OK)
        return status;
    uint64_t groups = (search->count + (uint64_t)filter->points - 1) / filter->points;
    size_t group = assign->lane->tiled ? 256 : 1;
    return lane_launch(assign->lane, "assign filter", filter->assign, groups * group, group, err);
}

static enum status launch_exact(struct assign *assign, struct tile *tile, cl_mem flagged,
                                cl_uint count, struct error *err)
{
    struct filter *filter = assign->filter;
    if (count == 0)
        return STATUS_OK;
    enum status status = ready_filter(assign, err);
    if (status != STATUS_OK)
        return status;
    const struct panels *all = &filter->all;
    const cl_uint stride = assign->data->stride, columns = assign->data->dimension;
    status =
        ocl_args(assign->exact, err, sizeof tile->x, &tile->x, sizeof(cl_mem), &all->factors,
                 sizeof(cl_mem), &all->ids, sizeof(cl_mem), &filter->centroids, sizeof(cl_mem),
                 &tile->norms, sizeof(cl_mem), &filter->centre_buffer, sizeof flagged, &flagged,
                 sizeof(cl_mem), &tile->labels, sizeof(cl_mem), &tile->near, sizeof(cl_mem),
                 &assign->upper, sizeof stride, &stride, sizeof columns, &columns,
                 sizeof all->count, &all->count, sizeof all->width, &all->width, OCL_ARGS_END);
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
    float *near;
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
        job->near[row] = INFINITY;
    }
}

/* Decides the listed rows; labels and bounds are mapped as well. */
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
    void *labels = NULL, *near = NULL;
    size_t bytes = tile->rows * sizeof(float);
    enum status status =
        lane_read(lane, "rows in doubt", flagged, 0, count * sizeof *list, list, err);
    if (status == STATUS_OK)
        status = data_map(&rows, assign->data, tile, err);
    if (status == STATUS_OK)
        status = ocl_enqueue_map(&labels, lane->compute, "map labels", tile->labels, true,
                                 CL_MAP_READ | CL_MAP_WRITE, 0, bytes, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK)
        status = ocl_enqueue_map(&near, lane->compute, "map bounds", tile->near, true,
                                 CL_MAP_READ | CL_MAP_WRITE, 0, bytes, OCL_NO_WAITS, NULL, err);
    if (status == STATUS_OK) {
        job.rows = rows;
        job.labels = labels;
        job.near = near;
        workers_run(lane->workers, search_part, &job, (count + ROWS_PART - 1) / ROWS_PART);
    }
    struct error *late = err, ignored = ERROR_INIT;
    if (status != STATUS_OK)
        late = &ignored;
    enum status unmapped = STATUS_OK;
    if (near)
        unmapped = ocl_enqueue_unmap(lane->compute, "unmap bounds", tile->near, near, OCL_NO_WAITS,
                                     NULL, late);
    if (labels && unmapped == STATUS_OK)
        unmapped = ocl_enqueue_unmap(lane->compute, "unmap labels", tile->labels, labels,
                                     OCL_NO_WAITS, NULL, late);
    if (rows && unmapped == STATUS_OK)
        unmapped = data_unmap(assign->data, tile, rows, late);
    free(list);
    return status == STATUS_OK ? unmapped : status;
}

/* --- a tile ---------------------------------------------------------------------------------- */

static enum status resolve(struct assign *assign, struct tile *tile, cl_mem flagged, cl_uint count,
                           struct error *err)
{
    assign->flagged += count;
    return assign->lane->host_exact ? host_exact(assign, tile, flagged, count, err)
                                    : launch_exact(assign, tile, flagged, count, err);
}

/* What the tile's counts were when they were read. */
static const cl_uint *host_counts(const struct assign *assign)
{
    return assign->counts[assign->turn].host;
}

static enum status read_counts(struct assign *assign, struct error *err)
{
    return report_read_part(&assign->filter->report, "counts", &assign->counts[assign->turn], err);
}

static bool by_half(const struct assign *assign)
{
    return assign->half.used && assign->half.ready;
}

/* Decides what bounds and movers can; the other rows are in assign->full, whose length is in the
 * device's counts. */
static enum status search_some(struct assign *assign, struct tile *tile, struct error *err)
{
    struct filter *filter = assign->filter;
    struct prune *prune = &assign->prune;
    cl_mem counts = counts_of(assign);
    enum status status = prune_split(prune, tile, assign->full, assign->partial, counts, err);
    /* While rows are split, the centroids are laid out. */
    if (status == STATUS_OK && by_half(assign))
        status = lay_out_half(assign, err);
    if (status == STATUS_OK && by_half(assign))
        return half_search_some(&assign->half, tile, assign->partial, COUNT_PARTIAL, assign->full,
                                counts, COUNT_RETRY, COUNT_FULL, err);
    if (status == STATUS_OK)
        status = read_counts(assign, err);
    const cl_uint partial = host_counts(assign)[COUNT_PARTIAL];
    if (status == STATUS_OK && assign->lane->tiled)
        status = prune_own(prune, tile, assign->partial, counts, partial, err);
    const struct search search = {.panels = prune->mover_count > 0 ? &filter->some : &filter->all,
                                  .rows = assign->partial,
                                  .count = partial,
                                  .flagged = assign->full,
                                  .flagged_count = COUNT_FULL,
                                  .some = 1};
    return status == STATUS_OK ? launch_filter(assign, tile, &search, err) : status;
}

/* A search by tensor cores. Where the device has no float64, what they leave in doubt is left to
 * the float32 filter; elsewhere only rows of which they leave too many centroids. */
static enum status search_half(struct assign *assign, struct tile *tile, bool incremental,
                               struct error *err)
{
    struct half_filter *half = &assign->half;
    cl_mem counts = counts_of(assign);
    enum status status = half_search(half, tile, incremental ? assign->full : NULL, COUNT_FULL,
                                     assign->upper, counts, COUNT_HALF_FLAGGED, err);
    if (status == STATUS_OK && assign_by_device(assign))
        status = half_decide(half, tile, assign->upper, assign->partial, counts, COUNT_HALF_FLAGGED,
                             COUNT_LEFT, err);
    return status;
}

bool assign_by_device(const struct assign *assign)
{
    return by_half(assign) && assign->program;
}

struct report_count assign_rows_left(const struct assign *assign)
{
    return (struct report_count){counts_of(assign), COUNT_LEFT};
}

enum status assign_begin_tile(struct assign *assign, struct tile *tile, bool incremental,
                              struct error *err)
{
    const bool half = by_half(assign);
    enum status status =
        half ? half_round(&assign->half, tile, err) : filter_norms(assign->filter, tile, err);
    if (status == STATUS_OK)
        status = assign_prepare(assign, err);
    assign->turn = 1 - assign->turn;
    assign->zeroed = false;
    if (status == STATUS_OK && incremental)
        status = search_some(assign, tile, err);
    else if (status == STATUS_OK && half)
        status = lay_out_half(assign, err);
    return status == STATUS_OK && half ? search_half(assign, tile, incremental, err) : status;
}

enum status assign_end_tile(bool *left, struct assign *assign, struct tile *tile, bool incremental,
                            struct error *err)
{
    struct filter *filter = assign->filter;
    const cl_uint *counts = host_counts(assign);
    struct search search = {.panels = &filter->all,
                            .rows = incremental ? assign->full : NULL,
                            .count = incremental ? counts[COUNT_FULL] : tile->rows,
                            .flagged = assign->flagged_rows,
                            .flagged_count = COUNT_FLAGGED};
    assign->scored += incremental ? (uint64_t)counts[COUNT_FULL] * filter->k +
                                        (uint64_t)counts[COUNT_PARTIAL] * assign->prune.mover_count
                                  : (uint64_t)tile->rows * filter->k;
    const bool decided = assign_by_device(assign);
    if (by_half(assign)) {
        search.rows = decided ? assign->partial : assign->half.flagged;
        search.count = counts[decided ? COUNT_LEFT : COUNT_HALF_FLAGGED];
        assign->flagged += counts[COUNT_HALF_FLAGGED] - search.count;
    }
    *left = search.count > 0;
    /* Few are decided by the canonical distance at once. */
    if (decided && search.count <= FEW_ROWS)
        return resolve(assign, tile, search.rows, search.count, err);
    if (search.count == 0)
        return STATUS_OK;
    enum status status = launch_filter(assign, tile, &search, err);
    if (status == STATUS_OK)
        status = read_counts(assign, err);
    return status == STATUS_OK ? resolve(assign, tile, search.flagged, counts[COUNT_FLAGGED], err)
                               : status;
}

enum status assign_tile(struct assign *assign, struct tile *tile, bool incremental,
                        struct error *err)
{
    bool left;
    enum status status = assign_begin_tile(assign, tile, incremental, err);
    if (status == STATUS_OK && (incremental || by_half(assign)))
        status = read_counts(assign, err);
    return status == STATUS_OK ? assign_end_tile(&left, assign, tile, incremental, err) : status;
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

static enum status launch_distances(struct assign *assign, struct tile *tile, struct error *err)
{
    const cl_uint rows = tile->rows, stride = assign->data->stride;
    enum status status =
        ocl_args(assign->distances, err, sizeof tile->x, &tile->x, sizeof(cl_mem),
                 &assign->filter->centroids, sizeof(cl_mem), &tile->labels, sizeof(cl_mem),
                 &assign->tile_distances, sizeof rows, &rows, sizeof stride, &stride, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = lane_launch(assign->lane, "distances", assign->distances,
                             (uint64_t)rows * (assign->lane->tiled ? KMEANS_LANES : 1),
                             assign->lane->tiled ? assign->filter->width : 64, err);
    return status;
}

enum status assign_tile_distances(struct assign *assign, struct tile *tile, double *distances,
                                  struct error *err)
{
    if (assign->lane->host_exact)
        return host_distances(assign, tile, distances, err);
    enum status status = launch_distances(assign, tile, err);
    if (status == STATUS_OK)
        status = fetch_copy(&assign->data->fetch, "distances", assign->tile_distances,
                            tile->rows * sizeof *distances, distances, err);
    return status;
}

enum status assign_take_distances(struct assign *assign, struct tile *tile, uint32_t slices,
                                  void (*take)(void *context, const struct fetch_slice *slice),
                                  void *context, struct error *err)
{
    const size_t bytes = tile->rows * sizeof(double);
    enum status status;
    if (!assign->lane->host_exact) {
        status = launch_distances(assign, tile, err);
        return status == STATUS_OK
                   ? fetch_slices(&assign->data->fetch, "distances", assign->tile_distances, bytes,
                                  slices, take, context, err)
                   : status;
    }
    double *distances = malloc(bytes);
    if (!distances)
        return error_memory(err, bytes, "distances");
    status = host_distances(assign, tile, distances, err);
    if (status == STATUS_OK)
        fetch_slices_of(assign->lane->workers, distances, bytes, slices, take, context);
    free(distances);
    return status;
}
