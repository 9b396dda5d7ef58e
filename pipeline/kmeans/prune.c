/* prune.c: chooses the threshold and launches the bounds kernels of kmeans_rows.cl. */
#include "kmeans/prune.h"
#include "kmeans.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The cost of a row in units of scores: of loading it for a search, and of computing the distance
 * to its own centroid (on CPUs, while it is loaded). The values for CPUs and tensor cores were
 * measured on prototypes and an H200, those for other GPUs are estimates; they affect only
 * speed. */
struct costs {
    double touch, own;
};
static const struct costs costs_cpu = {32, 40}, costs_tiled = {16, 32}, costs_tensor = {72, 145};

enum status prune_open(struct prune *prune, struct lane_held **held, struct filter *filter,
                       bool tensor, struct error *err)
{
    const size_t k = filter->capacity;
    const char *program = "kmeans_rows", *options = ROWS_OPTIONS(filter->lane);
    *prune = (struct prune){.filter = filter, .tensor = tensor};
    const struct lane_wanted wanted[] = {
        HOST(prune->host_shifts, k),
        HOST(prune->sorted, k),
        HOST(prune->scratch, k),
        HOST(prune->moved, k),
        BUFFER(prune->shifts, k * sizeof(cl_float)),
        KERNEL(prune->shift_bounds, program, options, "shift_bounds"),
        KERNEL(prune->split, program, options, "split_rows"),
        KERNEL(prune->own, program, options, "own_lengths"),
        KERNEL(prune->rank, program, options, "rank_shifts"), /* for tiled lanes only, like: */
        KERNEL(prune->list, program, options, "list_moved"),
    };
    if (lane_hold(held, filter->lane, wanted, COUNT_OF(wanted) - (filter->lane->tiled ? 0 : 2),
                  "shifts", err) != STATUS_OK)
        return err->status;
    return mailbox_part_open(&prune->plan, held, &filter->mailbox, KMEANS_PLAN * sizeof(cl_uint),
                             err);
}

/* --- choosing -------------------------------------------------------------------------------- */

#define GROUP_TILED 64

/* Descending. Shifts are not negative, so their bits compare as they do. */
static void sort_shifts(cl_float *out, cl_float *scratch, const cl_float *shifts, uint32_t k)
{
    const cl_float *from = shifts;
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

/* The candidates of a pass over k centroids: all that moved, then whole panels of moved centroids,
 * halved each time, then none. ranks[j] is the number of moved centroids of candidate j, if that
 * many moved; its threshold is the shift of that rank, or 0 if there is none, so thresholds
 * ascend. */
static void candidate_ranks(struct prune *prune, uint32_t k)
{
    const uint32_t width = prune->tensor ? KMEANS_HALF_PANEL : prune->filter->width;
    uint32_t count = 0, moved = width;
    prune->ranks[count++] = k;
    while (moved < k / 2)
        moved *= 2;
    for (; moved >= width && count < KMEANS_CANDIDATES - 1; moved /= 2)
        if (moved < k)
            prune->ranks[count++] = moved;
    prune->ranks[count++] = 0;
    prune->candidates = count;
}

/* Upper bound on the moved centroids of candidate j. */
static uint32_t candidate_moved(const struct prune *prune, uint32_t j)
{
    const cl_uint *plan = prune->plan.host;
    const uint32_t moved = plan[KMEANS_PLAN_MOVED];
    return prune->ranks[j] < moved ? prune->ranks[j] : moved;
}

static cl_float candidate_threshold(const struct prune *prune, uint32_t j)
{
    const cl_uint *plan = prune->plan.host;
    cl_float threshold;
    memcpy(&threshold, &plan[j], sizeof threshold);
    return threshold;
}

/* Launches a kernel over a tile's rows, SPLIT_ROWS per work-item. */
static enum status launch_rows(const struct prune *prune, const char *tag, cl_kernel kernel,
                               const struct tile *tile, struct error *err)
{
    struct lane *lane = prune->filter->lane;
    const uint32_t each = lane->tiled ? KMEANS_SPLIT_TILED : KMEANS_SPLIT_CPU;
    return lane_launch(lane, tag, kernel, (tile->rows + each - 1) / each,
                       lane->tiled ? GROUP_TILED : 1, err);
}

/* Applies the shifts to the tiles' bounds and counts rows by the search they need. */
static enum status shift_bounds_of_tiles(struct prune *prune, const struct device_count *unless,
                                         struct error *err)
{
    const cl_mem left = unless ? unless->counts : prune->plan.buffer;
    const cl_uint at = unless ? unless->index : KMEANS_ALWAYS;
    struct data *data = prune->filter->data;
    for (uint32_t i = 0; i < data->tile_count; i++) {
        const struct tile *tile = &data->tiles[i];
        if (ocl_args(prune->shift_bounds, err, OCL_ARG(tile->labels), OCL_ARG(tile->upper_bounds),
                     OCL_ARG(tile->lower_bounds), OCL_ARG(prune->shifts), OCL_ARG(left),
                     OCL_ARG(at), OCL_ARG(prune->plan.buffer), OCL_ARG(tile->rows),
                     OCL_ARG(prune->candidates), OCL_ARGS_END) != STATUS_OK ||
            launch_rows(prune, "shift bounds", prune->shift_bounds, tile, err) != STATUS_OK)
            return err->status;
    }
    return STATUS_OK;
}

/* The cheapest candidate; -1 if a full search is cheapest. */
static int choose(const struct prune *prune, uint32_t k)
{
    const struct filter *filter = prune->filter;
    const struct costs *costs = !filter->lane->tiled ? &costs_cpu
                                : prune->tensor      ? &costs_tensor
                                                     : &costs_tiled;
    const uint32_t width = prune->tensor ? KMEANS_HALF_PANEL : filter->width;
    const cl_uint *found = (const cl_uint *)prune->plan.host + KMEANS_PLAN_FOUND;
    const uint32_t count = prune->candidates;
    const double rows = (double)filter->data->share.rows, whole = k + costs->touch;
    /* Close enough to their own centroid, however far others have moved. */
    const double calm = (double)found[count] - (double)found[count + 1];
    double least = rows * whole, full = 0;
    int best = -1;
    for (uint32_t j = 0; j < count; j++) {
        full += found[j];
        const uint32_t panels = (candidate_moved(prune, j) + width - 1) / width;
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

void prune_choose(bool *incremental, struct prune *prune, uint32_t k)
{
    const int chosen = prune->filter->lane->any_prune ? (int)(prune->turn++ % prune->candidates)
                                                      : choose(prune, k);
    *incremental = chosen >= 0;
    prune->plan_ready = false;
    prune->moved_count = 0;
    if (chosen < 0)
        return;
    prune->threshold = candidate_threshold(prune, (uint32_t)chosen);
    prune->most = candidate_threshold(prune, prune->candidates - 1);
    /* If the largest shifts are equal, none exceeds the threshold. */
    if (prune->threshold < prune->most)
        prune->moved_count = candidate_moved(prune, (uint32_t)chosen);
}

double prune_shift_scale(const struct prune *prune)
{
    return ldexp(1 + 0x1p-30, -prune->filter->row_exponent);
}

enum status prune_plan_ahead(struct prune *prune, uint32_t k, const struct device_count *unless,
                             struct error *err)
{
    struct lane *lane = prune->filter->lane;
    const uint64_t groups = (k + KMEANS_RANKED - 1) / KMEANS_RANKED;
    candidate_ranks(prune, k);
    enum status status =
        LANE_RUN(lane, "rank shifts", prune->rank, groups * KMEANS_SCAN_ITEMS, KMEANS_SCAN_ITEMS,
                 err, OCL_ARG(prune->shifts), OCL_ARG(prune->plan.buffer), OCL_ARG(k),
                 OCL_ARG(prune->candidates), OCL_ARG(prune->ranks));
    if (status == STATUS_OK)
        status = shift_bounds_of_tiles(prune, unless, err);
    prune->plan_ready = prune->moved_on_device = status == STATUS_OK;
    return status;
}

enum status prune_list(struct prune *prune, cl_mem ids, uint32_t k, struct error *err)
{
    if (prune->moved_count == 0)
        return STATUS_OK;
    return LANE_RUN(prune->filter->lane, "list moved", prune->list, KMEANS_SCAN_ITEMS,
                    KMEANS_SCAN_ITEMS, err, OCL_ARG(prune->shifts), OCL_ARG(ids), OCL_ARG(k),
                    OCL_ARG(prune->moved_count), OCL_ARG(prune->threshold));
}

enum status prune_plan(bool *incremental, struct prune *prune, const double *shifts, uint32_t k,
                       struct error *err)
{
    const struct filter *filter = prune->filter;
    *incremental = prune->plan_ready = prune->moved_on_device = false;
    /* The limits of the previous pass still hold: as means of rows, centroids come closer to them,
     * never farther. */
    if (!shifts || !filter->bounds_usable)
        return STATUS_OK;
    const double scale = prune_shift_scale(prune);
    for (uint32_t c = 0; c < k; c++)
        prune->host_shifts[c] = float_up(shifts[c] * scale);
    cl_uint *plan = prune->plan.host, moved = 0;
    sort_shifts(prune->sorted, prune->scratch, prune->host_shifts, k);
    candidate_ranks(prune, k);
    while (moved < k && prune->sorted[moved] > 0)
        moved++;
    memset(plan, 0, prune->plan.bytes);
    plan[KMEANS_PLAN_MOVED] = moved;
    for (uint32_t j = 0; j < prune->candidates; j++)
        if (prune->ranks[j] < k)
            memcpy(&plan[j], &prune->sorted[prune->ranks[j]], sizeof *plan);
    if (lane_send(filter->lane, "shifts", prune->shifts, 0, k * sizeof *prune->host_shifts,
                  prune->host_shifts, err) != STATUS_OK ||
        lane_send(filter->lane, "plan", prune->plan.buffer, 0, prune->plan.bytes, prune->plan.host,
                  err) != STATUS_OK ||
        shift_bounds_of_tiles(prune, NULL, err) != STATUS_OK ||
        mailbox_read_part(&prune->filter->mailbox, "plan", &prune->plan, err) != STATUS_OK)
        return err->status;
    prune_choose(incremental, prune, k);
    for (uint32_t c = 0; c < k && *incremental; c++)
        prune->moved[c] = prune->host_shifts[c] > prune->threshold;
    return STATUS_OK;
}

/* --- a tile ---------------------------------------------------------------------------------- */

enum status prune_split(struct prune *prune, struct tile *tile, cl_mem full, cl_mem partial,
                        cl_mem counts, struct error *err)
{
    if (ocl_args(prune->split, err, OCL_ARG(tile->labels), OCL_ARG(tile->upper_bounds),
                 OCL_ARG(tile->lower_bounds), OCL_ARG(prune->shifts), OCL_ARG(full),
                 OCL_ARG(partial), OCL_ARG(counts), OCL_ARG(tile->rows), OCL_ARG(prune->threshold),
                 OCL_ARG(prune->most), OCL_ARGS_END) != STATUS_OK)
        return err->status;
    return launch_rows(prune, "split rows", prune->split, tile, err);
}

enum status prune_own(struct prune *prune, struct tile *tile, cl_mem partial, cl_mem counts,
                      uint32_t most, struct error *err)
{
    struct filter *filter = prune->filter;
    const cl_uint stride = filter->data->stride;
    if (most == 0)
        return STATUS_OK;
    return LANE_RUN(filter->lane, "own distances", prune->own, (uint64_t)most * KMEANS_LANES,
                    KMEANS_OWN_ITEMS, err, OCL_ARG(tile->x), OCL_ARG(filter->centroids),
                    OCL_ARG(tile->labels), OCL_ARG(tile->upper_bounds), OCL_ARG(partial),
                    OCL_ARG(counts), OCL_ARG(stride), OCL_ARG(filter->half_scale),
                    OCL_ARG(filter->growth), OCL_ARG(filter->tiny), OCL_ARG(filter->bounds));
}
