/* assigner_float16.c: float16 on tensor cores (kmeans_filter_half.cl), on NVIDIA GPUs. For a row
 * that it leaves undecided it lists the centroids that may be its nearest, for the canonical
 * distance to decide; rows with too many of them go to the float32 filter.
 *
 * Scores mean the same as in filter.h, with larger bounds. Names follow docs/clustering.md. */
#include "kmeans.h"
#include "kmeans/assign.h"
#include "kmeans_half.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

/* Relative rounding error of the centre's subtraction. */
#define U_CENTRE 0x1p-23
/* The rounding error of a float16 centroid, relative to its length: slopes are at least those of a
 * centroid that loses this much. Most lose about 0.42 of 2^-11. */
#define REST_LEAST (0.43 * 0x1p-11)
/* Error per term of a tensor core's sum, relative to the sum of magnitudes. */
#define U_TENSOR 0x1p-22
/* Error of a score's float32 steps and of overwriting its lowest 4 bits. */
#define U_SCORE (48 * 0x1p-24)
#define MARGIN  1.02
/* Shorter rows do not keep tensor cores busy; longer ones have no useful bound. */
#define COLUMNS_MIN   16u
#define COLUMNS_MAX   65536u
#define CENTROIDS_MIN 32u
/* One row in ROOM has slots, so that few groups idle, but at most this many rows. */
#define ROOM      2u
#define ROOM_MOST (1u << 25)
/* Maximum size of the lists and the reach, per row. */
#define LISTS_BYTES (12u + KMEANS_HALF_SLOTS * 4u / ROOM)

/* Maximum number of column blocks of a row that fit in registers next to the scores. */
#define KEEP_MAX 4

/* Largest power of two by which centroids may lie beyond the rows without overflowing starts. */
#define SPREAD_MAX 40

/* Groups per compute unit for kernels that stride over rows. */
#define GROUPS_UNIT 16
/* Groups of a launch that lists centroids; most find no rows. */
#define GROUPS_LIST 16384

/* Fewer rows do not fill a GPU: the float32 filter would take as long for more. */
#define FEW_ROWS 2048

/* What begin_tile has yet to lay out for this pass, while the first tile's rows are split. */
enum layout { LAID_OUT, ALL_DUE, ALL_AND_MOVED_DUE };

struct tensor {
    struct assign *assign;
    struct filter *filter;
    enum layout layout;
    uint32_t columns;
    char options[32]; /* of the program kmeans_filter_half */
    cl_kernel round, layout_kernel, search, list, settle, decide;
    struct half_panels all, some, trial; /* trial: candidates of seeding */
    cl_mem squares;                      /* k: of the centroids */
    cl_mem slope, offset;                /* k */
    int32_t *host_ids;                   /* k: of `some` */
    /* For the largest tile: */
    cl_mem flagged;  /* undecided rows */
    cl_mem outcomes; /* of searches among some, 16 bytes per row; later reused for slots */
    cl_mem taken;    /* slots in use of undecided rows */
    uint32_t room;   /* rows with slots */
};

static enum status open_panels(struct half_panels *panels, struct lane_held **held,
                               const struct tensor *tensor, uint32_t capacity, struct error *err)
{
    const size_t places =
        ((size_t)capacity + KMEANS_HALF_PANEL - 1) / KMEANS_HALF_PANEL * KMEANS_HALF_PANEL;
    const struct lane_wanted wanted[] = {BUFFER(panels->values, places * tensor->columns * 2),
                                         BUFFER(panels->starts, places * 2 * sizeof(float)),
                                         BUFFER(panels->ids, places * sizeof(cl_int))};
    return lane_hold(held, tensor->filter->lane, wanted, COUNT_OF(wanted), "centroids", err);
}

static uint32_t columns_of(const struct data *data)
{
    return (data->dimension + KMEANS_HALF_COLUMNS - 1) / KMEANS_HALF_COLUMNS * KMEANS_HALF_COLUMNS;
}

/* Column blocks that the kernels keep in registers; 0: rows are too long. */
static uint32_t keep(uint32_t columns)
{
    const uint32_t blocks = (columns + KMEANS_HALF_COLUMNS - 1) / KMEANS_HALF_COLUMNS;
    return blocks <= KEEP_MAX ? blocks : 0;
}

enum status float16_open_tile(const struct assign *assign, struct lane_held **held,
                              struct tile *tile, struct error *err)
{
    if (!assign->tensor)
        return STATUS_OK;
    const struct lane_wanted wanted[] = {
        BUFFER(tile->float16, (size_t)tile->rows * assign->tensor->columns * 2),
        BUFFER(tile->reaches, tile->rows * sizeof(cl_float))};
    return lane_hold(held, assign->lane, wanted, COUNT_OF(wanted), "rounded rows", err);
}

/* Whether the device supports it, the rows are resident, there is memory for their float16 copy,
 * and there are enough rows and centroids. */
static bool possible(const struct filter *filter)
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

static enum status open_kernels(struct tensor *tensor, struct lane_held **held, struct error *err)
{
    const char *program = "kmeans_filter_half", *options = tensor->options;
    snprintf(tensor->options, sizeof tensor->options, "-DKEEP=%u%s", keep(tensor->columns),
             tensor->filter->lane->plain_tensor ? " -DPLAIN" : "");
    struct lane *lane = tensor->filter->lane;
    const struct lane_wanted kernels[] = {
        KERNEL(tensor->round, program, options, "round_rows"),
        KERNEL(tensor->layout_kernel, program, options, "lay_out"),
        KERNEL(tensor->search, program, options, "assign_half"),
        KERNEL(tensor->list, program, options, "list_half"),
        KERNEL(tensor->settle, program, options, "settle_rows"),
        KERNEL(tensor->decide, program, options, "decide_rows")};
    return lane_hold(held, lane, kernels, COUNT_OF(kernels), "undecided rows", err);
}

static enum status open_buffers(struct tensor *tensor, struct lane_held **held, struct error *err)
{
    struct lane *lane = tensor->filter->lane;
    const size_t k = tensor->filter->capacity, rows = tensor->filter->data->tile_rows;
    const size_t each = KMEANS_HALF_SLOTS * sizeof(cl_int), outcomes = rows * sizeof(cl_float4);
    const uint64_t allocation = lane->device->max_allocation;
    size_t room = rows / ROOM < ROOM_MOST ? rows / ROOM : ROOM_MOST;
    if (allocation > 0 && room > allocation / each)
        room = (size_t)(allocation / each);
    tensor->room = (uint32_t)room;
    const struct lane_wanted wanted[] = {
        HOST(tensor->host_ids, k),
        BUFFER(tensor->squares, k * sizeof(cl_double)),
        BUFFER(tensor->slope, k * sizeof(cl_float)),
        BUFFER(tensor->offset, k * sizeof(cl_float)),
        BUFFER(tensor->flagged, rows * sizeof(cl_uint)),
        BUFFER(tensor->outcomes, room * each > outcomes ? room * each : outcomes),
        BUFFER(tensor->taken, (tensor->room + 1) * sizeof(cl_uint))};
    if (lane_hold(held, lane, wanted, COUNT_OF(wanted), "undecided rows", err) != STATUS_OK ||
        lane_fill(lane, "zero counts", tensor->taken, 0, 0, (tensor->room + 1) * sizeof(cl_uint),
                  err) != STATUS_OK)
        return err->status;
    /* Lane i of `all` is centroid i. */
    for (size_t i = 0; i < k; i++)
        tensor->host_ids[i] = (int32_t)i;
    return lane_write(lane, "centroid ids", tensor->all.ids, 0, k * sizeof *tensor->host_ids,
                      tensor->host_ids, err);
}

enum status float16_open(struct assign *assign, struct lane_held **held, struct error *err)
{
    struct data *data = assign->data;
    const struct lane_wanted wanted = HOST(assign->tensor, 1);
    if (!possible(assign->filter))
        return STATUS_OK;
    if (lane_hold(held, assign->lane, &wanted, 1, "centroids", err) != STATUS_OK)
        return err->status;
    struct tensor *tensor = assign->tensor;
    *tensor =
        (struct tensor){.assign = assign, .filter = assign->filter, .columns = columns_of(data)};
    if (open_kernels(tensor, held, err) != STATUS_OK ||
        open_panels(&tensor->all, held, tensor, tensor->filter->capacity, err) != STATUS_OK ||
        open_panels(&tensor->some, held, tensor, tensor->filter->capacity, err) != STATUS_OK ||
        open_panels(&tensor->trial, held, tensor, KMEANS_TRIALS_MAX, err) != STATUS_OK ||
        open_buffers(tensor, held, err) != STATUS_OK)
        return err->status;
    /* The rows' copies stay with the data, shared by all filters. */
    for (uint32_t i = 0; i < data->tile_count; i++)
        if (!data->tiles[i].float16 &&
            float16_open_tile(assign, data->held, &data->tiles[i], err) != STATUS_OK)
            return err->status;
    return STATUS_OK;
}

/* --- laying out ------------------------------------------------------------------------------ */

/* Rounding error of a sum, and what keeps the float32 steps of a bound above it. */
static double gamma_of(const struct tensor *tensor)
{
    return (tensor->columns + 64) * U_TENSOR;
}

/* Two powers of two that multiply to 2^exponent. */
static void split_scale(cl_float scale[2], int exponent)
{
    scale[0] = (cl_float)ldexp(1.0, exponent / 2);
    scale[1] = (cl_float)ldexp(1.0, exponent - exponent / 2);
}

/* The unit of tensor core sums: twice the scale between rows and centroids, a power of two. */
static double score_unit(const struct filter *filter)
{
    return ldexp(2.0, filter->row_exponent - filter->exponent);
}

/* docs/clustering.md: slope as a linear combination of lengths, the offset of a square. */
static struct kmeans_half_terms terms_of(const struct tensor *tensor)
{
    const struct filter *filter = tensor->filter;
    const double rho = ldexp(1.0, filter->row_exponent - filter->exponent);
    const double gamma = gamma_of(tensor), margin = MARGIN / (1 - gamma - U_SCORE);
    const double kappa = canonical_error(filter->data->stride);
    struct kmeans_half_terms terms = {.square_scale = ldexp(1.0, -2 * filter->exponent),
                                      .unit = score_unit(filter),
                                      .slope_length = margin * 2 * rho,
                                      .rest_least = REST_LEAST,
                                      .offset_plain = margin * 0x1p-100,
                                      .offset_square = margin * (gamma + U_SCORE + 4 * kappa),
                                      .growth = filter->growth,
                                      .tiny = filter->tiny};
    cl_float scale[2];
    split_scale(scale, -filter->exponent);
    terms.scale = -scale[0];
    terms.scale_again = scale[1];
    return terms;
}

/* Lays out `used` of the given rows: the first ones, or those in panels->ids. squares: as lay_out
 * (kmeans_filter_half.cl) takes them, from struct centroid_move if moves. within: NULL for
 * centroids, whose slopes and offsets are kept. */
static enum status lay_out(struct tensor *tensor, struct half_panels *panels, cl_mem rows,
                           cl_mem squares, cl_mem within, bool moves, cl_uint used, bool listed,
                           struct error *err)
{
    struct filter *filter = tensor->filter;
    panels->count = (used + KMEANS_HALF_PANEL - 1) / KMEANS_HALF_PANEL;
    if (panels->count == 0)
        return STATUS_OK;
    const cl_uint stride = filter->data->stride, use_ids = listed ? 1 : 0;
    const cl_uint step = moves ? KMEANS_FACTS : 1, from = moves ? KMEANS_FACTS_SQUARE : 0;
    const struct kmeans_half_terms terms = terms_of(tensor);
    const cl_mem slope = within ? NULL : tensor->slope, offset = within ? NULL : tensor->offset;
    return LANE_RUN(filter->lane, "round centroids", tensor->layout_kernel,
                    (uint64_t)panels->count * KMEANS_HALF_PANEL * KMEANS_HALF_LANE_ITEMS,
                    KMEANS_HALF_LANE_ITEMS, err, OCL_ARG(rows), OCL_ARG(filter->centre_buffer),
                    OCL_ARG(squares), OCL_ARG(within), OCL_ARG(panels->ids),
                    OCL_ARG(panels->values), OCL_ARG(panels->starts), OCL_ARG(slope),
                    OCL_ARG(offset), OCL_ARG(used), OCL_ARG(stride), OCL_ARG(tensor->columns),
                    OCL_ARG(use_ids), OCL_ARG(step), OCL_ARG(from), OCL_ARG(terms));
}

bool float16_usable(const struct assign *assign)
{
    const struct filter *filter = assign->filter;
    /* Differences from the centre are computed in float32. */
    return assign->tensor && filter->exponent - filter->row_exponent <= SPREAD_MAX &&
           filter->exponent < FLT_MAX_EXP - 1;
}

static enum status begin_pass(struct assign *assign, bool *incremental, struct error *err)
{
    (void)err;
    assign->tensor->layout = *incremental ? ALL_AND_MOVED_DUE : ALL_DUE;
    return STATUS_OK;
}

/* Writes the indices of `count` moved centroids, padded with -1, to where those are laid out. */
static enum status send_ids(struct tensor *tensor, const uint8_t *moved, uint32_t count,
                            struct error *err)
{
    uint32_t places = 0;
    for (uint32_t i = 0; i < tensor->filter->k; i++)
        if (moved[i])
            tensor->host_ids[places++] = (int32_t)i;
    while (places < count)
        tensor->host_ids[places++] = -1;
    return count == 0 ? STATUS_OK
                      : lane_send(tensor->filter->lane, "centroid ids", tensor->some.ids, 0,
                                  count * sizeof *tensor->host_ids, tensor->host_ids, err);
}

static enum status lay_out_due(struct tensor *tensor, struct error *err)
{
    const struct filter *filter = tensor->filter;
    struct prune *prune = &tensor->assign->prune;
    const cl_mem moves = tensor->assign->device_centroids;
    const enum layout due = tensor->layout;
    tensor->layout = LAID_OUT;
    if (due == LAID_OUT)
        return STATUS_OK;
    if (!moves && lane_send(filter->lane, "squares", tensor->squares, 0,
                            filter->k * sizeof *filter->squares, filter->squares, err) != STATUS_OK)
        return err->status;
    const cl_mem squares = moves ? moves : tensor->squares;
    enum status status = lay_out(tensor, &tensor->all, filter->centroids, squares, NULL, moves,
                                 filter->k, false, err);
    if (status != STATUS_OK || due == ALL_DUE)
        return status;
    status = prune->moved_on_device ? prune_list(prune, tensor->some.ids, filter->k, err)
                                    : send_ids(tensor, prune->moved, prune->moved_count, err);
    return status == STATUS_OK ? lay_out(tensor, &tensor->some, filter->centroids, squares, NULL,
                                         moves, prune->moved_count, true, err)
                               : status;
}

/* --- searching ------------------------------------------------------------------------------- */

/* Computes the tile's rounded rows, their norms and reaches, if it has none yet. */
static enum status round_rows(struct tensor *tensor, struct tile *tile, struct error *err)
{
    struct filter *filter = tensor->filter;
    const cl_uint stride = filter->data->stride;
    if (tile->has_float16)
        return STATUS_OK;
    const double gamma = gamma_of(tensor);
    const cl_float norm_share =
        float_up(REST_LEAST * 1.001 + 2 * U_CENTRE + gamma * 1.01 + U_SCORE);
    const cl_float rest_share = float_up(1.001 + gamma * 1.01);
    cl_float scale[2];
    split_scale(scale, -filter->row_exponent);
    enum status status = LANE_RUN(
        filter->lane, "round rows", tensor->round, (uint64_t)tile->rows * KMEANS_HALF_SHARES,
        KMEANS_HALF_ITEMS, err, OCL_ARG(tile->x), OCL_ARG(filter->centre_buffer),
        OCL_ARG(tile->float16), OCL_ARG(tile->norms), OCL_ARG(tile->reaches), OCL_ARG(tile->rows),
        OCL_ARG(stride), OCL_ARG(tensor->columns), OCL_ARG(scale[0]), OCL_ARG(scale[1]),
        OCL_ARG(filter->growth), OCL_ARG(filter->tiny), OCL_ARG(norm_share), OCL_ARG(rest_share));
    tile->has_float16 = tile->has_norms = status == STATUS_OK;
    return status;
}

/* Parameters of a launch of assign_half or list_half. */
struct launch {
    const char *tag;
    const struct half_panels *panels;
    cl_mem rows;                   /* NULL: all */
    bool all_rows;                 /* the list has them all, in order */
    cl_uint rows_count, most_rows; /* rows_count: the list's counter */
    cl_uint mode;
    cl_mem upper;
    cl_uint flagged_count;
    cl_mem slots, taken; /* KMEANS_HALF_LIST, like: */
    cl_uint each, room;
};

static enum status launch(struct tensor *tensor, struct tile *tile, const struct launch *job,
                          struct error *err)
{
    struct filter *filter = tensor->filter;
    const double unit = score_unit(filter);
    const cl_float factor = (cl_float)unit;
    const cl_float slack = float_up(2 * canonical_error(filter->data->stride) * unit * unit);
    const cl_uint use_rows = job->rows && !job->all_rows ? 1 : 0;
    const size_t local[2] = {KMEANS_HALF_ITEMS, 1};
    const size_t groups = ((size_t)job->most_rows + KMEANS_HALF_ROWS - 1) / KMEANS_HALF_ROWS;
    /* Lists hold few rows, so groups share the panels. */
    const size_t shares = job->mode == KMEANS_HALF_LIST ? GROUPS_LIST / groups : 1;
    const size_t most = shares < job->panels->count ? shares : job->panels->count;
    const size_t global[2] = {groups * KMEANS_HALF_ITEMS, most > 0 ? most : 1};
    const cl_mem counts = counters_buffer(&tensor->assign->counters);
    cl_mem rows = job->rows ? job->rows : tensor->flagged;
    cl_kernel kernel = job->mode == KMEANS_HALF_LIST ? tensor->list : tensor->search;
    return LANE_RUN_2D(
        filter->lane, job->tag, kernel, global, local, err, OCL_ARG(tile->float16),
        OCL_ARG(job->panels->values), OCL_ARG(job->panels->starts), OCL_ARG(tensor->slope),
        OCL_ARG(tensor->offset), OCL_ARG(job->panels->ids), OCL_ARG(tile->norms),
        OCL_ARG(tile->reaches), OCL_ARG(rows), OCL_ARG(tile->labels), OCL_ARG(tile->upper_bounds),
        OCL_ARG(tile->lower_bounds), OCL_ARG(job->upper), OCL_ARG(tensor->flagged),
        OCL_ARG(tensor->outcomes), OCL_ARG(job->slots), OCL_ARG(job->taken), OCL_ARG(counts),
        OCL_ARG(job->flagged_count), OCL_ARG(job->rows_count), OCL_ARG(job->most_rows),
        OCL_ARG(tensor->columns), OCL_ARG(job->panels->count), OCL_ARG(use_rows),
        OCL_ARG(job->mode), OCL_ARG(job->each), OCL_ARG(job->room), OCL_ARG(factor), OCL_ARG(slack),
        OCL_ARG(filter->bounds));
}

/* Launches a kernel whose groups stride over listed rows, at most `rows`. */
static enum status launch_listed(struct tensor *tensor, const char *tag, cl_kernel kernel,
                                 uint64_t rows, struct error *err)
{
    struct lane *lane = tensor->filter->lane;
    const uint64_t most = (uint64_t)lane->device->compute_units * GROUPS_UNIT;
    const uint64_t each = KMEANS_OWN_ITEMS / KMEANS_LANES, groups = (rows + each - 1) / each;
    return lane_launch(lane, tag, kernel, (groups < most ? groups : most) * KMEANS_OWN_ITEMS,
                       KMEANS_OWN_ITEMS, err);
}

/* Searches rows (NULL: the whole tile) among all centroids: stores upper bounds on the best scores
 * in assign->limits and flags undecided rows. */
static enum status search_all(struct tensor *tensor, struct tile *tile, cl_mem rows,
                              struct error *err)
{
    const struct launch job = {.tag = "search",
                               .panels = &tensor->all,
                               .rows = rows,
                               .rows_count = COUNT_ALL,
                               .most_rows = tile->rows,
                               .mode = KMEANS_HALF_ALL,
                               .upper = tensor->assign->limits,
                               .flagged_count = COUNT_FLOAT16_UNDECIDED};
    return launch(tensor, tile, &job, err);
}

/* Decides flagged rows by the canonical distance; those with too many centroids go to
 * assign->moved. */
static enum status decide(struct tensor *tensor, struct tile *tile, struct error *err)
{
    struct filter *filter = tensor->filter;
    const struct assign *assign = tensor->assign;
    const struct launch job = {.tag = "list candidates",
                               .panels = &tensor->all,
                               .rows = tensor->flagged,
                               .rows_count = COUNT_FLOAT16_UNDECIDED,
                               .most_rows = tensor->room,
                               .mode = KMEANS_HALF_LIST,
                               .upper = assign->limits,
                               .slots = tensor->outcomes,
                               .taken = tensor->taken,
                               .each = KMEANS_HALF_SLOTS,
                               .room = KMEANS_HALF_SLOTS};
    const cl_uint stride = filter->data->stride;
    const cl_uint left_count = COUNT_LEFT, flagged_count = COUNT_FLOAT16_UNDECIDED;
    const cl_double length_scale = ldexp(1.0, -filter->row_exponent);
    const cl_mem counts = counters_buffer(&assign->counters);
    if ((tensor->room > 0 && launch(tensor, tile, &job, err) != STATUS_OK) ||
        ocl_args(tensor->decide, err, OCL_ARG(tile->x), OCL_ARG(filter->centroids),
                 OCL_ARG(tile->norms), OCL_ARG(tensor->flagged), OCL_ARG(tensor->outcomes),
                 OCL_ARG(tensor->taken), OCL_ARG(assign->limits), OCL_ARG(tile->labels),
                 OCL_ARG(tile->upper_bounds), OCL_ARG(tile->lower_bounds), OCL_ARG(assign->moved),
                 OCL_ARG(counts), OCL_ARG(left_count), OCL_ARG(flagged_count),
                 OCL_ARG(tensor->room), OCL_ARG(stride), OCL_ARG(length_scale),
                 OCL_ARG(filter->bounds), OCL_ARGS_END) != STATUS_OK)
        return err->status;
    return launch_listed(tensor, "decide", tensor->decide, tile->rows, err);
}

/* Searches the rows of assign->moved among the centroids that have moved (there may be none), like
 * label_among_some (kmeans_bounds.h). Appends undecided rows to assign->all. */
static enum status search_moved(struct tensor *tensor, struct tile *tile, struct error *err)
{
    struct filter *filter = tensor->filter;
    const struct assign *assign = tensor->assign;
    /* `upper` is not written. */
    const struct launch job = {.tag = "search among moved",
                               .panels = &tensor->some,
                               .rows = assign->moved,
                               .rows_count = COUNT_MOVED,
                               .most_rows = tile->rows,
                               .mode = KMEANS_HALF_SOME,
                               .upper = tile->norms,
                               .flagged_count = COUNT_RETRY};
    const cl_uint stride = filter->data->stride, searched = tensor->some.count > 0 ? 1 : 0;
    const cl_mem list = searched ? tensor->flagged : assign->moved;
    const cl_uint list_count = searched ? COUNT_RETRY : COUNT_MOVED, left_count = COUNT_ALL;
    const cl_mem counts = counters_buffer(&assign->counters);
    if ((searched && launch(tensor, tile, &job, err) != STATUS_OK) ||
        ocl_args(tensor->settle, err, OCL_ARG(tile->x), OCL_ARG(filter->centroids),
                 OCL_ARG(tile->norms), OCL_ARG(list), OCL_ARG(tensor->outcomes),
                 OCL_ARG(tile->labels), OCL_ARG(tile->upper_bounds), OCL_ARG(tile->lower_bounds),
                 OCL_ARG(assign->all), OCL_ARG(counts), OCL_ARG(left_count), OCL_ARG(list_count),
                 OCL_ARG(searched), OCL_ARG(stride), OCL_ARG(filter->half_scale),
                 OCL_ARG(filter->growth), OCL_ARG(filter->tiny), OCL_ARG(filter->bounds),
                 OCL_ARGS_END) != STATUS_OK)
        return err->status;
    return launch_listed(tensor, "own distances", tensor->settle, tile->rows, err);
}

static enum status begin_tile(struct assign *assign, struct tile *tile, bool incremental,
                              struct error *err)
{
    struct tensor *tensor = assign->tensor;
    if (round_rows(tensor, tile, err) != STATUS_OK ||
        (incremental && prune_split(&assign->prune, tile, assign->all, assign->moved,
                                    counters_buffer(&assign->counters), err) != STATUS_OK) ||
        lay_out_due(tensor, err) != STATUS_OK ||
        (incremental && search_moved(tensor, tile, err) != STATUS_OK) ||
        search_all(tensor, tile, incremental ? assign->all : NULL, err) != STATUS_OK)
        return err->status;
    return decide(tensor, tile, err);
}

static enum status end_tile(bool *left, struct assign *assign, struct tile *tile, bool incremental,
                            struct error *err)
{
    (void)incremental;
    const cl_uint *counts = counters_host(&assign->counters);
    const cl_uint count = counts[COUNT_LEFT];
    assign->decided += counts[COUNT_FLOAT16_UNDECIDED] - count;
    *left = count > 0;
    if (count > FEW_ROWS)
        return float32_search(assign, tile, assign->moved, count, err);
    assign->decided += count;
    return assign->exact.ops->label(&assign->exact, tile, assign->moved, count, assign->limits,
                                    err);
}

/* --- candidates of seeding ------------------------------------------------------------------- */

enum status float16_open_candidates(struct float16_candidates *out, struct assign *assign,
                                    struct error *err)
{
    struct tensor *tensor = assign->tensor;
    struct lane *lane = assign->lane;
    cl_float starts[KMEANS_TRIALS_MAX][2];
    *out = (struct float16_candidates){tensor->trial.values, tensor->trial.starts, tensor->columns,
                                       terms_of(tensor)};
    for (uint32_t i = 0; i < KMEANS_TRIALS_MAX; i++) {
        starts[i][0] = KMEANS_HALF_FAR;
        starts[i][1] = 0;
    }
    if (lane_fill(lane, "no candidates", out->values, 0, 0,
                  (size_t)KMEANS_TRIALS_MAX * out->columns * 2, err) != STATUS_OK)
        return err->status;
    return lane_write(lane, "no candidates", out->starts, 0, sizeof starts, starts, err);
}

enum status float16_open_filter(struct seed_launch *out, struct lane_held **held,
                                struct assign *assign, struct tile *tile, cl_mem thresholds,
                                cl_mem mask, struct error *err)
{
    struct tensor *tensor = assign->tensor;
    const cl_float unit = (cl_float)score_unit(assign->filter);
    const cl_uint blocks = tensor->columns / KMEANS_HALF_COLUMNS;
    const cl_uint shares = blocks >= 8 ? 4 : blocks >= 4 ? 2 : 1;
    const struct lane_wanted wanted =
        KERNEL(out->kernel, "kmeans_filter_half", tensor->options, "seed_half");
    out->tag = "seed filter";
    out->items = (uint64_t)tile->rows * shares;
    out->group = KMEANS_HALF_ITEMS;
    if (round_rows(tensor, tile, err) != STATUS_OK ||
        lane_hold(held, assign->lane, &wanted, 1, "seeding", err) != STATUS_OK)
        return err->status;
    return ocl_args(out->kernel, err, OCL_ARG(tile->float16), OCL_ARG(tensor->trial.values),
                    OCL_ARG(tensor->trial.starts), OCL_ARG(tile->reaches), OCL_ARG(thresholds),
                    OCL_ARG(mask), OCL_ARG(tile->rows), OCL_ARG(tensor->columns), OCL_ARG(shares),
                    OCL_ARG(unit), OCL_ARGS_END);
}

enum status float16_open_pairs(struct float16_pairs *out, struct lane_held **held,
                               struct assign *assign, const struct tile *tile, struct error *err)
{
    const struct tensor *tensor = assign->tensor;
    const size_t rows = tile->rows;
    const struct lane_wanted wanted[] = {BUFFER(out->squares, rows * sizeof(double)),
                                         BUFFER(out->limits, rows * sizeof(float))};
    if (open_panels(&out->panels, held, tensor, tile->rows, err) != STATUS_OK)
        return err->status;
    return lane_hold(held, assign->lane, wanted, COUNT_OF(wanted), "seeding", err);
}

enum status float16_lay_out_pairs(struct float16_pairs *pairs, struct assign *assign,
                                  struct tile *tile, cl_mem within, struct error *err)
{
    struct tensor *tensor = assign->tensor;
    if (round_rows(tensor, tile, err) != STATUS_OK)
        return err->status;
    return lay_out(tensor, &pairs->panels, tile->x, pairs->squares, within, false, tile->rows,
                   false, err);
}

enum status float16_list_pairs(const struct float16_pairs *pairs, struct assign *assign,
                               struct tile *tile, cl_mem slots, cl_mem taken, cl_uint room,
                               struct error *err)
{
    const struct launch job = {.tag = "list pairs",
                               .panels = &pairs->panels,
                               .rows = pairs->panels.ids,
                               .all_rows = true,
                               .most_rows = tile->rows,
                               .mode = KMEANS_HALF_LIST,
                               .upper = pairs->limits,
                               .slots = slots,
                               .taken = taken,
                               .room = room};
    return launch(assign->tensor, tile, &job, err);
}

const struct assigner assigner_float16 = {
    .begin_pass = begin_pass,
    .begin_tile = begin_tile,
    .end_tile = end_tile,
    .in_one_wait = true,
};
