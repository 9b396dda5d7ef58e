/* half.c: laying centroids out for the tensor cores, and the bounds of float16. The names follow
 * docs/clustering.md. */
#include "cluster/half.h"
#include "kmeans.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Roundoff of a value on its way to float16 (and from the subtraction of the centre before it). */
#define U_HALF (0x1p-11 + 0x1p-23)
/* What the least float16 numbers lose. */
#define ETA_HALF 0x1p-25
/* Of one term in a tensor core's sum, relative to the sum of magnitudes. */
#define U_TENSOR 0x1p-22
/* Of a score's float32 steps, and of its lowest 4 bits. */
#define U_SCORE (48 * 0x1p-24)
#define MARGIN  1.02
/* Shorter rows keep no tensor core busy; longer ones have no useful bound. */
#define COLUMNS_MIN 16u
#define COLUMNS_MAX 65536u
#define LANES_MIN   32u
/* Of lists, for each row at most. */
#define LISTS_BYTES 24u

/* Blocks of columns of a row that registers have room for beside the scores. */
#define KEEP_MAX 4

/* How far centroids may lie beyond the rows, as a power of two, for starts that float32 holds. */
#define SPREAD_MAX 40

/* Groups of a compute unit for the kernels that take rows in turn. */
#define GROUPS_UNIT 16
/* Groups of a launch that lists centroids, most of which find no rows. */
#define GROUPS_LIST 16384

static void close_panels(struct half_panels *panels)
{
    ocl_buffer_release(&panels->values);
    ocl_buffer_release(&panels->lanes);
    ocl_buffer_release(&panels->ids);
    *panels = (struct half_panels){0};
}

static enum status open_panels(struct half_panels *panels, const struct half_filter *half,
                               struct error *err)
{
    struct ocl_context *ocl = half->filter->lane->ocl;
    const size_t lanes = ((size_t)half->filter->capacity + KMEANS_HALF_LANES - 1) /
                         KMEANS_HALF_LANES * KMEANS_HALF_LANES;
    enum status status = ocl_buffer(&panels->values, ocl, CL_MEM_READ_WRITE,
                                    lanes * half->columns * 2, NULL, "centroids", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&panels->lanes, ocl, CL_MEM_READ_WRITE, lanes * 2 * sizeof(float), NULL,
                            "centroids", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&panels->ids, ocl, CL_MEM_READ_WRITE, lanes * sizeof(cl_int), NULL,
                            "centroids", err);
    return status;
}

/* Room for the rows' copy beside everything else; it stays with the tiles, for all filters. */
static enum status open_tiles(struct half_filter *half, struct error *err)
{
    struct data *data = half->filter->data;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++) {
        struct tile *tile = &data->tiles[i];
        if (!tile->half)
            status = ocl_buffer(&tile->half, half->filter->lane->ocl, CL_MEM_READ_WRITE,
                                (size_t)tile->rows * half->columns * 2, NULL, "rounded rows", err);
    }
    return status;
}

static bool pays(const struct half_filter *half)
{
    const struct filter *filter = half->filter;
    const struct data *data = filter->data;
    const bool large = data->dimension >= COLUMNS_MIN && filter->capacity >= LANES_MIN;
    uint64_t bytes;
    return filter->lane->tensor && data->resident && !filter->blind &&
           (large || filter->lane->plain_tensor) && half->columns <= COLUMNS_MAX &&
           !__builtin_mul_overflow(data->share.rows, (uint64_t)half->columns * 2 + LISTS_BYTES,
                                   &bytes) &&
           bytes <= data->spare;
}

static enum status open_kernels(struct half_filter *half, struct error *err)
{
    char options[32];
    const uint32_t blocks = half->columns / KMEANS_HALF_COLUMNS;
    snprintf(options, sizeof options, "-DKEEP=%u%s", blocks <= KEEP_MAX ? blocks : 0,
             half->filter->lane->plain_tensor ? " -DPLAIN" : "");
    enum status status =
        lane_build(&half->program, half->filter->lane, "kmeans_filter_half", options, err);
    const struct {
        cl_kernel *kernel;
        const char *name;
    } kernels[] = {{&half->round, "round_rows"},   {&half->layout, "lay_out"},
                   {&half->assign, "assign_half"}, {&half->list, "list_half"},
                   {&half->settle, "settle_rows"}, {&half->decide, "decide_rows"}};
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0] && status == STATUS_OK; i++)
        status = ocl_kernel(kernels[i].kernel, half->program, kernels[i].name, err);
    return status;
}

static enum status open_buffers(struct half_filter *half, struct error *err)
{
    struct lane *lane = half->filter->lane;
    const size_t k = half->filter->capacity, rows = half->filter->data->tile_rows;
    /* A quarter of the rows, so that few groups find nothing to do. */
    half->room = (uint32_t)(rows / 4);
    const struct {
        cl_mem *buffer;
        size_t bytes;
    } wanted[] = {
        {&half->squares, k * sizeof(cl_double)},
        {&half->slope, k * sizeof(cl_float)},
        {&half->offset, k * sizeof(cl_float)},
        {&half->flagged, rows * sizeof(cl_uint)},
        {&half->outcomes, rows * sizeof(cl_float4)},
        {&half->taken, (half->room + 1) * sizeof(cl_uint)},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && status == STATUS_OK; i++)
        status = ocl_buffer(wanted[i].buffer, lane->ocl, CL_MEM_READ_WRITE, wanted[i].bytes, NULL,
                            "rows in doubt", err);
    if (status == STATUS_OK)
        status = ocl_enqueue_fill(lane->compute, "zero counts", half->taken, 0, 0,
                                  (half->room + 1) * sizeof(cl_uint), OCL_NO_WAITS, NULL, err);
    /* Lane i of `all` is centroid i. */
    for (size_t i = 0; i < k; i++)
        half->host_ids[i] = (int32_t)i;
    if (status == STATUS_OK)
        status = lane_write(lane, "centroid ids", half->all.ids, 0, k * sizeof *half->host_ids,
                            half->host_ids, err);
    return status;
}

enum status half_open(struct half_filter *half, struct filter *filter, struct error *err)
{
    const struct data *data = filter->data;
    *half = (struct half_filter){.filter = filter};
    half->columns =
        (data->dimension + KMEANS_HALF_COLUMNS - 1) / KMEANS_HALF_COLUMNS * KMEANS_HALF_COLUMNS;
    if (!pays(half))
        return STATUS_OK;
    half->host_ids = malloc(filter->capacity * sizeof *half->host_ids);
    enum status status = STATUS_OK;
    if (!half->host_ids)
        status = error_memory(err, filter->capacity * sizeof *half->host_ids, "centroids");
    if (status == STATUS_OK)
        status = open_kernels(half, err);
    if (status == STATUS_OK)
        status = open_panels(&half->all, half, err);
    if (status == STATUS_OK)
        status = open_panels(&half->some, half, err);
    if (status == STATUS_OK)
        status = open_buffers(half, err);
    if (status == STATUS_OK)
        status = open_tiles(half, err);
    half->used = status == STATUS_OK;
    return status;
}

void half_close(struct half_filter *half)
{
    cl_kernel kernels[] = {half->round, half->layout, half->assign,
                           half->list,  half->settle, half->decide};
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i])
            clReleaseKernel(kernels[i]);
    if (half->program)
        clReleaseProgram(half->program);
    close_panels(&half->all);
    close_panels(&half->some);
    cl_mem *buffers[] = {&half->squares, &half->slope,    &half->offset,
                         &half->flagged, &half->outcomes, &half->taken};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        ocl_buffer_release(buffers[i]);
    free(half->host_ids);
    *half = (struct half_filter){0};
}

/* --- laying out ------------------------------------------------------------------------------ */

/* Slope and offset, as sums of multiples of a centroid's length and its square, in scores' units.
 */
struct half_bound {
    cl_double slope_plain, slope_length, offset_plain, offset_length, offset_square;
};

static struct half_bound bound(const struct half_filter *half)
{
    const struct filter *filter = half->filter;
    const double root = sqrt((double)half->columns);
    const double rho = ldexp(1.0, filter->row_exponent - filter->exponent);
    const double gamma = (half->columns + 64) * U_TENSOR;
    const double kappa = canonical_error(filter->data->stride);
    const double relative = 2 * U_HALF + U_HALF * U_HALF + gamma * 1.01 + U_SCORE;
    const double margin = MARGIN / (1 - gamma - U_SCORE);
    return (struct half_bound){
        .slope_plain = margin * rho * 2 * root * ETA_HALF * 1.01,
        .slope_length = margin * rho * 2 * relative,
        .offset_plain = margin * (2 * rho * half->columns * ETA_HALF * ETA_HALF + 0x1p-100),
        .offset_length = margin * 2 * rho * root * ETA_HALF * 1.01,
        .offset_square = margin * (gamma + U_SCORE + 4 * kappa)};
}

/* Two powers of two that multiply to 2^exponent. */
static void split_scale(cl_float scale[2], int exponent)
{
    scale[0] = (cl_float)ldexp(1.0, exponent / 2);
    scale[1] = (cl_float)ldexp(1.0, exponent - exponent / 2);
}

/* The tensor cores' sums are in units of this: twice what rows and centroids are scaled by to each
 * other, a power of two. */
static double score_unit(const struct filter *filter)
{
    return ldexp(2.0, filter->row_exponent - filter->exponent);
}

/* Lays out `used` centroids: the first ones, or those in panels->ids. */
static enum status lay_out(struct half_filter *half, struct half_panels *panels, cl_mem facts,
                           cl_uint used, bool listed, struct error *err)
{
    struct filter *filter = half->filter;
    panels->count = (used + KMEANS_HALF_LANES - 1) / KMEANS_HALF_LANES;
    if (panels->count == 0)
        return STATUS_OK;
    const cl_uint stride = filter->data->stride, use_ids = listed ? 1 : 0;
    const cl_mem squares = facts ? facts : half->squares;
    const cl_uint step = facts ? KMEANS_FACTS : 1, from = facts ? KMEANS_FACTS_SQUARE : 0;
    const cl_double square_scale = ldexp(1.0, -2 * filter->exponent), unit = score_unit(filter);
    const struct half_bound terms = bound(half);
    cl_float scale[2];
    split_scale(scale, -filter->exponent);
    scale[0] = -scale[0];
    enum status status =
        ocl_args(half->layout, err, sizeof(cl_mem), &filter->centroids, sizeof(cl_mem),
                 &filter->centre_buffer, sizeof squares, &squares, sizeof(cl_mem), &panels->ids,
                 sizeof(cl_mem), &panels->values, sizeof(cl_mem), &panels->lanes, sizeof(cl_mem),
                 &half->slope, sizeof(cl_mem), &half->offset, sizeof used, &used, sizeof stride,
                 &stride, sizeof half->columns, &half->columns, sizeof use_ids, &use_ids,
                 sizeof step, &step, sizeof from, &from, sizeof(cl_float), &scale[0],
                 sizeof(cl_float), &scale[1], sizeof square_scale, &square_scale, sizeof unit,
                 &unit, sizeof(cl_double), &terms.slope_plain, sizeof(cl_double),
                 &terms.slope_length, sizeof(cl_double), &terms.offset_plain, sizeof(cl_double),
                 &terms.offset_length, sizeof(cl_double), &terms.offset_square, OCL_ARGS_END);
    const size_t global[2] = {half->columns / 8, (size_t)panels->count * KMEANS_HALF_LANES};
    if (status == STATUS_OK)
        status = ocl_enqueue_kernel(filter->lane->compute, "round centroids", half->layout, 2,
                                    global, NULL, OCL_NO_WAITS, NULL, err);
    return status;
}

void half_take(struct half_filter *half)
{
    const struct filter *filter = half->filter;
    /* Differences from the centre are taken in float32. */
    half->ready =
        filter->exponent - filter->row_exponent <= SPREAD_MAX && filter->exponent < FLT_MAX_EXP - 1;
}

enum status half_lay_out(struct half_filter *half, cl_mem facts, struct error *err)
{
    const struct filter *filter = half->filter;
    enum status status = STATUS_OK;
    if (!facts)
        status = lane_send(filter->lane, "squares", half->squares, 0,
                           filter->k * sizeof *filter->squares, filter->squares, err);
    return status == STATUS_OK ? lay_out(half, &half->all, facts, filter->k, false, err) : status;
}

enum status half_send_ids(struct half_filter *half, const uint8_t *wanted, uint32_t count,
                          struct error *err)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < half->filter->k; i++)
        if (wanted[i])
            half->host_ids[lanes++] = (int32_t)i;
    while (lanes < count)
        half->host_ids[lanes++] = -1;
    return count == 0 ? STATUS_OK
                      : lane_send(half->filter->lane, "centroid ids", half->some.ids, 0,
                                  count * sizeof *half->host_ids, half->host_ids, err);
}

enum status half_lay_out_some(struct half_filter *half, cl_mem facts, uint32_t count,
                              struct error *err)
{
    return lay_out(half, &half->some, facts, count, true, err);
}

/* --- searching ------------------------------------------------------------------------------- */

enum status half_round(struct half_filter *half, struct tile *tile, struct error *err)
{
    struct filter *filter = half->filter;
    const cl_uint stride = filter->data->stride;
    if (tile->has_half)
        return STATUS_OK;
    cl_float scale[2];
    split_scale(scale, -filter->row_exponent);
    enum status status =
        ocl_args(half->round, err, sizeof(cl_mem), &tile->x, sizeof(cl_mem), &filter->centre_buffer,
                 sizeof(cl_mem), &tile->half, sizeof(cl_mem), &tile->norms, sizeof tile->rows,
                 &tile->rows, sizeof stride, &stride, sizeof half->columns, &half->columns,
                 sizeof(cl_float), &scale[0], sizeof(cl_float), &scale[1], sizeof filter->growth,
                 &filter->growth, sizeof filter->tiny, &filter->tiny, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = lane_launch(filter->lane, "round rows", half->round,
                             (uint64_t)tile->rows * KMEANS_HALF_SHARES, KMEANS_HALF_ITEMS, err);
    tile->has_half = tile->has_norms = status == STATUS_OK;
    return status;
}

/* What a launch of assign_half or list_half is about. */
struct launch {
    const char *tag;
    const struct half_panels *panels;
    cl_mem rows; /* NULL: all */
    cl_uint rows_count, most_rows;
    cl_uint mode;
    cl_mem upper;
    cl_uint flagged_count;
};

static enum status launch(struct half_filter *half, struct tile *tile, cl_mem counts,
                          const struct launch *job, struct error *err)
{
    struct filter *filter = half->filter;
    const double unit = score_unit(filter);
    const cl_float factor = (cl_float)unit;
    const cl_float slack = float_up(2 * canonical_error(filter->data->stride) * unit * unit);
    const cl_uint use_rows = job->rows ? 1 : 0;
    const size_t local[2] = {KMEANS_HALF_ITEMS, 1};
    const size_t groups = ((size_t)job->most_rows + KMEANS_HALF_ROWS - 1) / KMEANS_HALF_ROWS;
    /* Lists are of few rows: then groups share the panels. */
    const size_t shares = job->mode == KMEANS_HALF_LIST ? GROUPS_LIST / groups : 1;
    const size_t most = shares < job->panels->count ? shares : job->panels->count;
    const size_t global[2] = {groups * KMEANS_HALF_ITEMS, most > 0 ? most : 1};
    cl_mem rows = job->rows ? job->rows : half->flagged;
    cl_kernel kernel = job->mode == KMEANS_HALF_LIST ? half->list : half->assign;
    enum status status = ocl_args(
        kernel, err, sizeof(cl_mem), &tile->half, sizeof(cl_mem), &job->panels->values,
        sizeof(cl_mem), &job->panels->lanes, sizeof(cl_mem), &half->slope, sizeof(cl_mem),
        &half->offset, sizeof(cl_mem), &job->panels->ids, sizeof(cl_mem), &tile->norms,
        sizeof(cl_mem), &rows, sizeof(cl_mem), &tile->labels, sizeof(cl_mem), &tile->near,
        sizeof(cl_mem), &tile->far, sizeof(cl_mem), &job->upper, sizeof(cl_mem), &half->flagged,
        sizeof(cl_mem), &half->outcomes, sizeof(cl_mem), &half->outcomes, sizeof(cl_mem),
        &half->taken, sizeof(cl_mem), &counts, sizeof(cl_uint), &job->flagged_count,
        sizeof(cl_uint), &job->rows_count, sizeof(cl_uint), &job->most_rows, sizeof half->columns,
        &half->columns, sizeof(cl_uint), &job->panels->count, sizeof use_rows, &use_rows,
        sizeof(cl_uint), &job->mode, sizeof factor, &factor, sizeof slack, &slack,
        sizeof filter->bounds, &filter->bounds, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = ocl_enqueue_kernel(filter->lane->compute, job->tag, kernel, 2, global, local,
                                    OCL_NO_WAITS, NULL, err);
    return status;
}

/* A kernel whose groups take listed rows in turn, at most `rows` of them. */
static enum status launch_listed(struct half_filter *half, const char *tag, cl_kernel kernel,
                                 uint64_t rows, struct error *err)
{
    struct lane *lane = half->filter->lane;
    const uint64_t most = (uint64_t)lane->device->compute_units * GROUPS_UNIT;
    const uint64_t each = KMEANS_OWN_ITEMS / KMEANS_LANES, groups = (rows + each - 1) / each;
    return lane_launch(lane, tag, kernel, (groups < most ? groups : most) * KMEANS_OWN_ITEMS,
                       KMEANS_OWN_ITEMS, err);
}

enum status half_search(struct half_filter *half, struct tile *tile, cl_mem rows,
                        uint32_t rows_count, cl_mem upper, cl_mem counts, uint32_t flagged_count,
                        struct error *err)
{
    const struct launch job = {.tag = "search",
                               .panels = &half->all,
                               .rows = rows,
                               .rows_count = rows_count,
                               .most_rows = tile->rows,
                               .mode = KMEANS_HALF_ALL,
                               .upper = upper,
                               .flagged_count = flagged_count};
    return launch(half, tile, counts, &job, err);
}

enum status half_decide(struct half_filter *half, struct tile *tile, cl_mem upper, cl_mem left,
                        cl_mem counts, uint32_t flagged_count, uint32_t left_count,
                        struct error *err)
{
    struct filter *filter = half->filter;
    const struct launch job = {.tag = "list candidates",
                               .panels = &half->all,
                               .rows = half->flagged,
                               .rows_count = flagged_count,
                               .most_rows = half->room,
                               .mode = KMEANS_HALF_LIST,
                               .upper = upper};
    const cl_uint stride = filter->data->stride;
    const cl_double length_scale = ldexp(1.0, -filter->row_exponent);
    enum status status = half->room > 0 ? launch(half, tile, counts, &job, err) : STATUS_OK;
    if (status == STATUS_OK)
        status =
            ocl_args(half->decide, err, sizeof(cl_mem), &tile->x, sizeof(cl_mem),
                     &filter->centroids, sizeof(cl_mem), &tile->norms, sizeof(cl_mem),
                     &half->flagged, sizeof(cl_mem), &half->outcomes, sizeof(cl_mem), &half->taken,
                     sizeof(cl_mem), &upper, sizeof(cl_mem), &tile->labels, sizeof(cl_mem),
                     &tile->near, sizeof(cl_mem), &tile->far, sizeof(cl_mem), &left, sizeof(cl_mem),
                     &counts, sizeof left_count, &left_count, sizeof flagged_count, &flagged_count,
                     sizeof half->room, &half->room, sizeof stride, &stride, sizeof length_scale,
                     &length_scale, sizeof filter->bounds, &filter->bounds, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = launch_listed(half, "decide", half->decide, tile->rows, err);
    return status;
}

enum status half_search_some(struct half_filter *half, struct tile *tile, cl_mem rows,
                             uint32_t rows_count, cl_mem left, cl_mem counts, uint32_t retry_count,
                             uint32_t left_count, struct error *err)
{
    struct filter *filter = half->filter;
    /* `upper` is not written. */
    const struct launch job = {.tag = "search among movers",
                               .panels = &half->some,
                               .rows = rows,
                               .rows_count = rows_count,
                               .most_rows = tile->rows,
                               .mode = KMEANS_HALF_SOME,
                               .upper = tile->norms,
                               .flagged_count = retry_count};
    const cl_uint stride = filter->data->stride, searched = half->some.count > 0 ? 1 : 0;
    enum status status = searched ? launch(half, tile, counts, &job, err) : STATUS_OK;
    cl_mem list = searched ? half->flagged : rows;
    const cl_uint list_count = searched ? retry_count : rows_count;
    if (status == STATUS_OK)
        status =
            ocl_args(half->settle, err, sizeof(cl_mem), &tile->x, sizeof(cl_mem),
                     &filter->centroids, sizeof(cl_mem), &tile->norms, sizeof list, &list,
                     sizeof(cl_mem), &half->outcomes, sizeof(cl_mem), &tile->labels, sizeof(cl_mem),
                     &tile->near, sizeof(cl_mem), &tile->far, sizeof left, &left, sizeof(cl_mem),
                     &counts, sizeof left_count, &left_count, sizeof list_count, &list_count,
                     sizeof searched, &searched, sizeof stride, &stride, sizeof filter->half,
                     &filter->half, sizeof filter->growth, &filter->growth, sizeof filter->tiny,
                     &filter->tiny, sizeof filter->bounds, &filter->bounds, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = launch_listed(half, "own distances", half->settle, tile->rows, err);
    return status;
}
