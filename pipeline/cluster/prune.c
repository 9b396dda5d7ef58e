/* prune.c: choosing the threshold, and the launches of what kmeans_rows.cl does about bounds. */
#include "cluster/prune.h"
#include "kmeans.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a row costs beside its scores, in scores: to be brought from memory for a search, and to
 * have the distance to its own centroid found (which on CPUs is done while it is there). Those of
 * CPUs and of tensor cores are what prototypes and an H200 showed, those of other GPUs are
 * estimates; they change the speed only. */
struct costs {
    double touch, own;
};
static const struct costs costs_cpu = {32, 40}, costs_tiled = {16, 32}, costs_tensor = {72, 145};

enum status prune_open(struct prune *prune, struct filter *filter, bool tensor, struct error *err)
{
    struct ocl_context *ocl = filter->lane->ocl;
    const size_t k = filter->capacity;
    *prune = (struct prune){.filter = filter, .tensor = tensor};
    enum status status = ocl_kernel(&prune->drift_rows, filter->rows_program, "drift_rows", err);
    if (status == STATUS_OK)
        status = ocl_kernel(&prune->split, filter->rows_program, "split_rows", err);
    if (status == STATUS_OK)
        status = ocl_kernel(&prune->own, filter->rows_program, "own_lengths", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&prune->drifts, ocl, CL_MEM_READ_ONLY, k * sizeof(cl_float), NULL,
                            "drifts", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&prune->thresholds, ocl, CL_MEM_READ_ONLY,
                            KMEANS_CANDIDATES * sizeof(cl_float), NULL, "drifts", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&prune->counts, ocl, CL_MEM_READ_WRITE,
                            (KMEANS_CANDIDATES + 2) * sizeof(cl_uint), NULL, "drifts", err);
    prune->host_drifts = malloc(k * sizeof *prune->host_drifts);
    prune->sorted = malloc(k * sizeof *prune->sorted);
    prune->scratch = malloc(k * sizeof *prune->scratch);
    prune->movers = calloc(k, 1);
    if (status == STATUS_OK &&
        (!prune->host_drifts || !prune->sorted || !prune->scratch || !prune->movers))
        status = error_memory(err, k * sizeof *prune->sorted, "drifts");
    return status;
}

void prune_close(struct prune *prune)
{
    cl_kernel kernels[] = {prune->drift_rows, prune->split, prune->own};
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i])
            clReleaseKernel(kernels[i]);
    ocl_buffer_release(&prune->drifts);
    ocl_buffer_release(&prune->thresholds);
    ocl_buffer_release(&prune->counts);
    free(prune->host_drifts);
    free(prune->sorted);
    free(prune->scratch);
    free(prune->movers);
    *prune = (struct prune){0};
}

/* --- choosing -------------------------------------------------------------------------------- */

#define GROUP_TILED 64

/* One way to go on: so many movers at most, the others within the threshold. */
struct candidate {
    uint32_t movers;
    cl_float threshold;
};

/* Descending. Drifts are not negative, so they are in order as their bits are. */
static void sort_drifts(cl_float *out, cl_float *scratch, const cl_float *drifts, uint32_t k)
{
    const cl_float *from = drifts;
    cl_float *to = scratch;
    for (int shift = 0; shift < 32; shift += 8) {
        uint32_t begins[257] = {0}, bits;
        for (uint32_t i = 0; i < k; i++) {
            memcpy(&bits, &from[i], sizeof bits);
            begins[(~bits >> shift & 255) + 1]++;
        }
        for (int digit = 0; digit < 256; digit++)
            begins[digit + 1] += begins[digit];
        for (uint32_t i = 0; i < k; i++) {
            memcpy(&bits, &from[i], sizeof bits);
            to[begins[~bits >> shift & 255]++] = from[i];
        }
        from = to;
        to = to == scratch ? out : scratch;
    }
}

/* Everything that moved, then whole panels of movers, halved each time, then none: thresholds
 * ascend. */
static uint32_t list_candidates(struct candidate out[KMEANS_CANDIDATES], const cl_float *sorted,
                                uint32_t k, uint32_t width)
{
    uint32_t moved = 0, count = 0, movers = width;
    while (moved < k && sorted[moved] > 0)
        moved++;
    out[count++] = (struct candidate){moved, 0};
    if (moved == 0)
        return count;
    while (movers < moved / 2)
        movers *= 2;
    for (; movers >= width && count < KMEANS_CANDIDATES - 1; movers /= 2)
        if (movers < moved)
            out[count++] = (struct candidate){movers, sorted[movers]};
    out[count++] = (struct candidate){0, sorted[0]};
    return count;
}

/* Launches a kernel that takes a tile's rows, SPLIT_ROWS for each work-item. */
static enum status launch_rows(const struct prune *prune, const char *tag, cl_kernel kernel,
                               const struct tile *tile, struct error *err)
{
    struct lane *lane = prune->filter->lane;
    const uint32_t each = lane->tiled ? KMEANS_SPLIT_TILED : KMEANS_SPLIT_CPU;
    return lane_launch(lane, tag, kernel, (tile->rows + each - 1) / each,
                       lane->tiled ? GROUP_TILED : 1, err);
}

/* Takes the drifts into the tiles' bounds; found: see drift_rows. */
static enum status drift_tiles(struct prune *prune, cl_uint found[KMEANS_CANDIDATES + 2],
                               cl_uint candidates, struct error *err)
{
    struct data *data = prune->filter->data;
    struct lane *lane = prune->filter->lane;
    const size_t bytes = (KMEANS_CANDIDATES + 2) * sizeof *found;
    enum status status = ocl_enqueue_fill(lane->compute, "zero counts", prune->counts, 0, 0, bytes,
                                          OCL_NO_WAITS, NULL, err);
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++) {
        const struct tile *tile = &data->tiles[i];
        status =
            ocl_args(prune->drift_rows, err, sizeof(cl_mem), &tile->labels, sizeof(cl_mem),
                     &tile->near, sizeof(cl_mem), &tile->far, sizeof(cl_mem), &prune->drifts,
                     sizeof(cl_mem), &prune->thresholds, sizeof(cl_mem), &prune->counts,
                     sizeof tile->rows, &tile->rows, sizeof candidates, &candidates, OCL_ARGS_END);
        if (status == STATUS_OK)
            status = launch_rows(prune, "drift", prune->drift_rows, tile, err);
    }
    if (status == STATUS_OK)
        status = lane_read(lane, "counts", prune->counts, 0, bytes, found, err);
    return status;
}

/* The cheapest candidate; -1 where a search of everything is. */
static int choose(const struct prune *prune, const struct candidate *candidates, uint32_t count,
                  const cl_uint found[KMEANS_CANDIDATES + 2], uint32_t k)
{
    const struct filter *filter = prune->filter;
    const struct costs *costs = !filter->lane->tiled ? &costs_cpu
                                : prune->tensor      ? &costs_tensor
                                                     : &costs_tiled;
    const uint32_t width = prune->tensor ? KMEANS_HALF_LANES : filter->width;
    const double rows = (double)filter->data->share.rows, whole = k + costs->touch;
    /* Near enough to their own centroid, however far others have moved. */
    const double calm = (double)found[count] - (double)found[count + 1];
    double least = rows * whole, full = 0;
    int best = -1;
    for (uint32_t j = 0; j < count; j++) {
        full += found[j];
        const uint32_t panels = (candidates[j].movers + width - 1) / width;
        const double partial = rows - full - calm;
        const double cost =
            full * whole + partial * ((double)panels * width + costs->touch + costs->own);
        if (cost < least) {
            least = cost;
            best = (int)j;
        }
    }
    return best;
}

enum status prune_plan(bool *incremental, struct prune *prune, const double *drifts, uint32_t k,
                       struct error *err)
{
    const struct filter *filter = prune->filter;
    struct candidate candidates[KMEANS_CANDIDATES];
    cl_float thresholds[KMEANS_CANDIDATES];
    cl_uint found[KMEANS_CANDIDATES + 2];
    *incremental = false;
    prune->mover_count = 0;
    /* As of the pass before: means of rows come closer to them, never the other way. */
    if (!drifts || !filter->bounded)
        return STATUS_OK;
    const double scale = ldexp(1 + 0x1p-30, -filter->row_exponent);
    for (uint32_t c = 0; c < k; c++)
        prune->host_drifts[c] = float_up(drifts[c] * scale);
    sort_drifts(prune->sorted, prune->scratch, prune->host_drifts, k);
    const uint32_t count = list_candidates(candidates, prune->sorted, k,
                                           prune->tensor ? KMEANS_HALF_LANES : filter->width);
    for (uint32_t j = 0; j < count; j++)
        thresholds[j] = candidates[j].threshold;
    enum status status = lane_send(filter->lane, "drifts", prune->drifts, 0,
                                   k * sizeof *prune->host_drifts, prune->host_drifts, err);
    if (status == STATUS_OK)
        status = lane_send(filter->lane, "drifts", prune->thresholds, 0, count * sizeof *thresholds,
                           thresholds, err);
    if (status == STATUS_OK)
        status = drift_tiles(prune, found, count, err);
    if (status != STATUS_OK)
        return status;
    const int chosen = filter->lane->any_prune ? (int)(prune->turn++ % count)
                                               : choose(prune, candidates, count, found, k);
    if (chosen < 0)
        return STATUS_OK;
    *incremental = true;
    prune->threshold = thresholds[chosen];
    for (uint32_t c = 0; c < k; c++) {
        prune->movers[c] = prune->host_drifts[c] > prune->threshold;
        prune->mover_count += prune->movers[c];
    }
    return STATUS_OK;
}

/* --- a tile ---------------------------------------------------------------------------------- */

enum status prune_split(struct prune *prune, struct tile *tile, cl_mem full, cl_mem partial,
                        cl_mem counts, struct error *err)
{
    enum status status =
        ocl_args(prune->split, err, sizeof(cl_mem), &tile->labels, sizeof(cl_mem), &tile->near,
                 sizeof(cl_mem), &tile->far, sizeof(cl_mem), &prune->drifts, sizeof full, &full,
                 sizeof partial, &partial, sizeof counts, &counts, sizeof tile->rows, &tile->rows,
                 sizeof prune->threshold, &prune->threshold, sizeof(cl_float), &prune->sorted[0],
                 OCL_ARGS_END);
    if (status == STATUS_OK)
        status = launch_rows(prune, "split rows", prune->split, tile, err);
    return status;
}

enum status prune_own(struct prune *prune, struct tile *tile, cl_mem partial, cl_mem counts,
                      uint32_t most, struct error *err)
{
    struct filter *filter = prune->filter;
    const cl_uint stride = filter->data->stride;
    enum status status =
        ocl_args(prune->own, err, sizeof(cl_mem), &tile->x, sizeof(cl_mem), &filter->centroids,
                 sizeof(cl_mem), &tile->labels, sizeof(cl_mem), &tile->near, sizeof partial,
                 &partial, sizeof counts, &counts, sizeof stride, &stride, sizeof filter->half,
                 &filter->half, sizeof filter->growth, &filter->growth, sizeof filter->tiny,
                 &filter->tiny, sizeof filter->bounds, &filter->bounds, OCL_ARGS_END);
    if (status == STATUS_OK && most > 0)
        status = lane_launch(filter->lane, "own distances", prune->own,
                             (uint64_t)most * KMEANS_LANES, KMEANS_OWN_ITEMS, err);
    return status;
}
