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

static enum status open_panels(struct float16_panels *panels, struct float16_filter *float16,
                               struct error *err)
{
    const size_t places = ((size_t)float16->filter->capacity + KMEANS_HALF_PANEL - 1) /
                          KMEANS_HALF_PANEL * KMEANS_HALF_PANEL;
    const struct lane_wanted wanted[] = {BUFFER(panels->values, places * float16->columns * 2),
                                         BUFFER(panels->starts, places * 2 * sizeof(float)),
                                         BUFFER(panels->ids, places * sizeof(cl_int))};
    return lane_hold(&float16->held, float16->filter->lane, wanted, COUNT_OF(wanted), "centroids",
                     err);
}

static uint32_t columns_of(const struct data *data)
{
    return (data->dimension + KMEANS_HALF_COLUMNS - 1) / KMEANS_HALF_COLUMNS * KMEANS_HALF_COLUMNS;
}

/* Blocks of columns that the kernels keep in registers; 0: rows are too long. */
static uint32_t keep(uint32_t columns)
{
    const uint32_t blocks = (columns + KMEANS_HALF_COLUMNS - 1) / KMEANS_HALF_COLUMNS;
    return blocks <= KEEP_MAX ? blocks : 0;
}

enum status float16_open_tile(struct float16_filter *float16, struct tile *tile, struct error *err)
{
    const struct lane_wanted wanted =
        BUFFER(tile->float16, (size_t)tile->rows * float16->columns * 2);
    return lane_hold(&tile->held, float16->filter->lane, &wanted, 1, "rounded rows", err);
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
    snprintf(options, sizeof options, "-DKEEP=%u%s", keep(float16->columns),
             float16->filter->lane->plain_tensor ? " -DPLAIN" : "");
    struct lane *lane = float16->filter->lane;
    cl_program program;
    if (lane_program(&program, lane, "kmeans_filter_half", options, err) != STATUS_OK)
        return err->status;
    const struct lane_wanted kernels[] = {KERNEL(float16->round, program, "round_rows"),
                                          KERNEL(float16->layout, program, "lay_out"),
                                          KERNEL(float16->assign, program, "assign_half"),
                                          KERNEL(float16->list, program, "list_half"),
                                          KERNEL(float16->settle, program, "settle_rows"),
                                          KERNEL(float16->decide, program, "decide_rows")};
    return lane_hold(&float16->held, lane, kernels, COUNT_OF(kernels), "undecided rows", err);
}

static enum status open_buffers(struct float16_filter *float16, struct error *err)
{
    struct lane *lane = float16->filter->lane;
    const size_t k = float16->filter->capacity, rows = float16->filter->data->tile_rows;
    /* A quarter of the rows, so that few groups find nothing to do. */
    float16->room = (uint32_t)(rows / 4);
    const struct lane_wanted wanted[] = {
        HOST(float16->host_ids, k),
        BUFFER(float16->squares, k * sizeof(cl_double)),
        BUFFER(float16->slope, k * sizeof(cl_float)),
        BUFFER(float16->offset, k * sizeof(cl_float)),
        BUFFER(float16->flagged, rows * sizeof(cl_uint)),
        BUFFER(float16->outcomes, rows * sizeof(cl_float4)),
        BUFFER(float16->taken, (float16->room + 1) * sizeof(cl_uint))};
    if (lane_hold(&float16->held, lane, wanted, COUNT_OF(wanted), "undecided rows", err) !=
            STATUS_OK ||
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
    if (open_kernels(float16, err) != STATUS_OK ||
        open_panels(&float16->all, float16, err) != STATUS_OK ||
        open_panels(&float16->some, float16, err) != STATUS_OK)
        return err->status;
    return open_buffers(float16, err);
}

void float16_close(struct float16_filter *float16)
{
    lane_release(&float16->held);
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
    if (ocl_args(float16->layout, err, OCL_ARG(filter->centroids), OCL_ARG(filter->centre_buffer),
                 OCL_ARG(squares), OCL_ARG(panels->ids), OCL_ARG(panels->values),
                 OCL_ARG(panels->starts), OCL_ARG(float16->slope), OCL_ARG(float16->offset),
                 OCL_ARG(used), OCL_ARG(stride), OCL_ARG(float16->columns), OCL_ARG(use_ids),
                 OCL_ARG(step), OCL_ARG(from), OCL_ARG(scale[0]), OCL_ARG(scale[1]),
                 OCL_ARG(square_scale), OCL_ARG(unit), OCL_ARG(terms.slope_plain),
                 OCL_ARG(terms.slope_length), OCL_ARG(terms.offset_plain),
                 OCL_ARG(terms.offset_length), OCL_ARG(terms.offset_square),
                 OCL_ARGS_END) != STATUS_OK)
        return err->status;
    const size_t global[2] = {float16->columns / 8, (size_t)panels->count * KMEANS_HALF_PANEL};
    return lane_launch_2d(filter->lane, "round centroids", float16->layout, global, NULL, err);
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
    enum status status =
        ocl_args(float16->round, err, OCL_ARG(tile->x), OCL_ARG(filter->centre_buffer),
                 OCL_ARG(tile->float16), OCL_ARG(tile->norms), OCL_ARG(tile->rows), OCL_ARG(stride),
                 OCL_ARG(float16->columns), OCL_ARG(scale[0]), OCL_ARG(scale[1]),
                 OCL_ARG(filter->growth), OCL_ARG(filter->tiny), OCL_ARGS_END);
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
    if (ocl_args(kernel, err, OCL_ARG(tile->float16), OCL_ARG(job->panels->values),
                 OCL_ARG(job->panels->starts), OCL_ARG(float16->slope), OCL_ARG(float16->offset),
                 OCL_ARG(job->panels->ids), OCL_ARG(tile->norms), OCL_ARG(rows),
                 OCL_ARG(tile->labels), OCL_ARG(tile->upper_bounds), OCL_ARG(tile->lower_bounds),
                 OCL_ARG(job->upper), OCL_ARG(float16->flagged), OCL_ARG(float16->outcomes),
                 OCL_ARG(float16->outcomes), OCL_ARG(float16->taken), OCL_ARG(counts),
                 OCL_ARG(job->flagged_count), OCL_ARG(job->rows_count), OCL_ARG(job->most_rows),
                 OCL_ARG(float16->columns), OCL_ARG(job->panels->count), OCL_ARG(use_rows),
                 OCL_ARG(job->mode), OCL_ARG(factor), OCL_ARG(slack), OCL_ARG(filter->bounds),
                 OCL_ARGS_END) != STATUS_OK)
        return err->status;
    return lane_launch_2d(filter->lane, job->tag, kernel, global, local, err);
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
        status = ocl_args(
            float16->decide, err, OCL_ARG(tile->x), OCL_ARG(filter->centroids),
            OCL_ARG(tile->norms), OCL_ARG(float16->flagged), OCL_ARG(float16->outcomes),
            OCL_ARG(float16->taken), OCL_ARG(upper), OCL_ARG(tile->labels),
            OCL_ARG(tile->upper_bounds), OCL_ARG(tile->lower_bounds), OCL_ARG(left),
            OCL_ARG(counts), OCL_ARG(left_count), OCL_ARG(flagged_count), OCL_ARG(float16->room),
            OCL_ARG(stride), OCL_ARG(length_scale), OCL_ARG(filter->bounds), OCL_ARGS_END);
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
        status = ocl_args(float16->settle, err, OCL_ARG(tile->x), OCL_ARG(filter->centroids),
                          OCL_ARG(tile->norms), OCL_ARG(list), OCL_ARG(float16->outcomes),
                          OCL_ARG(tile->labels), OCL_ARG(tile->upper_bounds),
                          OCL_ARG(tile->lower_bounds), OCL_ARG(left), OCL_ARG(counts),
                          OCL_ARG(left_count), OCL_ARG(list_count), OCL_ARG(searched),
                          OCL_ARG(stride), OCL_ARG(filter->half_scale), OCL_ARG(filter->growth),
                          OCL_ARG(filter->tiny), OCL_ARG(filter->bounds), OCL_ARGS_END);
    if (status == STATUS_OK)
        status = launch_listed(float16, "own distances", float16->settle, tile->rows, err);
    return status;
}
