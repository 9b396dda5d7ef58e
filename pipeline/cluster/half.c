/* half.c: laying centroids out for the tensor cores, and the bounds of float16. The names follow
 * docs/clustering.md. */
#include "cluster/half.h"
#include "kmeans.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* How far centroids may lie beyond the rows, as a power of two, for starts that float32 holds. */
#define SPREAD_MAX 40

static void close_panels(struct half_panels *panels)
{
    ocl_buffer_release(&panels->values);
    ocl_buffer_release(&panels->lanes);
    ocl_buffer_release(&panels->ids);
    free(panels->host_lanes);
    free(panels->host_ids);
    *panels = (struct half_panels){0};
}

static enum status open_panels(struct half_panels *panels, const struct half_filter *half,
                               struct error *err)
{
    struct ocl_context *ocl = half->filter->lane->ocl;
    size_t lanes = ((size_t)half->filter->capacity + KMEANS_HALF_LANES - 1) / KMEANS_HALF_LANES *
                   KMEANS_HALF_LANES;
    panels->host_lanes = malloc(lanes * 2 * sizeof *panels->host_lanes);
    panels->host_ids = malloc(lanes * sizeof *panels->host_ids);
    if (!panels->host_lanes || !panels->host_ids)
        return error_memory(err, lanes * 2 * sizeof *panels->host_lanes, "centroids");
    enum status status = ocl_buffer(&panels->values, ocl, CL_MEM_READ_WRITE,
                                    lanes * half->columns * 2, NULL, "centroids", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&panels->lanes, ocl, CL_MEM_READ_ONLY,
                            lanes * 2 * sizeof *panels->host_lanes, NULL, "centroids", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&panels->ids, ocl, CL_MEM_READ_ONLY, lanes * sizeof *panels->host_ids,
                            NULL, "centroids", err);
    return status;
}

/* Room for the rows' copy beside everything else. */
static enum status open_tiles(struct half_filter *half, struct error *err)
{
    struct data *data = half->filter->data;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++)
        status =
            ocl_buffer(&data->tiles[i].half, half->filter->lane->ocl, CL_MEM_READ_WRITE,
                       (size_t)data->tiles[i].rows * half->columns * 2, NULL, "rounded rows", err);
    return status;
}

static bool pays(const struct half_filter *half)
{
    const struct filter *filter = half->filter;
    const struct data *data = filter->data;
    uint64_t bytes;
    return filter->lane->tensor && data->resident && !filter->blind &&
           data->dimension >= COLUMNS_MIN && half->columns <= COLUMNS_MAX &&
           filter->capacity >= LANES_MIN &&
           !__builtin_mul_overflow(data->share.rows, (uint64_t)half->columns * 2, &bytes) &&
           bytes <= data->spare;
}

enum status half_open(struct half_filter *half, struct filter *filter, struct error *err)
{
    const struct data *data = filter->data;
    struct lane *lane = filter->lane;
    *half = (struct half_filter){.filter = filter};
    half->columns =
        (data->dimension + KMEANS_HALF_COLUMNS - 1) / KMEANS_HALF_COLUMNS * KMEANS_HALF_COLUMNS;
    if (!pays(half))
        return STATUS_OK;
    const size_t k = filter->capacity;
    half->host_slope = malloc(k * sizeof *half->host_slope);
    half->host_offset = malloc(k * sizeof *half->host_offset);
    enum status status = STATUS_OK;
    if (!half->host_slope || !half->host_offset)
        status = error_memory(err, k * sizeof *half->host_slope, "centroids");
    if (status == STATUS_OK)
        status = lane_build(&half->program, lane, "kmeans_filter_half", "", err);
    if (status == STATUS_OK)
        status = ocl_kernel(&half->convert, half->program, "rows_to_half", err);
    if (status == STATUS_OK)
        status = ocl_kernel(&half->assign, half->program, "assign_half", err);
    if (status == STATUS_OK)
        status = open_panels(&half->all, half, err);
    if (status == STATUS_OK)
        status = open_panels(&half->some, half, err);
    if (status == STATUS_OK)
        status = ocl_buffer(&half->slope, lane->ocl, CL_MEM_READ_ONLY, k * sizeof(float), NULL,
                            "error bounds", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&half->offset, lane->ocl, CL_MEM_READ_ONLY, k * sizeof(float), NULL,
                            "error bounds", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&half->flagged, lane->ocl, CL_MEM_READ_WRITE,
                            data->tile_rows * sizeof(cl_uint), NULL, "rows in doubt", err);
    if (status == STATUS_OK)
        status = open_tiles(half, err);
    half->used = status == STATUS_OK;
    return status;
}

void half_close(struct half_filter *half)
{
    if (half->convert)
        clReleaseKernel(half->convert);
    if (half->assign)
        clReleaseKernel(half->assign);
    if (half->program)
        clReleaseProgram(half->program);
    close_panels(&half->all);
    close_panels(&half->some);
    ocl_buffer_release(&half->slope);
    ocl_buffer_release(&half->offset);
    ocl_buffer_release(&half->flagged);
    free(half->host_slope);
    free(half->host_offset);
    *half = (struct half_filter){0};
}

/* --- laying out ------------------------------------------------------------------------------ */

/* Slope and offset of a centroid of squared length `square`, in scores' units. */
static void bound(struct half_filter *half, uint32_t id, double square)
{
    const struct filter *filter = half->filter;
    const double zeta = sqrt(square), root = sqrt((double)half->columns);
    const double rho = ldexp(1.0, filter->row_exponent - filter->exponent);
    const double gamma = (half->columns + 64) * U_TENSOR;
    const double kappa = canonical_error(filter->data->stride);
    const double relative = 2 * U_HALF + U_HALF * U_HALF + gamma * 1.01 + U_SCORE;
    const double margin = MARGIN / (1 - gamma - U_SCORE);
    half->host_slope[id] = float_up(margin * rho * 2 * (relative * zeta + root * ETA_HALF * 1.01));
    half->host_offset[id] = float_up(
        margin * ((gamma + U_SCORE + 4 * kappa) * square +
                  2 * rho * (root * zeta * ETA_HALF * 1.01 + half->columns * ETA_HALF * ETA_HALF) +
                  0x1p-100));
}

/* Two powers of two that multiply to 2^exponent. */
static void split_scale(cl_float scale[2], int exponent)
{
    scale[0] = (cl_float)ldexp(1.0, exponent / 2);
    scale[1] = (cl_float)ldexp(1.0, exponent - exponent / 2);
}

static enum status convert(struct half_filter *half, cl_mem from, cl_mem ids, cl_mem out,
                           cl_uint rows, int exponent, bool negative, struct error *err)
{
    struct filter *filter = half->filter;
    const cl_uint stride = filter->data->stride, use_ids = ids ? 1 : 0;
    cl_mem list = ids ? ids : half->flagged;
    cl_float scale[2];
    split_scale(scale, -exponent);
    if (negative)
        scale[0] = -scale[0];
    enum status status =
        ocl_args(half->convert, err, sizeof from, &from, sizeof(cl_mem), &filter->centre_buffer,
                 sizeof list, &list, sizeof out, &out, sizeof rows, &rows, sizeof stride, &stride,
                 sizeof half->columns, &half->columns, sizeof use_ids, &use_ids, sizeof(cl_float),
                 &scale[0], sizeof(cl_float), &scale[1], OCL_ARGS_END);
    const size_t global[2] = {half->columns / 8, rows};
    if (status == STATUS_OK)
        status = ocl_enqueue_kernel(filter->lane->compute, "round to float16", half->convert, 2,
                                    global, NULL, OCL_NO_WAITS, NULL, err);
    return status;
}

/* The tensor cores' sums are in units of this: twice what rows and centroids are scaled by to each
 * other, a power of two. */
static double score_unit(const struct filter *filter)
{
    return ldexp(2.0, filter->row_exponent - filter->exponent);
}

/* Lays out `lanes` centroids whose numbers are in host_ids. */
static enum status lay_out(struct half_filter *half, struct half_panels *panels, uint32_t lanes,
                           struct error *err)
{
    struct filter *filter = half->filter;
    panels->count = (lanes + KMEANS_HALF_LANES - 1) / KMEANS_HALF_LANES;
    if (panels->count == 0)
        return STATUS_OK;
    const uint32_t padded = panels->count * KMEANS_HALF_LANES;
    const double unit = score_unit(filter);
    for (uint32_t l = 0; l < padded; l++) {
        const int32_t id = l < lanes ? panels->host_ids[l] : -1;
        panels->host_ids[l] = id;
        panels->host_lanes[2 * l] =
            id < 0 ? KMEANS_HALF_FAR
                   : (float)((filter->squares[id] - (double)half->host_offset[id]) / unit);
        panels->host_lanes[2 * l + 1] = id < 0 ? 0 : (float)((double)half->host_slope[id] / unit);
    }
    enum status status = lane_send(filter->lane, "centroid ids", panels->ids, 0,
                                   padded * sizeof *panels->host_ids, panels->host_ids, err);
    if (status == STATUS_OK)
        status = lane_send(filter->lane, "centroid lanes", panels->lanes, 0,
                           padded * 2 * sizeof *panels->host_lanes, panels->host_lanes, err);
    if (status == STATUS_OK)
        status = convert(half, filter->centroids, panels->ids, panels->values, padded,
                         filter->exponent, true, err);
    return status;
}

enum status half_set_centroids(struct half_filter *half, struct error *err)
{
    const struct filter *filter = half->filter;
    half->ready = filter->exponent - filter->row_exponent <= SPREAD_MAX;
    if (!half->ready)
        return STATUS_OK;
    for (uint32_t i = 0; i < filter->k; i++) {
        bound(half, i, filter->squares[i]);
        half->all.host_ids[i] = (int32_t)i;
    }
    const uint32_t moved = filter->some.count * filter->some.width;
    uint32_t lanes = 0;
    for (uint32_t l = 0; l < moved && filter->some.host_ids[l] >= 0; l++)
        half->some.host_ids[lanes++] = filter->some.host_ids[l];
    enum status status = lane_send(filter->lane, "error bounds", half->slope, 0,
                                   filter->k * sizeof *half->host_slope, half->host_slope, err);
    if (status == STATUS_OK)
        status = lane_send(filter->lane, "error bounds", half->offset, 0,
                           filter->k * sizeof *half->host_offset, half->host_offset, err);
    if (status == STATUS_OK)
        status = lay_out(half, &half->all, filter->k, err);
    if (status == STATUS_OK)
        status = lay_out(half, &half->some, lanes, err);
    return status;
}

/* One launch over the tile: rows (NULL: all) against the panels. */
static enum status launch(struct half_filter *half, struct tile *tile,
                          const struct half_panels *panels, cl_mem rows, cl_uint rows_count,
                          bool among_some, cl_mem upper, cl_mem flagged, cl_mem counts,
                          cl_uint flagged_count, struct error *err)
{
    struct filter *filter = half->filter;
    enum status status = STATUS_OK;
    if (!tile->has_half) {
        status =
            convert(half, tile->x, NULL, tile->half, tile->rows, filter->row_exponent, false, err);
        tile->has_half = status == STATUS_OK;
    }
    const double unit = score_unit(filter);
    const cl_float factor = (cl_float)unit;
    const cl_float slack = float_up(2 * canonical_error(filter->data->stride) * unit * unit);
    const cl_uint use_rows = rows ? 1 : 0, some = among_some ? 1 : 0;
    cl_mem list = rows ? rows : half->flagged;
    if (status == STATUS_OK)
        status = ocl_args(
            half->assign, err, sizeof(cl_mem), &tile->half, sizeof(cl_mem), &panels->values,
            sizeof(cl_mem), &panels->lanes, sizeof(cl_mem), &half->slope, sizeof(cl_mem),
            &half->offset, sizeof(cl_mem), &panels->ids, sizeof(cl_mem), &tile->norms,
            sizeof(cl_mem), &list, sizeof(cl_mem), &tile->labels, sizeof(cl_mem), &tile->near,
            sizeof(cl_mem), &tile->far, sizeof(cl_mem), &upper, sizeof(cl_mem), &flagged,
            sizeof(cl_mem), &counts, sizeof flagged_count, &flagged_count, sizeof rows_count,
            &rows_count, sizeof tile->rows, &tile->rows, sizeof half->columns, &half->columns,
            sizeof panels->count, &panels->count, sizeof use_rows, &use_rows, sizeof some, &some,
            sizeof factor, &factor, sizeof slack, &slack, sizeof filter->bounds, &filter->bounds,
            OCL_ARGS_END);
    if (status == STATUS_OK)
        status = lane_launch(filter->lane, "assign half", half->assign,
                             ((uint64_t)tile->rows + KMEANS_HALF_ROWS - 1) / KMEANS_HALF_ROWS *
                                 KMEANS_HALF_ITEMS,
                             KMEANS_HALF_ITEMS, err);
    return status;
}

enum status half_search(struct half_filter *half, struct tile *tile, cl_mem rows,
                        uint32_t rows_count, cl_mem upper, cl_mem counts, uint32_t flagged_count,
                        struct error *err)
{
    return launch(half, tile, &half->all, rows, rows_count, false, upper, half->flagged, counts,
                  flagged_count, err);
}

enum status half_search_some(struct half_filter *half, struct tile *tile, cl_mem rows,
                             uint32_t rows_count, cl_mem flagged, cl_mem counts,
                             uint32_t flagged_count, struct error *err)
{
    /* `upper` is not written. */
    return launch(half, tile, &half->some, rows, rows_count, true, tile->norms, flagged, counts,
                  flagged_count, err);
}
