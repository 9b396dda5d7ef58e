/* float16_filter.c: laying centroids out for the tensor cores, and the bounds of float16. The names follow
 * docs/clustering.md. */
#include "cluster/float16_filter.h"
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
#define COLUMNS_MIN   16u
#define COLUMNS_MAX   65536u
#define CENTROIDS_MIN 32u
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

static void close_panels(struct float16_panels *panels)
{
    ocl_buffer_release(&panels->values);
    ocl_buffer_release(&panels->starts);
    ocl_buffer_release(&panels->ids);
    *panels = (struct float16_panels){0};
}

static enum status open_panels(struct float16_panels *panels, const struct float16_filter *float16,
                               struct error *err)
{
    const size_t places = ((size_t)float16->filter->capacity + KMEANS_HALF_PANEL - 1) /
                          KMEANS_HALF_PANEL * KMEANS_HALF_PANEL;
    const struct lane_buffer wanted[] = {{&panels->values, places * float16->columns * 2},
                                         {&panels->starts, places * 2 * sizeof(float)},
                                         {&panels->ids, places * sizeof(cl_int)}};
    return lane_open_buffers(float16->filter->lane, wanted, COUNT_OF(wanted), "centroids", err);
}

static uint32_t columns_of(const struct data *data)
{
    return (data->dimension + KMEANS_HALF_COLUMNS - 1) / KMEANS_HALF_COLUMNS * KMEANS_HALF_COLUMNS;
}

uint32_t float16_keep(uint32_t columns)
{
    const uint32_t blocks = (columns + KMEANS_HALF_COLUMNS - 1) / KMEANS_HALF_COLUMNS;
    return blocks <= KEEP_MAX ? blocks : 0;
}

enum status float16_open_tile(struct float16_filter *float16, struct tile *tile, struct error *err)
{
    return ocl_buffer(&tile->float16, float16->filter->lane->ocl, CL_MEM_READ_WRITE,
                      (size_t)tile->rows * float16->columns * 2, NULL, "rounded rows", err);
}

bool float16_pays(const struct filter *filter)
{
    const struct data *data = filter->data;
    const bool large = data->dimension >= COLUMNS_MIN && filter->capacity >= CENTROIDS_MIN;
    const uint32_t columns = columns_of(data);
    uint64_t bytes;
    return filter->lane->tensor && data->resident && !filter->no_bound &&
           (large || filter->lane->plain_tensor) && columns <= COLUMNS_MAX &&
           !__builtin_mul_overflow(data->share.rows, (uint64_t)columns * 2 + LISTS_BYTES, &bytes) &&
           bytes <= data->spare;
}

static enum status open_kernels(struct float16_filter *float16, struct error *err)
{
    char options[32];
    snprintf(options, sizeof options, "-DKEEP=%u%s", float16_keep(float16->columns),
             float16->filter->lane->plain_tensor ? " -DPLAIN" : "");
    if (lane_build(&float16->program, float16->filter->lane, "kmeans_filter_half", options, err) !=
        STATUS_OK)
        return err->status;
    const cl_program program = float16->program;
    const struct lane_kernel kernels[] = {
        {&float16->round, program, "round_rows"},   {&float16->layout, program, "lay_out"},
        {&float16->assign, program, "assign_half"}, {&float16->list, program, "list_half"},
        {&float16->settle, program, "settle_rows"}, {&float16->decide, program, "decide_rows"}};
    return lane_open_kernels(kernels, COUNT_OF(kernels), err);
}

static enum status open_buffers(struct float16_filter *float16, struct error *err)
{
    struct lane *lane = float16->filter->lane;
    const size_t k = float16->filter->capacity, rows = float16->filter->data->tile_rows;
    /* A quarter of the rows, so that few groups find nothing to do. */
    float16->room = (uint32_t)(rows / 4);
    const struct lane_buffer wanted[] = {
        {&float16->squares, k * sizeof(cl_double)},
        {&float16->slope, k * sizeof(cl_float)},
        {&float16->offset, k * sizeof(cl_float)},
        {&float16->flagged, rows * sizeof(cl_uint)},
        {&float16->outcomes, rows * sizeof(cl_float4)},
        {&float16->taken, (float16->room + 1) * sizeof(cl_uint)},
    };
    if (lane_open_buffers(lane, wanted, COUNT_OF(wanted), "undecided rows", err) != STATUS_OK ||
        ocl_enqueue_fill(lane->compute, "zero counts", float16->taken, 0, 0,
                         (float16->room + 1) * sizeof(cl_uint), OCL_NO_WAITS, NULL,
                         err) != STATUS_OK)
        return err->status;
    /* Place i of `all` is centroid i. */
    for (size_t i = 0; i < k; i++)
        float16->host_ids[i] = (int32_t)i;
    return lane_write(lane, "centroid ids", float16->all.ids, 0, k * sizeof *float16->host_ids,
                      float16->host_ids, err);
}

enum status float16_open(struct float16_filter *float16, struct filter *filter, struct error *err)
{
    *float16 = (struct float16_filter){.filter = filter, .columns = columns_of(filter->data)};
    float16->host_ids = malloc(filter->capacity * sizeof *float16->host_ids);
    if (!float16->host_ids)
        return error_memory(err, filter->capacity * sizeof *float16->host_ids, "centroids");
    if (open_kernels(float16, err) != STATUS_OK ||
        open_panels(&float16->all, float16, err) != STATUS_OK ||
        open_panels(&float16->some, float16, err) != STATUS_OK)
        return err->status;
    return open_buffers(float16, err);
}

void float16_close(struct float16_filter *float16)
{
    cl_kernel *const kernels[] = {&float16->round, &float16->layout, &float16->assign,
                                  &float16->list,  &float16->settle, &float16->decide};
    lane_close_kernels(kernels, COUNT_OF(kernels));
    lane_close_program(&float16->program);
    close_panels(&float16->all);
    close_panels(&float16->some);
    cl_mem *buffers[] = {&float16->squares, &float16->slope,    &float16->offset,
                         &float16->flagged, &float16->outcomes, &float16->taken};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        ocl_buffer_release(buffers[i]);
    free(float16->host_ids);
    *float16 = (struct float16_filter){0};
}

/* --- laying out ------------------------------------------------------------------------------ */

/* Slope and offset, as sums of multiples of a centroid's length and its square, in scores' units.
 */
struct float16_bound {
    cl_double slope_plain, slope_length, offset_plain, offset_length, offset_square;
};

static struct float16_bound bound(const struct float16_filter *float16)
{
    const struct filter *filter = float16->filter;
    const double root = sqrt((double)float16->columns);
    const double rho = ldexp(1.0, filter->row_exponent - filter->exponent);
    const double gamma = (float16->columns + 64) * U_TENSOR;
    const double kappa = canonical_error(filter->data->stride);
    const double relative = 2 * U_HALF + U_HALF * U_HALF + gamma * 1.01 + U_SCORE;
    const double margin = MARGIN / (1 - gamma - U_SCORE);
    return (struct float16_bound){
        .slope_plain = margin * rho * 2 * root * ETA_HALF * 1.01,
        .slope_length = margin * rho * 2 * relative,
        .offset_plain = margin * (2 * rho * float16->columns * ETA_HALF * ETA_HALF + 0x1p-100),
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
static enum status lay_out(struct float16_filter *float16, struct float16_panels *panels,
                           cl_mem moves, cl_uint used, bool listed, struct error *err)
{
    struct filter *filter = float16->filter;
    panels->count = (used + KMEANS_HALF_PANEL - 1) / KMEANS_HALF_PANEL;
    if (panels->count == 0)
        return STATUS_OK;
    const cl_uint stride = filter->data->stride, use_ids = listed ? 1 : 0;
    const cl_mem squares = moves ? moves : float16->squares;
    const cl_uint step = moves ? KMEANS_FACTS : 1, from = moves ? KMEANS_FACTS_SQUARE : 0;
    const cl_double square_scale = ldexp(1.0, -2 * filter->exponent), unit = score_unit(filter);
    const struct float16_bound terms = bound(float16);
    cl_float scale[2];
    split_scale(scale, -filter->exponent);
    scale[0] = -scale[0];
    if (ocl_args(float16->layout, err, sizeof(cl_mem), &filter->centroids, sizeof(cl_mem),
                 &filter->centre_buffer, sizeof squares, &squares, sizeof(cl_mem), &panels->ids,
                 sizeof(cl_mem), &panels->values, sizeof(cl_mem), &panels->starts, sizeof(cl_mem),
                 &float16->slope, sizeof(cl_mem), &float16->offset, sizeof used, &used,
                 sizeof stride, &stride, sizeof float16->columns, &float16->columns, sizeof use_ids,
                 &use_ids, sizeof step, &step, sizeof from, &from, sizeof(cl_float), &scale[0],
                 sizeof(cl_float), &scale[1], sizeof square_scale, &square_scale, sizeof unit,
                 &unit, sizeof(cl_double), &terms.slope_plain, sizeof(cl_double),
                 &terms.slope_length, sizeof(cl_double), &terms.offset_plain, sizeof(cl_double),
                 &terms.offset_length, sizeof(cl_double), &terms.offset_square,
                 OCL_ARGS_END) != STATUS_OK)
        return err->status;
    const size_t global[2] = {float16->columns / 8, (size_t)panels->count * KMEANS_HALF_PANEL};
    return ocl_enqueue_kernel(filter->lane->compute, "round centroids", float16->layout, 2, global,
                              NULL, OCL_NO_WAITS, NULL, err);
}

bool float16_usable(const struct float16_filter *float16)
{
    const struct filter *filter = float16->filter;
    /* Differences from the centre are taken in float32. */
    return filter->exponent - filter->row_exponent <= SPREAD_MAX &&
           filter->exponent < FLT_MAX_EXP - 1;
}

enum status float16_lay_out(struct float16_filter *float16, cl_mem moves, struct error *err)
{
    const struct filter *filter = float16->filter;
    enum status status = STATUS_OK;
    if (!moves)
        status = lane_send(filter->lane, "squares", float16->squares, 0,
                           filter->k * sizeof *filter->squares, filter->squares, err);
    return status == STATUS_OK ? lay_out(float16, &float16->all, moves, filter->k, false, err)
                               : status;
}

enum status float16_send_ids(struct float16_filter *float16, const uint8_t *wanted, uint32_t count,
                             struct error *err)
{
    uint32_t places = 0;
    for (uint32_t i = 0; i < float16->filter->k; i++)
        if (wanted[i])
            float16->host_ids[places++] = (int32_t)i;
    while (places < count)
        float16->host_ids[places++] = -1;
    return count == 0 ? STATUS_OK
                      : lane_send(float16->filter->lane, "centroid ids", float16->some.ids, 0,
                                  count * sizeof *float16->host_ids, float16->host_ids, err);
}

enum status float16_lay_out_some(struct float16_filter *float16, cl_mem moves, uint32_t count,
                                 struct error *err)
{
    return lay_out(float16, &float16->some, moves, count, true, err);
}

/* --- searching ------------------------------------------------------------------------------- */

enum status float16_round(struct float16_filter *float16, struct tile *tile, struct error *err)
{
    struct filter *filter = float16->filter;
    const cl_uint stride = filter->data->stride;
    if (tile->has_float16)
        return STATUS_OK;
    cl_float scale[2];
    split_scale(scale, -filter->row_exponent);
    enum status status = ocl_args(
        float16->round, err, sizeof(cl_mem), &tile->x, sizeof(cl_mem), &filter->centre_buffer,
        sizeof(cl_mem), &tile->float16, sizeof(cl_mem), &tile->norms, sizeof tile->rows,
        &tile->rows, sizeof stride, &stride, sizeof float16->columns, &float16->columns,
        sizeof(cl_float), &scale[0], sizeof(cl_float), &scale[1], sizeof filter->growth,
        &filter->growth, sizeof filter->tiny, &filter->tiny, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = lane_launch(filter->lane, "round rows", float16->round,
                             (uint64_t)tile->rows * KMEANS_HALF_SHARES, KMEANS_HALF_ITEMS, err);
    tile->has_float16 = tile->has_norms = status == STATUS_OK;
    return status;
}

/* What a launch of assign_half or list_half is about. */
struct launch {
    const char *tag;
    const struct float16_panels *panels;
    cl_mem rows; /* NULL: all */
    cl_uint rows_count, most_rows;
    cl_uint mode;
    cl_mem upper;
    cl_uint flagged_count;
};

static enum status launch(struct float16_filter *float16, struct tile *tile, cl_mem counts,
                          const struct launch *job, struct error *err)
{
    struct filter *filter = float16->filter;
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
    cl_mem rows = job->rows ? job->rows : float16->flagged;
    cl_kernel kernel = job->mode == KMEANS_HALF_LIST ? float16->list : float16->assign;
    if (ocl_args(kernel, err, sizeof(cl_mem), &tile->float16, sizeof(cl_mem), &job->panels->values,
                 sizeof(cl_mem), &job->panels->starts, sizeof(cl_mem), &float16->slope,
                 sizeof(cl_mem), &float16->offset, sizeof(cl_mem), &job->panels->ids,
                 sizeof(cl_mem), &tile->norms, sizeof(cl_mem), &rows, sizeof(cl_mem), &tile->labels,
                 sizeof(cl_mem), &tile->upper_bounds, sizeof(cl_mem), &tile->lower_bounds,
                 sizeof(cl_mem), &job->upper, sizeof(cl_mem), &float16->flagged, sizeof(cl_mem),
                 &float16->outcomes, sizeof(cl_mem), &float16->outcomes, sizeof(cl_mem),
                 &float16->taken, sizeof(cl_mem), &counts, sizeof(cl_uint), &job->flagged_count,
                 sizeof(cl_uint), &job->rows_count, sizeof(cl_uint), &job->most_rows,
                 sizeof float16->columns, &float16->columns, sizeof(cl_uint), &job->panels->count,
                 sizeof use_rows, &use_rows, sizeof(cl_uint), &job->mode, sizeof factor, &factor,
                 sizeof slack, &slack, sizeof filter->bounds, &filter->bounds,
                 OCL_ARGS_END) != STATUS_OK)
        return err->status;
    return ocl_enqueue_kernel(filter->lane->compute, job->tag, kernel, 2, global, local,
                              OCL_NO_WAITS, NULL, err);
}

/* A kernel whose groups take listed rows in turn, at most `rows` of them. */
static enum status launch_listed(struct float16_filter *float16, const char *tag, cl_kernel kernel,
                                 uint64_t rows, struct error *err)
{
    struct lane *lane = float16->filter->lane;
    const uint64_t most = (uint64_t)lane->device->compute_units * GROUPS_UNIT;
    const uint64_t each = KMEANS_OWN_ITEMS / KMEANS_LANES, groups = (rows + each - 1) / each;
    return lane_launch(lane, tag, kernel, (groups < most ? groups : most) * KMEANS_OWN_ITEMS,
                       KMEANS_OWN_ITEMS, err);
}

enum status float16_search(struct float16_filter *float16, struct tile *tile, cl_mem rows,
                           uint32_t rows_count, cl_mem upper, cl_mem counts, uint32_t flagged_count,
                           struct error *err)
{
    const struct launch job = {.tag = "search",
                               .panels = &float16->all,
                               .rows = rows,
                               .rows_count = rows_count,
                               .most_rows = tile->rows,
                               .mode = KMEANS_HALF_ALL,
                               .upper = upper,
                               .flagged_count = flagged_count};
    return launch(float16, tile, counts, &job, err);
}

enum status float16_decide(struct float16_filter *float16, struct tile *tile, cl_mem upper,
                           cl_mem left, cl_mem counts, uint32_t flagged_count, uint32_t left_count,
                           struct error *err)
{
    struct filter *filter = float16->filter;
    const struct launch job = {.tag = "list candidates",
                               .panels = &float16->all,
                               .rows = float16->flagged,
                               .rows_count = flagged_count,
                               .most_rows = float16->room,
                               .mode = KMEANS_HALF_LIST,
                               .upper = upper};
    const cl_uint stride = filter->data->stride;
    const cl_double length_scale = ldexp(1.0, -filter->row_exponent);
    enum status status = float16->room > 0 ? launch(float16, tile, counts, &job, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = ocl_args(float16->decide, err, sizeof(cl_mem), &tile->x, sizeof(cl_mem),
                          &filter->centroids, sizeof(cl_mem), &tile->norms, sizeof(cl_mem),
                          &float16->flagged, sizeof(cl_mem), &float16->outcomes, sizeof(cl_mem),
                          &float16->taken, sizeof(cl_mem), &upper, sizeof(cl_mem), &tile->labels,
                          sizeof(cl_mem), &tile->upper_bounds, sizeof(cl_mem), &tile->lower_bounds,
                          sizeof(cl_mem), &left, sizeof(cl_mem), &counts, sizeof left_count,
                          &left_count, sizeof flagged_count, &flagged_count, sizeof float16->room,
                          &float16->room, sizeof stride, &stride, sizeof length_scale,
                          &length_scale, sizeof filter->bounds, &filter->bounds, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = launch_listed(float16, "decide", float16->decide, tile->rows, err);
    return status;
}

enum status float16_search_some(struct float16_filter *float16, struct tile *tile, cl_mem rows,
                                uint32_t rows_count, cl_mem left, cl_mem counts,
                                uint32_t retry_count, uint32_t left_count, struct error *err)
{
    struct filter *filter = float16->filter;
    /* `upper` is not written. */
    const struct launch job = {.tag = "search among moved",
                               .panels = &float16->some,
                               .rows = rows,
                               .rows_count = rows_count,
                               .most_rows = tile->rows,
                               .mode = KMEANS_HALF_SOME,
                               .upper = tile->norms,
                               .flagged_count = retry_count};
    const cl_uint stride = filter->data->stride, searched = float16->some.count > 0 ? 1 : 0;
    enum status status = searched ? launch(float16, tile, counts, &job, err) : STATUS_OK;
    cl_mem list = searched ? float16->flagged : rows;
    const cl_uint list_count = searched ? retry_count : rows_count;
    if (status == STATUS_OK)
        status = ocl_args(float16->settle, err, sizeof(cl_mem), &tile->x, sizeof(cl_mem),
                          &filter->centroids, sizeof(cl_mem), &tile->norms, sizeof list, &list,
                          sizeof(cl_mem), &float16->outcomes, sizeof(cl_mem), &tile->labels,
                          sizeof(cl_mem), &tile->upper_bounds, sizeof(cl_mem), &tile->lower_bounds,
                          sizeof left, &left, sizeof(cl_mem), &counts, sizeof left_count,
                          &left_count, sizeof list_count, &list_count, sizeof searched, &searched,
                          sizeof stride, &stride, sizeof filter->half_scale, &filter->half_scale,
                          sizeof filter->growth, &filter->growth, sizeof filter->tiny,
                          &filter->tiny, sizeof filter->bounds, &filter->bounds, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = launch_listed(float16, "own distances", float16->settle, tile->rows, err);
    return status;
}
