/* seed_pass.c: the passes of seeding, on the device, and on the host where it has no float64. */
#include "cluster/seed_pass.h"
#include "cluster/canonical.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS KMEANS_TRIALS_MAX

static uint64_t blocks_of(uint64_t rows)
{
    return (rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
}

static enum status open_tile(struct seed_tile *out, const struct seed_share *share,
                             const struct tile *tile, struct error *err)
{
    struct lane *lane = share->lane;
    const double *weights = share->seeding->weights;
    const size_t rows = tile->rows;
    enum status status = ocl_buffer(&out->thresholds, lane->ocl, CL_MEM_READ_WRITE,
                                    rows * sizeof(float), NULL, "seeding", err);
    if (status == STATUS_OK)
        status = ocl_buffer(&out->mask, lane->ocl, CL_MEM_READ_WRITE, rows * sizeof(cl_uint), NULL,
                            "seeding", err);
    if (status == STATUS_OK && !lane->host_exact)
        status = ocl_buffer(&out->distances, lane->ocl, CL_MEM_READ_WRITE, rows * sizeof(double),
                            NULL, "seeding", err);
    if (status != STATUS_OK || lane->host_exact || !weights)
        return status;
    status = ocl_buffer(&out->weights, lane->ocl, CL_MEM_READ_ONLY, rows * sizeof(double), NULL,
                        "seeding", err);
    return status == STATUS_OK ? lane_write(lane, "weights", out->weights, 0, rows * sizeof(double),
                                            weights + tile->first, err)
                               : status;
}

static enum status open_share(struct seed_share *share, struct error *err)
{
    const struct data *data = share->data;
    struct lane *lane = share->lane;
    share->tiles = calloc(data->tile_count, sizeof *share->tiles);
    if (!share->tiles)
        return error_memory(err, data->tile_count * sizeof *share->tiles, "seeding");
    enum status status = STATUS_OK;
    if (!lane->host_exact) {
        status = ocl_kernel(&share->exact, share->assign->program, "seed_exact", err);
        if (status == STATUS_OK)
            status = ocl_kernel(&share->commit, share->assign->program, "seed_commit", err);
        if (status == STATUS_OK)
            status = ocl_buffer(&share->block_sums, lane->ocl, CL_MEM_READ_WRITE,
                                blocks_of(data->tile_rows) * TRIALS * sizeof(double), NULL,
                                "seeding", err);
    }
    for (uint32_t i = 0; i < data->tile_count && status == STATUS_OK; i++)
        status = open_tile(&share->tiles[i], share, &data->tiles[i], err);
    return status;
}

enum status seeding_open(struct seeding *seeding, struct shards *shards, const double *weights,
                         struct error *err)
{
    *seeding = (struct seeding){.shards = shards, .weights = weights};
    seeding->blocks = blocks_of(shards->rows);
    seeding->sums = malloc(seeding->blocks * TRIALS * sizeof *seeding->sums);
    seeding->upto = malloc(seeding->blocks * sizeof *seeding->upto);
    seeding->shares = calloc(shards->count, sizeof *seeding->shares);
    bool on_host = false;
    for (uint32_t i = 0; i < shards->count; i++)
        on_host = on_host || shards->shard[i].lane->host_exact;
    if (on_host)
        seeding->host_distances = malloc(shards->rows * sizeof *seeding->host_distances);
    if (!seeding->sums || !seeding->upto || !seeding->shares ||
        (on_host && !seeding->host_distances))
        return error_memory(err, seeding->blocks * TRIALS * sizeof *seeding->sums, "seeding");
    for (uint32_t i = 0; i < shards->count; i++) {
        struct shard *shard = &shards->shard[i];
        seeding->shares[i] = (struct seed_share){.seeding = seeding,
                                                 .assign = &shard->assign,
                                                 .data = &shard->data,
                                                 .lane = shard->lane};
        if (open_share(&seeding->shares[i], err) != STATUS_OK)
            return shards_blame(shards, shard, err);
    }
    return STATUS_OK;
}

static void close_share(struct seed_share *share)
{
    for (uint32_t i = 0; share->tiles && i < share->data->tile_count; i++) {
        ocl_buffer_release(&share->tiles[i].distances);
        ocl_buffer_release(&share->tiles[i].thresholds);
        ocl_buffer_release(&share->tiles[i].mask);
        ocl_buffer_release(&share->tiles[i].weights);
    }
    if (share->exact)
        clReleaseKernel(share->exact);
    if (share->commit)
        clReleaseKernel(share->commit);
    ocl_buffer_release(&share->block_sums);
    free(share->tiles);
}

void seeding_close(struct seeding *seeding)
{
    for (uint32_t i = 0; seeding->shares && i < seeding->shards->count; i++)
        close_share(&seeding->shares[i]);
    free(seeding->shares);
    free(seeding->sums);
    free(seeding->upto);
    free(seeding->host_distances);
    *seeding = (struct seeding){0};
}

static struct seed_tile *of_tile(struct seed_share *share, const struct tile *tile)
{
    return &share->tiles[tile - share->data->tiles];
}

static double *sums_of(struct seeding *seeding, const struct tile *tile)
{
    return seeding->sums + tile->first / KMEANS_BLOCK_ROWS * TRIALS;
}

/* --- on the host ----------------------------------------------------------------------------- */

struct host_pass {
    struct seed_share *share;
    const float *rows, *candidates;
    const double *weights; /* of the tile, or NULL */
    double *distances, *sums;
    float *thresholds;
    uint32_t *mask;
    uint32_t count, trials;
};

/* As seed_exact of kernels/kmeans_exact.cl. */
static void evaluate_block(void *context, uint64_t block)
{
    struct host_pass *pass = context;
    const uint32_t stride = pass->share->data->stride;
    const uint32_t first = (uint32_t)block * KMEANS_BLOCK_ROWS;
    const uint32_t left = pass->count - first;
    const uint32_t rows = left < KMEANS_BLOCK_ROWS ? left : KMEANS_BLOCK_ROWS;
    for (uint32_t trial = 0; trial < pass->trials; trial++) {
        double value[KMEANS_BLOCK_ROWS];
        for (uint32_t i = 0; i < rows; i++) {
            value[i] = pass->distances[first + i];
            if (pass->mask[first + i] >> trial & 1) {
                double other =
                    canonical_distance(pass->rows + (size_t)(first + i) * stride,
                                       pass->candidates + (size_t)trial * stride, stride);
                if (other < value[i])
                    value[i] = other;
                else
                    pass->mask[first + i] &= ~(1u << trial);
            }
            if (pass->weights)
                value[i] *= pass->weights[first + i];
        }
        pass->sums[block * TRIALS + trial] = canonical_block_sum(value, rows);
    }
}

/* As seed_commit; `trials` is the one to take, or TRIALS for all rows. */
static void commit_block(void *context, uint64_t block)
{
    struct host_pass *pass = context;
    const struct filter *filter = pass->share->assign->filter;
    const uint32_t stride = pass->share->data->stride;
    const double scale = ldexp(1.0, -2 * filter->exponent);
    const uint32_t first = (uint32_t)block * KMEANS_BLOCK_ROWS;
    const uint32_t left = pass->count - first;
    const uint32_t end = first + (left < KMEANS_BLOCK_ROWS ? left : KMEANS_BLOCK_ROWS);
    const bool all = pass->trials == TRIALS;
    const float *seed = pass->candidates + (all ? 0 : (size_t)pass->trials * stride);
    for (uint32_t i = first; i < end; i++) {
        if (!all && !(pass->mask[i] >> pass->trials & 1))
            continue;
        const float *row = pass->rows + (size_t)i * stride;
        double distance = canonical_distance(row, seed, stride);
        if (!all && distance >= pass->distances[i])
            continue;
        double length = canonical_distance(row, filter->centre, stride);
        double value = scale * (distance * (1 + 0x1p-30) - length * (1 - 0x1p-30)) + 0x1p-100;
        float rounded = (float)value;
        pass->distances[i] = distance;
        pass->thresholds[i] = (double)rounded < value ? nextafterf(rounded, INFINITY) : rounded;
    }
}

/* Runs `part` over the tile's blocks with everything that it needs on the host. */
static enum status host_tile(struct seed_share *share, struct tile *tile, const float *candidates,
                             uint32_t trials, void (*part)(void *context, uint64_t block),
                             struct error *err)
{
    struct seeding *seeding = share->seeding;
    struct lane *lane = share->lane;
    struct seed_tile *own = of_tile(share, tile);
    const size_t rows = tile->rows;
    struct host_pass pass = {
        .share = share,
        .candidates = candidates,
        .weights = seeding->weights ? seeding->weights + tile->first : NULL,
        .distances = seeding->host_distances + tile->first,
        .sums = sums_of(seeding, tile),
        .count = tile->rows,
        .trials = trials,
    };
    float *mapped = NULL;
    pass.thresholds = malloc(rows * sizeof *pass.thresholds);
    pass.mask = malloc(rows * sizeof *pass.mask);
    enum status status = STATUS_OK;
    if (!pass.thresholds || !pass.mask)
        status = error_memory(err, rows * sizeof *pass.mask, "seeding");
    if (status == STATUS_OK)
        status = lane_read(lane, "thresholds", own->thresholds, 0, rows * sizeof(float),
                           pass.thresholds, err);
    if (status == STATUS_OK)
        status = lane_read(lane, "mask", own->mask, 0, rows * sizeof(cl_uint), pass.mask, err);
    if (status == STATUS_OK)
        status = data_map(&mapped, share->data, tile, err);
    if (status == STATUS_OK) {
        pass.rows = mapped;
        workers_run(lane->workers, part, &pass, blocks_of(tile->rows));
        status = data_unmap(share->data, tile, mapped, err);
    }
    if (status == STATUS_OK)
        status = lane_write(lane, "thresholds", own->thresholds, 0, rows * sizeof(float),
                            pass.thresholds, err);
    if (status == STATUS_OK)
        status = lane_write(lane, "mask", own->mask, 0, rows * sizeof(cl_uint), pass.mask, err);
    free(pass.thresholds);
    free(pass.mask);
    return status;
}

/* --- a tile ---------------------------------------------------------------------------------- */

static enum status filter_tile(struct seed_share *share, struct tile *tile, struct error *err)
{
    struct filter *filter = share->assign->filter;
    struct seed_tile *own = of_tile(share, tile);
    const cl_uint rows = tile->rows, stride = share->data->stride;
    const cl_uint columns = share->data->dimension;
    enum status status = filter_norms(filter, tile, err);
    if (status == STATUS_OK)
        status = ocl_args(filter->seed, err, sizeof(cl_mem), &tile->x, sizeof(cl_mem),
                          &filter->trial.factors, sizeof(cl_mem), &tile->norms, sizeof(cl_mem),
                          &filter->centre_buffer, sizeof(cl_mem), &own->thresholds, sizeof(cl_mem),
                          &own->mask, sizeof rows, &rows, sizeof stride, &stride, sizeof columns,
                          &columns, OCL_ARGS_END);
    if (status != STATUS_OK)
        return status;
    const bool tiled = share->lane->tiled;
    const size_t group = tiled ? 256 : 1, points = tiled ? 16 : filter->points;
    return lane_launch(share->lane, "seed filter", filter->seed,
                       (rows + points - 1) / points * group, group, err);
}

static enum status exact_tile(struct seed_share *share, struct tile *tile, const float *candidates,
                              cl_uint trials, struct error *err)
{
    if (share->lane->host_exact)
        return host_tile(share, tile, candidates, trials, evaluate_block, err);
    struct filter *filter = share->assign->filter;
    struct seed_tile *own = of_tile(share, tile);
    const cl_uint rows = tile->rows, stride = share->data->stride;
    const cl_uint weighted = own->weights ? 1 : 0;
    cl_mem weights = own->weights ? own->weights : own->distances;
    enum status status =
        ocl_args(share->exact, err, sizeof(cl_mem), &tile->x, sizeof(cl_mem), &filter->candidates,
                 sizeof(cl_mem), &own->mask, sizeof(cl_mem), &own->distances, sizeof(cl_mem),
                 &weights, sizeof(cl_mem), &share->block_sums, sizeof rows, &rows, sizeof stride,
                 &stride, sizeof trials, &trials, sizeof weighted, &weighted, OCL_ARGS_END);
    const size_t group = share->lane->tiled ? filter->width : 1;
    if (status == STATUS_OK)
        status = lane_launch(share->lane, "seed exact", share->exact, blocks_of(rows) * group,
                             group, err);
    if (status == STATUS_OK)
        status = lane_read(share->lane, "seed sums", share->block_sums, 0,
                           blocks_of(rows) * TRIALS * sizeof(double), sums_of(share->seeding, tile),
                           err);
    return status;
}

static enum status commit_tile(struct seed_share *share, struct tile *tile, const float *candidates,
                               cl_uint trial, bool first, struct error *err)
{
    if (share->lane->host_exact)
        return host_tile(share, tile, candidates, first ? TRIALS : trial, commit_block, err);
    struct filter *filter = share->assign->filter;
    struct seed_tile *own = of_tile(share, tile);
    const cl_uint rows = tile->rows, stride = share->data->stride, all = first ? 1 : 0;
    const cl_double scale = ldexp(1.0, -2 * filter->exponent);
    enum status status = ocl_args(
        share->commit, err, sizeof(cl_mem), &tile->x, sizeof(cl_mem), &filter->candidates,
        sizeof(cl_mem), &own->mask, sizeof(cl_mem), &filter->centre_buffer, sizeof(cl_mem),
        &own->distances, sizeof(cl_mem), &own->thresholds, sizeof rows, &rows, sizeof stride,
        &stride, sizeof trial, &trial, sizeof all, &all, sizeof scale, &scale, OCL_ARGS_END);
    return status == STATUS_OK
               ? lane_launch(share->lane, "seed commit", share->commit, rows, 64, err)
               : status;
}

/* Commits are over: the tile may go, and other candidates may come. */
static enum status wait_commit(struct seed_share *share, const struct tile *tile, struct error *err)
{
    cl_uint one;
    return lane_read(share->lane, "mask", of_tile(share, tile)->mask, 0, sizeof one, &one, err);
}

/* --- passes ---------------------------------------------------------------------------------- */

/* Adds up what remains if `trial` is taken, block by block. */
static void add_up(struct seeding *seeding, uint32_t trial)
{
    double total = 0;
    for (uint64_t b = 0; b < seeding->blocks; b++) {
        total += seeding->sums[b * TRIALS + trial];
        seeding->upto[b] = total;
    }
}

/* What a pass does to each tile. */
struct seed_job {
    struct seeding *seeding;
    enum status (*tile)(const struct seed_job *job, struct seed_share *share, struct tile *tile,
                        struct error *err);
    const float *candidates;
    uint32_t count; /* of them; or the one to take */
    bool set;       /* the filter does not have them yet */
};

static enum status pass_share(void *context, struct shard *shard, struct error *err)
{
    const struct seed_job *job = context;
    struct seed_share *share = &job->seeding->shares[shard - job->seeding->shards->shard];
    struct tile *tile;
    enum status status = STATUS_OK;
    if (job->set)
        status = filter_set_candidates(share->assign->filter, job->candidates, job->count, err);
    if (status == STATUS_OK)
        status = data_begin_at_either_end(share->data, err);
    while (status == STATUS_OK && (status = data_next(share->data, &tile, err)) == STATUS_OK) {
        status = job->tile(job, share, tile, err);
        if (status == STATUS_OK)
            status = data_done(share->data, tile, err);
    }
    data_end(share->data);
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status run_pass(struct seed_job *job, struct error *err)
{
    return shards_run(job->seeding->shards, pass_share, job, err);
}

static enum status evaluate_tile(const struct seed_job *job, struct seed_share *share,
                                 struct tile *tile, struct error *err)
{
    enum status status = filter_tile(share, tile, err);
    return status == STATUS_OK ? exact_tile(share, tile, job->candidates, job->count, err) : status;
}

static enum status first_tile(const struct seed_job *job, struct seed_share *share,
                              struct tile *tile, struct error *err)
{
    enum status status = commit_tile(share, tile, job->candidates, 0, true, err);
    /* The seed is nowhere nearer than itself: the sums are of what is. */
    return status == STATUS_OK ? evaluate_tile(job, share, tile, err) : status;
}

enum status seeding_first(struct seeding *seeding, const float *seed, struct error *err)
{
    struct seed_job job = {seeding, first_tile, seed, 1, true};
    enum status status = run_pass(&job, err);
    if (status == STATUS_OK)
        add_up(seeding, 0);
    return status;
}

static enum status restore_tile(const struct seed_job *job, struct seed_share *share,
                                struct tile *tile, struct error *err)
{
    enum status status = filter_tile(share, tile, err);
    for (uint32_t i = 0; i < job->count && status == STATUS_OK; i++)
        status = commit_tile(share, tile, job->candidates, i, false, err);
    return status == STATUS_OK ? wait_commit(share, tile, err) : status;
}

/* A pass for each KMEANS_TRIALS_MAX seeds: the filter leaves out the rows that none of them can be
 * nearer to, and a commit those that one before it is nearer to. */
enum status seeding_restore(struct seeding *seeding, const float *seeds, uint32_t count,
                            struct error *err)
{
    const size_t stride = seeding->shards->shard[0].data.stride;
    enum status status = seeding_first(seeding, seeds, err);
    for (uint32_t from = 1; from < count && status == STATUS_OK; from += TRIALS) {
        const uint32_t many = count - from < TRIALS ? count - from : TRIALS;
        struct seed_job job = {seeding, restore_tile, seeds + from * stride, many, true};
        status = run_pass(&job, err);
    }
    if (count == 1 || status != STATUS_OK)
        return status;
    /* A seed is nowhere nearer than what is nearest: the sums are of what is. */
    double remaining;
    status = seeding_evaluate(seeding, &remaining, seeds, 1, err);
    if (status == STATUS_OK)
        add_up(seeding, 0);
    return status;
}

enum status seeding_evaluate(struct seeding *seeding, double *remaining, const float *candidates,
                             uint32_t count, struct error *err)
{
    struct seed_job job = {seeding, evaluate_tile, candidates, count, true};
    enum status status = run_pass(&job, err);
    for (uint32_t trial = 0; trial < count && status == STATUS_OK; trial++) {
        remaining[trial] = 0;
        for (uint64_t b = 0; b < seeding->blocks; b++)
            remaining[trial] += seeding->sums[b * TRIALS + trial];
    }
    return status;
}

static enum status take_tile(const struct seed_job *job, struct seed_share *share,
                             struct tile *tile, struct error *err)
{
    enum status status = commit_tile(share, tile, job->candidates, job->count, false, err);
    return status == STATUS_OK && !share->data->resident ? wait_commit(share, tile, err) : status;
}

enum status seeding_take(struct seeding *seeding, const float *candidates, uint32_t trial,
                         struct error *err)
{
    struct seed_job job = {seeding, take_tile, candidates, trial, false};
    enum status status = run_pass(&job, err);
    if (status == STATUS_OK)
        add_up(seeding, trial);
    return status;
}

double seeding_remaining(const struct seeding *seeding)
{
    return seeding->upto[seeding->blocks - 1];
}

enum status seeding_draw(uint64_t *row, struct seeding *seeding, double random, struct error *err)
{
    const double target = random * seeding_remaining(seeding);
    /* The first block that reaches beyond the target; in the rare case that rounding left none, the
     * last that adds anything. */
    uint64_t low = 0, high = seeding->blocks - 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (seeding->upto[middle] > target)
            high = middle;
        else
            low = middle + 1;
    }
    while (low > 0 && !(seeding->upto[low] > seeding->upto[low - 1]))
        low--;
    const uint64_t first = low * KMEANS_BLOCK_ROWS, left = seeding->shards->rows - first;
    const uint32_t rows = left < KMEANS_BLOCK_ROWS ? (uint32_t)left : KMEANS_BLOCK_ROWS;
    double values[KMEANS_BLOCK_ROWS];
    struct shard *shard = shards_of_row(seeding->shards, first);
    struct seed_share *share = &seeding->shares[shard - seeding->shards->shard];
    const struct tile *tile = data_tile_of(&shard->data, first);
    enum status status = STATUS_OK;
    if (shard->lane->host_exact)
        memcpy(values, seeding->host_distances + first, rows * sizeof *values);
    else
        status = lane_read(shard->lane, "seed distances", of_tile(share, tile)->distances,
                           (size_t)(first - tile->first) * sizeof *values, rows * sizeof *values,
                           values, err);
    if (status != STATUS_OK)
        return shards_blame(seeding->shards, shard, err);
    double reached = low > 0 ? seeding->upto[low - 1] : 0;
    *row = first;
    for (uint32_t i = 0; i < rows; i++) {
        double value = seeding->weights ? values[i] * seeding->weights[first + i] : values[i];
        if (value > 0)
            *row = first + i;
        reached += value;
        if (value > 0 && reached > target)
            break;
    }
    return STATUS_OK;
}
