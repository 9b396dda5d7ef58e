/* seed_plus.c: greedy k-means++, on the device, or on the host if the device has no float64. All
 * rounds on the device: seed_device.c.
 *
 * Each row has its canonical distance to the nearest seed so far. A round evaluates a few
 * candidates at once: the filter tells which rows may be nearer to one of them, only those are
 * evaluated, and each block of rows sums what would remain. All sums have a defined order, so every
 * device draws the same rows. */
#include "kmeans/canonical.h"
#include "kmeans/seed.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS KMEANS_TRIALS_MAX

struct seeding {
    struct shard *shard;
    struct assign *assign;
    struct data *data;
    struct lane *lane;
    struct lane_held *held;
    cl_kernel exact, commit;
    struct seed_tile *tiles;
    cl_mem block_sums;      /* of one tile: blocks x KMEANS_TRIALS_MAX */
    uint64_t blocks;        /* of the rank's rows, like: */
    double *sums;           /* blocks x KMEANS_TRIALS_MAX: what would remain */
    double *upto;           /* blocks: what remains in this and all earlier ones, any rank's */
    double *host_distances; /* rows; NULL: the device keeps them */
    const double *weights;  /* rows, or NULL: all 1 */
    double before;          /* what remains in the blocks of earlier ranks */
    double *reached;        /* per rank: what remains in its blocks and all earlier ones */
};

static uint64_t blocks_of(uint64_t rows)
{
    return (rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
}

uint32_t seed_groups(uint32_t rows, uint32_t trials)
{
    return (uint32_t)blocks_of(rows) * ((trials + KMEANS_TOGETHER - 1) / KMEANS_TOGETHER);
}

/* Work-items for a block. */
static size_t seed_group(const struct assign *assign)
{
    return assign->lane->tiled ? assign->filter->width : 1;
}

static struct seed_tile *of_tile(struct seeding *seeding, const struct tile *tile)
{
    return &seeding->tiles[tile - seeding->data->tiles];
}

static double *sums_of(struct seeding *seeding, const struct tile *tile)
{
    return seeding->sums + tile->offset / KMEANS_BLOCK_ROWS * TRIALS;
}

/* --- on the host ----------------------------------------------------------------------------- */

struct host_pass {
    struct seeding *seeding;
    const float *rows, *candidates;
    const double *weights; /* of the tile, or NULL */
    double *distances, *sums;
    float *thresholds;
    uint32_t *mask;
    uint32_t count, trials;
};

/* Like seed_exact of kernels/kmeans_exact.cl. */
static void evaluate_block(void *context, uint64_t block)
{
    struct host_pass *pass = context;
    const uint32_t stride = pass->seeding->data->stride;
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

/* Like seed_commit; `trials` is the candidate to take, or TRIALS for all rows. */
static void commit_block(void *context, uint64_t block)
{
    struct host_pass *pass = context;
    const struct filter *filter = pass->seeding->assign->filter;
    const uint32_t stride = pass->seeding->data->stride;
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
        pass->distances[i] = distance;
        pass->thresholds[i] = float_up(value);
    }
}

/* Runs `part` over the tile's blocks while all that it needs is mapped to the host. */
static enum status host_tile(struct seeding *seeding, struct tile *tile, const float *candidates,
                             uint32_t trials, void (*part)(void *context, uint64_t block),
                             struct error *err)
{
    struct lane *lane = seeding->lane;
    const struct seed_tile *own = of_tile(seeding, tile);
    const size_t bytes = tile->rows * sizeof(float);
    const cl_map_flags flags = CL_MAP_READ | CL_MAP_WRITE;
    void *thresholds = NULL, *mask = NULL;
    float *rows;
    enum status status =
        lane_map(&thresholds, lane, "map thresholds", own->thresholds, flags, bytes, err);
    if (status == STATUS_OK)
        status = lane_map(&mask, lane, "map mask", own->mask, flags, bytes, err);
    if (status == STATUS_OK)
        status = data_map(&rows, seeding->data, tile, err);
    if (status == STATUS_OK) {
        struct host_pass pass = {
            .seeding = seeding,
            .rows = rows,
            .candidates = candidates,
            .weights = seeding->weights ? seeding->weights + tile->offset : NULL,
            .distances = seeding->host_distances + tile->offset,
            .sums = sums_of(seeding, tile),
            .thresholds = thresholds,
            .mask = mask,
            .count = tile->rows,
            .trials = trials,
        };
        workers_run(lane->workers, part, &pass, blocks_of(tile->rows));
        status = data_unmap(seeding->data, tile, rows, err);
    }
    status = lane_unmap(lane, "unmap mask", own->mask, mask, status, err);
    return lane_unmap(lane, "unmap thresholds", own->thresholds, thresholds, status, err);
}

/* --- on the device or the host ----------------------------------------------------------------- */

/* For each row, the minimum of its distance to the seeds and to the candidates named by the mask,
 * summed per block. */
static enum status evaluate(struct seeding *seeding, struct tile *tile, const float *candidates,
                            uint32_t trials, struct error *err)
{
    struct filter *filter = seeding->assign->filter;
    struct seed_tile *own = of_tile(seeding, tile);
    const cl_uint rows = tile->rows, stride = seeding->data->stride, first_block = 0;
    const cl_uint weighted = own->weights ? 1 : 0, no_groups = 0;
    const cl_mem weights = own->weights ? own->weights : own->distances, none = seeding->block_sums;
    const size_t group = seed_group(seeding->assign);
    if (seeding->host_distances)
        return host_tile(seeding, tile, candidates, trials, evaluate_block, err);
    if (LANE_RUN(seeding->lane, "seed exact", seeding->exact, seed_groups(rows, trials) * group,
                 group, err, OCL_ARG(tile->x), OCL_ARG(filter->candidates), OCL_ARG(own->mask),
                 OCL_ARG(own->distances), OCL_ARG(weights), OCL_ARG(seeding->block_sums),
                 OCL_ARG(none), OCL_ARG(none), OCL_ARG(none), OCL_ARG(none), OCL_ARG(first_block),
                 OCL_ARG(rows), OCL_ARG(stride), OCL_ARG(trials), OCL_ARG(weighted),
                 OCL_ARG(no_groups), OCL_ARG(no_groups)) != STATUS_OK)
        return err->status;
    return lane_read(seeding->lane, "seed sums", seeding->block_sums, 0,
                     blocks_of(rows) * TRIALS * sizeof(double), sums_of(seeding, tile), err);
}

/* Takes one candidate; first: the first seed, for all rows. */
static enum status commit(struct seeding *seeding, struct tile *tile, const float *candidates,
                          uint32_t trial, bool first, struct error *err)
{
    struct filter *filter = seeding->assign->filter;
    struct seed_tile *own = of_tile(seeding, tile);
    const cl_uint rows = tile->rows, stride = seeding->data->stride, all = first ? 1 : 0;
    const cl_double scale = ldexp(1.0, -2 * filter->exponent);
    const size_t group = seed_group(seeding->assign);
    if (seeding->host_distances)
        return host_tile(seeding, tile, candidates, first ? TRIALS : trial, commit_block, err);
    return LANE_RUN(seeding->lane, "seed commit", seeding->commit, blocks_of(rows) * group, group,
                    err, OCL_ARG(tile->x), OCL_ARG(filter->candidates), OCL_ARG(own->mask),
                    OCL_ARG(filter->centre_buffer), OCL_ARG(own->distances),
                    OCL_ARG(own->thresholds), OCL_ARG(rows), OCL_ARG(stride), OCL_ARG(trial),
                    OCL_ARG(all), OCL_ARG(scale));
}

/* Reads the distances of `rows` rows starting at `offset` of the share. */
static enum status read_distances(double *distances, struct seeding *seeding, uint64_t offset,
                                  uint32_t rows, struct error *err)
{
    if (seeding->host_distances) {
        memcpy(distances, seeding->host_distances + offset, rows * sizeof *distances);
        return STATUS_OK;
    }
    const struct tile *tile = data_tile_of(seeding->data, seeding->data->share.first + offset);
    return lane_read(seeding->lane, "seed distances", of_tile(seeding, tile)->distances,
                     (size_t)(offset - tile->offset) * sizeof *distances, rows * sizeof *distances,
                     distances, err);
}

/* --- opening --------------------------------------------------------------------------------- */

static enum status open_tile(struct seed_tile *out, struct seeding *seeding,
                             const struct tile *tile, struct error *err)
{
    struct lane *lane = seeding->lane;
    const double *weights = seeding->weights;
    const size_t rows = tile->rows;
    const struct lane_wanted wanted[] = {
        BUFFER(out->thresholds, rows * sizeof(float)), BUFFER(out->mask, rows * sizeof(cl_uint)),
        BUFFER(out->distances, rows * sizeof(double)), /* unless the host keeps them */
        BUFFER(out->weights, rows * sizeof(double)),   /* likewise */
    };
    const size_t count = seeding->host_distances ? 2 : weights ? 4 : 3;
    if (lane_hold(&seeding->held, lane, wanted, count, "seeding", err) != STATUS_OK)
        return err->status;
    return count == 4 ? lane_write(lane, "weights", out->weights, 0, rows * sizeof(double),
                                   weights + tile->offset, err)
                      : STATUS_OK;
}

static enum status seeding_open(struct seeding *seeding, struct shard *shard, const double *weights,
                                struct error *err)
{
    struct data *data = &shard->data;
    struct lane *lane = shard->lane;
    *seeding = (struct seeding){.shard = shard,
                                .assign = &shard->assign,
                                .data = data,
                                .lane = lane,
                                .blocks = blocks_of(data->share.rows),
                                .weights = weights};
    const char *program = "kmeans_exact", *options = seeding->assign->exact.options;
    const struct lane_wanted wanted[] = {
        HOST(seeding->sums, seeding->blocks * TRIALS), HOST(seeding->upto, seeding->blocks),
        HOST(seeding->reached, shard->comm->size), HOST(seeding->tiles, data->tile_count)};
    const struct lane_wanted of_host = HOST(seeding->host_distances, data->share.rows);
    const struct lane_wanted of_device[] = {
        KERNEL(seeding->exact, program, options, "seed_exact"),
        KERNEL(seeding->commit, program, options, "seed_commit"),
        BUFFER(seeding->block_sums, blocks_of(data->tile_rows) * TRIALS * sizeof(double))};
    if (lane_hold(&seeding->held, lane, wanted, COUNT_OF(wanted), "seeding", err) != STATUS_OK ||
        lane_hold(&seeding->held, lane, lane->host_exact ? &of_host : of_device,
                  lane->host_exact ? 1 : COUNT_OF(of_device), "seeding", err) != STATUS_OK)
        return err->status;
    for (uint32_t i = 0; i < data->tile_count; i++)
        if (open_tile(&seeding->tiles[i], seeding, &data->tiles[i], err) != STATUS_OK)
            return err->status;
    return STATUS_OK;
}

/* --- passes ---------------------------------------------------------------------------------- */

static enum status filter_tile(struct seeding *seeding, struct tile *tile, struct error *err)
{
    struct filter *filter = seeding->assign->filter;
    struct seed_tile *own = of_tile(seeding, tile);
    const cl_uint rows = tile->rows, stride = seeding->data->stride;
    const cl_uint columns = seeding->data->dimension;
    if (filter_norms(filter, tile, err) != STATUS_OK)
        return err->status;
    const bool tiled = seeding->lane->tiled;
    const size_t group = tiled ? 256 : 1, points = tiled ? 16 : filter->points;
    return LANE_RUN(seeding->lane, "seed filter", filter->seed,
                    (rows + points - 1) / points * group, group, err, OCL_ARG(tile->x),
                    OCL_ARG(filter->trial.factors), OCL_ARG(tile->norms),
                    OCL_ARG(filter->centre_buffer), OCL_ARG(own->thresholds), OCL_ARG(own->mask),
                    OCL_ARG(rows), OCL_ARG(stride), OCL_ARG(columns));
}

/* Waits for commits, so that the tile may go and other candidates may come. */
static enum status wait_commit(struct seeding *seeding, const struct tile *tile, struct error *err)
{
    cl_uint one;
    return lane_read(seeding->lane, "mask", of_tile(seeding, tile)->mask, 0, sizeof one, &one, err);
}

/* A pass over the tiles. */
struct seed_job {
    enum status (*tile)(const struct seed_job *job, struct seeding *seeding, struct tile *tile,
                        struct error *err);
    const float *candidates;
    uint32_t count; /* of candidates; or the one to take */
    bool set;       /* the filter does not have the candidates yet */
};

static enum status run_pass(struct seeding *seeding, const struct seed_job *job, struct error *err)
{
    struct data *data = seeding->data;
    struct tile *tile;
    if (job->set && filter_set_candidates(seeding->assign->filter, job->candidates, job->count,
                                          err) != STATUS_OK)
        return err->status;
    enum status status = data_begin(data, err);
    while (status == STATUS_OK && (status = data_next(data, &tile, err)) == STATUS_OK)
        status = job->tile(job, seeding, tile, err);
    return data_end(data, status);
}

struct remaining_job {
    struct seeding *seeding;
    uint32_t trial, count; /* the first of `count` trials */
    bool upto;             /* for one trial: also update seeding->upto */
};

/* Block after block; the rank's part of comm_fold. */
static void add_remaining(void *context, double *sums)
{
    const struct remaining_job *job = context;
    struct seeding *seeding = job->seeding;
    for (uint64_t b = 0; b < seeding->blocks; b++) {
        for (uint32_t t = 0; t < job->count; t++)
            sums[t] += seeding->sums[b * TRIALS + job->trial + t];
        if (job->upto)
            seeding->upto[b] = sums[0];
    }
}

/* Sums what remains if `trial` is taken. */
static enum status add_up(struct seeding *seeding, uint32_t trial, struct error *err)
{
    struct comm *comm = seeding->shard->comm;
    struct remaining_job job = {seeding, trial, 1, true};
    double total = 0;
    enum status status = comm_fold(comm, &total, 1, &seeding->before, add_remaining, &job, err);
    seeding->reached[comm->rank] = seeding->upto[seeding->blocks - 1];
    return status == STATUS_OK ? comm_gather_each(comm, seeding->reached, sizeof total, err)
                               : status;
}

static enum status evaluate_tile(const struct seed_job *job, struct seeding *seeding,
                                 struct tile *tile, struct error *err)
{
    if (filter_tile(seeding, tile, err) != STATUS_OK)
        return err->status;
    return evaluate(seeding, tile, job->candidates, job->count, err);
}

static enum status first_tile(const struct seed_job *job, struct seeding *seeding,
                              struct tile *tile, struct error *err)
{
    if (commit(seeding, tile, job->candidates, 0, true, err) != STATUS_OK)
        return err->status;
    /* A seed that has already been taken brings no row nearer, so the sums are the current ones. */
    return evaluate_tile(job, seeding, tile, err);
}

static enum status restore_tile(const struct seed_job *job, struct seeding *seeding,
                                struct tile *tile, struct error *err)
{
    if (filter_tile(seeding, tile, err) != STATUS_OK)
        return err->status;
    for (uint32_t i = 0; i < job->count; i++)
        if (commit(seeding, tile, job->candidates, i, false, err) != STATUS_OK)
            return err->status;
    return wait_commit(seeding, tile, err);
}

/* For each of `count` candidates (count x stride values), the sum of weighted distances that would
 * remain if it were taken. */
static enum status seeding_evaluate(struct seeding *seeding, double *remaining,
                                    const float *candidates, uint32_t count, struct error *err)
{
    const struct seed_job job = {evaluate_tile, candidates, count, true};
    struct remaining_job sum = {seeding, 0, count, false};
    enum status status = run_pass(seeding, &job, err);
    memset(remaining, 0, count * sizeof *remaining);
    return status == STATUS_OK
               ? comm_fold(seeding->shard->comm, remaining, count, NULL, add_remaining, &sum, err)
               : status;
}

/* Takes the first `count` seeds (count x stride values), as if one after another. Makes a pass per
 * KMEANS_TRIALS_MAX seeds: the filter skips the rows that none of them can be nearer to, and a
 * commit skips those to which an earlier one is nearer. */
static enum status seeding_restore(struct seeding *seeding, const float *seeds, uint32_t count,
                                   struct error *err)
{
    const size_t stride = seeding->data->stride;
    const struct seed_job first = {first_tile, seeds, 1, true};
    enum status status = run_pass(seeding, &first, err);
    for (uint32_t from = 1; from < count && status == STATUS_OK; from += TRIALS) {
        const uint32_t many = count - from < TRIALS ? count - from : TRIALS;
        const struct seed_job job = {restore_tile, seeds + from * stride, many, true};
        status = run_pass(seeding, &job, err);
    }
    /* A seed brings no row nearer than its nearest seed, so the sums are the current ones. */
    double remaining;
    if (status == STATUS_OK && count > 1)
        status = seeding_evaluate(seeding, &remaining, seeds, 1, err);
    return status == STATUS_OK ? add_up(seeding, 0, err) : status;
}

static enum status take_tile(const struct seed_job *job, struct seeding *seeding, struct tile *tile,
                             struct error *err)
{
    enum status status = commit(seeding, tile, job->candidates, job->count, false, err);
    return status == STATUS_OK && !seeding->data->resident ? wait_commit(seeding, tile, err)
                                                           : status;
}

/* Takes one of the candidates just evaluated. */
static enum status seeding_take(struct seeding *seeding, const float *candidates, uint32_t trial,
                                struct error *err)
{
    const struct seed_job job = {take_tile, candidates, trial, false};
    if (run_pass(seeding, &job, err) != STATUS_OK)
        return err->status;
    return add_up(seeding, trial, err);
}

/* The sum of weighted distances that remains. */
static double seeding_remaining(const struct seeding *seeding)
{
    return seeding->reached[seeding->shard->comm->size - 1];
}

/* The rank with the first block that reaches the target; if rounding left none, which is rare, the
 * last one that adds anything. */
static uint32_t rank_of_target(const struct seeding *seeding, double target)
{
    const uint32_t size = seeding->shard->comm->size;
    for (uint32_t rank = 0; rank < size; rank++)
        if (seeding->reached[rank] > target)
            return rank;
    uint32_t last = size - 1;
    while (last > 0 && !(seeding->reached[last] > seeding->reached[last - 1]))
        last--;
    return last;
}

/* The same for the blocks of this rank. */
static uint64_t block_of_target(const struct seeding *seeding, double target)
{
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
    return low;
}

static enum status draw_row(uint64_t *row, struct seeding *seeding, double target,
                            struct error *err)
{
    struct data *data = seeding->data;
    const uint64_t block = block_of_target(seeding, target);
    const uint64_t at = block * KMEANS_BLOCK_ROWS, left = data->share.rows - at;
    const uint64_t first = data->share.first + at;
    const uint32_t rows = left < KMEANS_BLOCK_ROWS ? (uint32_t)left : KMEANS_BLOCK_ROWS;
    double values[KMEANS_BLOCK_ROWS];
    if (read_distances(values, seeding, at, rows, err) != STATUS_OK)
        return err->status;
    double reached = block > 0 ? seeding->upto[block - 1] : seeding->before;
    *row = first;
    for (uint32_t i = 0; i < rows; i++) {
        double value = seeding->weights ? values[i] * seeding->weights[at + i] : values[i];
        if (value > 0)
            *row = first + i;
        reached += value;
        if (value > 0 && reached > target)
            break;
    }
    return STATUS_OK;
}

/* Draws rows with probability proportional to weighted distance; random[] are in [0, 1). */
static enum status seeding_draw(uint64_t *rows, struct seeding *seeding, const double *random,
                                uint32_t count, struct error *err)
{
    struct comm *comm = seeding->shard->comm;
    const double remaining = seeding_remaining(seeding);
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = 0;
        if (rank_of_target(seeding, random[i] * remaining) == comm->rank &&
            draw_row(&rows[i], seeding, random[i] * remaining, err) != STATUS_OK)
            return err->status;
    }
    return comm_sum(comm, (int64_t *)rows, (const int64_t *)rows, count, err);
}

/* --- rounds ---------------------------------------------------------------------------------- */

struct seed_draws seed_draws_of(const struct cluster_config *config)
{
    const uint32_t wanted = 2 + (uint32_t)log((double)config->k);
    return (struct seed_draws){
        .config = config, .trials = wanted < TRIALS ? wanted : TRIALS, .from = 1};
}

void seed_random(double *random, const struct seed_draws *draws, uint32_t seed)
{
    const uint64_t counter = 1 + (uint64_t)(seed - 1) * draws->trials;
    for (uint32_t t = 0; t < draws->trials; t++)
        random[t] = canonical_random(draws->config->seed, draws->stream, counter + t);
}

void seed_save(struct checkpoint *checkpoint, uint32_t seeds)
{
    if (!checkpoint)
        return;
    checkpoint->run.seeds = seeds;
    if (checkpoint_due(checkpoint))
        checkpoint_save(checkpoint);
}

/* Chooses the remaining seeds, one after another. */
static enum status choose_seeds(float *centroids, struct seeding *seeding, float *candidates,
                                const struct seed_draws *draws, struct error *err)
{
    const uint32_t k = draws->config->k, trials = draws->trials;
    const size_t stride = seeding->data->stride;
    for (uint32_t c = draws->from; c < k; c++) {
        double remaining[TRIALS], random[TRIALS];
        uint64_t rows[TRIALS];
        uint32_t best = 0;
        seed_progress(draws->config, seeding->data->comm, c, k);
        if (seeding_remaining(seeding) == 0)
            return seed_too_few(k, c, err);
        seed_random(random, draws, c);
        if (seeding_draw(rows, seeding, random, trials, err) != STATUS_OK ||
            shard_rows(seeding->shard, candidates, rows, trials, err) != STATUS_OK ||
            seeding_evaluate(seeding, remaining, candidates, trials, err) != STATUS_OK)
            return err->status;
        for (uint32_t t = 1; t < trials; t++)
            if (remaining[t] < remaining[best])
                best = t;
        if (seeding_take(seeding, candidates, best, err) != STATUS_OK)
            return err->status;
        memcpy(centroids + c * stride, candidates + best * stride, stride * sizeof *centroids);
        seed_save(draws->checkpoint, c + 1);
    }
    return STATUS_OK;
}

/* Greedy k-means++: of 2 + floor(ln k) rows drawn with probability proportional to weight and
 * squared distance, takes the one that leaves least (ties: the first). */
enum status seed_plus_plus(float *centroids, struct shard *shard, const double *weights,
                           const struct cluster_config *config, uint32_t stream,
                           struct checkpoint *checkpoint, struct error *err)
{
    const struct data *data = &shard->data;
    const uint32_t resumed = checkpoint ? checkpoint->run.seeds : 0;
    const size_t stride = data->stride;
    struct seed_draws draws = seed_draws_of(config);
    draws.stream = stream;
    draws.from = resumed > 0 ? resumed : 1;
    draws.checkpoint = checkpoint;
    struct seeding seeding = {0};
    uint64_t row;
    enum status status = STATUS_FAILED;
    float *candidates = malloc(TRIALS * stride * sizeof *candidates);
    if (!candidates) {
        error_memory(err, TRIALS * stride * sizeof *candidates, "seeding");
        goto out;
    }
    status = seeding_open(&seeding, shard, weights, err);
    if (status == STATUS_OK && resumed == 0)
        status = seed_first_row(&row, data, weights, config->seed, stream, err);
    if (status == STATUS_OK && resumed == 0)
        status = shard_rows(shard, centroids, &row, 1, err);
    if (status == STATUS_OK)
        status = seeding_restore(&seeding, centroids, draws.from, err);
    if (status == STATUS_OK)
        status = data->comm->size == 1 && data->resident && float16_usable(&shard->assign)
                     ? seed_on_device(centroids, shard, seeding.tiles, seeding.upto, seeding.blocks,
                                      &draws, err)
                     : choose_seeds(centroids, &seeding, candidates, &draws, err);
out:
    lane_settle(shard->lane);
    lane_release(&seeding.held);
    free(candidates);
    return status;
}
