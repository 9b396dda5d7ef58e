/* seed_device.c: rounds of greedy k-means++ that do not leave the device: draw, filter in float16,
 * distances of the rows that are left, sums in order, choice. The host waits once in BATCH. */
#include "kmeans/seed.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rounds that are enqueued before the host waits, which is when it can stop. */
#define BATCH 32

struct rounds {
    struct shard *shard;
    struct data *data;
    struct lane *lane;
    struct filter *filter;
    struct lane_held *held;
    const struct seed_tile *tiles;
    const struct seed_draws *draws;
    cl_kernel exact, commit, fold, draw;
    cl_mem random;     /* of a batch, KMEANS_TRIALS_MAX each round */
    cl_mem squares;    /* per candidate: its squared length, less the centre */
    cl_mem sums, upto; /* blocks x KMEANS_TRIALS_MAX: what would remain, and in all up to there */
    cl_mem chosen;     /* the candidate taken last */
    cl_mem totals;     /* per round of a batch: what remains after it */
    double *host_random, *host_totals;
    cl_uint blocks;
};

static enum status open_rounds(struct rounds *rounds, const double *upto, struct error *err)
{
    struct lane *lane = rounds->lane;
    const cl_program program = rounds->shard->assign.exact->program;
    const size_t all = (size_t)rounds->blocks * KMEANS_TRIALS_MAX;
    const size_t random = BATCH * KMEANS_TRIALS_MAX;
    const cl_uint first = 0;
    double *host_upto;
    const struct lane_wanted wanted[] = {
        KERNEL(rounds->exact, program, "seed_exact"),
        KERNEL(rounds->commit, program, "seed_commit"),
        KERNEL(rounds->fold, program, "seed_fold"),
        KERNEL(rounds->draw, program, "seed_draw"),
        BUFFER(rounds->random, random * sizeof(double)),
        BUFFER(rounds->squares, KMEANS_TRIALS_MAX * sizeof(double)),
        BUFFER(rounds->sums, all * sizeof(double)),
        BUFFER(rounds->upto, all * sizeof(double)),
        BUFFER(rounds->chosen, sizeof(cl_uint)),
        BUFFER(rounds->totals, BATCH * sizeof(double)),
        HOST(rounds->host_random, random),
        HOST(rounds->host_totals, BATCH)};
    if (lane_hold(&rounds->held, lane, wanted, COUNT_OF(wanted), "seeding", err) != STATUS_OK)
        return err->status;
    host_upto = calloc(all, sizeof *host_upto);
    if (!host_upto)
        return error_memory(err, all * sizeof *host_upto, "seeding");
    for (size_t b = 0; b < rounds->blocks; b++)
        host_upto[b * KMEANS_TRIALS_MAX] = upto[b];
    enum status status =
        lane_write(lane, "seed sums", rounds->upto, 0, all * sizeof(double), host_upto, err);
    if (status == STATUS_OK)
        status = lane_write(lane, "chosen", rounds->chosen, 0, sizeof first, &first, err);
    free(host_upto);
    return status;
}

enum step { DRAW, EVALUATE, TAKE };

/* Enqueues a step of a round for one tile. */
static enum status enqueue_step(struct rounds *rounds, uint32_t i, enum step step, cl_uint round,
                                struct error *err)
{
    struct lane *lane = rounds->lane;
    const struct filter *filter = rounds->filter;
    const struct seed_tile *own = &rounds->tiles[i];
    struct tile *tile = &rounds->data->tiles[i];
    const cl_uint first_block = (cl_uint)(tile->offset / KMEANS_BLOCK_ROWS), rows = tile->rows;
    const cl_uint stride = rounds->data->stride, trials = rounds->draws->trials;
    const cl_uint weighted = own->weights ? 1 : 0, trial = KMEANS_CHOSEN, all = 0;
    const cl_mem weights = own->weights ? own->weights : own->distances;
    const cl_double scale = ldexp(1.0, -2 * filter->exponent);
    const size_t group = filter->width;
    const uint64_t items = (rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS * group;
    if (step == DRAW)
        return LANE_RUN(lane, "seed draw", rounds->draw, trials * group, group, err,
                        OCL_ARG(tile->x), OCL_ARG(rounds->upto), OCL_ARG(rounds->chosen),
                        OCL_ARG(rounds->random), OCL_ARG(own->distances), OCL_ARG(weights),
                        OCL_ARG(filter->centre_buffer), OCL_ARG(filter->candidates),
                        OCL_ARG(rounds->squares), OCL_ARG(rounds->blocks), OCL_ARG(first_block),
                        OCL_ARG(rows), OCL_ARG(stride), OCL_ARG(weighted), OCL_ARG(round));
    if (step == TAKE)
        return LANE_RUN(lane, "seed commit", rounds->commit, items, group, err, OCL_ARG(tile->x),
                        OCL_ARG(filter->candidates), OCL_ARG(own->mask),
                        OCL_ARG(filter->centre_buffer), OCL_ARG(rounds->chosen),
                        OCL_ARG(own->distances), OCL_ARG(own->thresholds), OCL_ARG(rows),
                        OCL_ARG(stride), OCL_ARG(trial), OCL_ARG(all), OCL_ARG(scale));
    if (float16_filter_candidates(&rounds->shard->assign, tile, own->thresholds, own->mask, err) !=
        STATUS_OK)
        return err->status;
    return LANE_RUN(lane, "seed exact", rounds->exact, items, group, err, OCL_ARG(tile->x),
                    OCL_ARG(filter->candidates), OCL_ARG(own->mask), OCL_ARG(own->distances),
                    OCL_ARG(weights), OCL_ARG(rounds->sums), OCL_ARG(first_block), OCL_ARG(rows),
                    OCL_ARG(stride), OCL_ARG(trials), OCL_ARG(weighted));
}

static enum status enqueue_steps(struct rounds *rounds, enum step step, cl_uint round,
                                 struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < rounds->data->tile_count && status == STATUS_OK; i++)
        status = enqueue_step(rounds, i, step, round, err);
    return status;
}

/* Enqueues the round of seed `seed`. */
static enum status enqueue_round(struct rounds *rounds, cl_uint seed, cl_uint round,
                                 struct error *err)
{
    const struct filter *filter = rounds->filter;
    const cl_uint stride = rounds->data->stride, trials = rounds->draws->trials;
    if (enqueue_steps(rounds, DRAW, round, err) != STATUS_OK ||
        float16_set_candidates(&rounds->shard->assign, rounds->squares, trials, err) != STATUS_OK ||
        enqueue_steps(rounds, EVALUATE, round, err) != STATUS_OK ||
        LANE_RUN(rounds->lane, "seed fold", rounds->fold, filter->width, filter->width, err,
                 OCL_ARG(rounds->sums), OCL_ARG(rounds->upto), OCL_ARG(filter->candidates),
                 OCL_ARG(filter->centroids), OCL_ARG(rounds->chosen), OCL_ARG(rounds->totals),
                 OCL_ARG(rounds->blocks), OCL_ARG(stride), OCL_ARG(trials), OCL_ARG(seed),
                 OCL_ARG(round)) != STATUS_OK)
        return err->status;
    return enqueue_steps(rounds, TAKE, round, err);
}

/* Chooses seeds `from` to `to` - 1 and waits. */
static enum status run_batch(float *centroids, struct rounds *rounds, uint32_t from, uint32_t to,
                             struct error *err)
{
    struct lane *lane = rounds->lane;
    const size_t row = rounds->data->stride * sizeof *centroids;
    for (uint32_t c = from; c < to; c++)
        seed_random(rounds->host_random + (size_t)(c - from) * KMEANS_TRIALS_MAX, rounds->draws, c);
    if (lane_send(lane, "random numbers", rounds->random, 0,
                  (to - from) * KMEANS_TRIALS_MAX * sizeof(double), rounds->host_random,
                  err) != STATUS_OK)
        return err->status;
    for (uint32_t c = from; c < to; c++)
        if (enqueue_round(rounds, c, c - from, err) != STATUS_OK)
            return err->status;
    if (lane_read(lane, "centroids", rounds->filter->centroids, from * row, (to - from) * row,
                  (char *)centroids + from * row, err) != STATUS_OK ||
        lane_read(lane, "totals", rounds->totals, 0, (to - from) * sizeof(double),
                  rounds->host_totals, err) != STATUS_OK)
        return err->status;
    for (uint32_t c = from; c < to && c + 1 < rounds->draws->config->k; c++)
        if (rounds->host_totals[c - from] == 0)
            return seed_too_few(rounds->draws->config->k, c + 1, err);
    return STATUS_OK;
}

enum status seed_on_device(float *centroids, struct shard *shard, const struct seed_tile *tiles,
                           const double *upto, uint64_t blocks, const struct seed_draws *draws,
                           struct error *err)
{
    struct rounds rounds = {.shard = shard,
                            .data = &shard->data,
                            .lane = shard->lane,
                            .filter = &shard->filter,
                            .tiles = tiles,
                            .draws = draws,
                            .blocks = (cl_uint)blocks};
    const uint32_t k = draws->config->k;
    if (draws->from < k && upto[blocks - 1] == 0)
        return seed_too_few(k, draws->from, err);
    enum status status = open_rounds(&rounds, upto, err);
    for (uint32_t from = draws->from, to; from < k && status == STATUS_OK; from = to) {
        to = k - from < BATCH ? k : from + BATCH;
        seed_progress(draws->config, rounds.data->comm, from, k);
        status = lane_check_stop(rounds.lane, err);
        if (status == STATUS_OK)
            status = run_batch(centroids, &rounds, from, to, err);
        if (status == STATUS_OK)
            seed_save(draws->checkpoint, to);
    }
    lane_settle(rounds.lane);
    lane_release(&rounds.held);
    return status;
}
