/* seed_device.c: rounds of greedy k-means++ that do not leave the device. Each has three launches for a tile:
 *
 *   seed_take    rows get their distance to the last seed, and the candidates are drawn and laid out
 *   seed_half    the rows that may be nearer to a candidate, in float16
 *   seed_exact   their distances, sums in order, and, by the last work-group, the choice
 *
 * Their arguments do not change, as the device counts the rounds; the host waits once in a batch. Once the rows
 * that each candidate can bring nearer are listed (kmeans_lists.cl), a single launch does all rounds of a batch,
 * or those before one that needs the three. */
#include "kmeans/seed.h"
#include <math.h>

/* Rounds after which the host can stop: of three launches each, and of one for all. */
#define ROUNDS_LAUNCHED 64
#define BATCH           KMEANS_SEED_BATCH

/* Lists are made once a seed has at most this many rows on average, which is also what a candidate
 * can bring nearer if rows and seeds are much alike; they hold at most MOST times the rows. */
#define ROWS_EACH 256
#define MOST      1024
/* Making them takes about as long as one round for this many rows. */
#define ROWS_ROUND 64
/* Bytes of a row while they are made, besides its float16 copy. */
#define BESIDE_ROW 64

enum step { TAKE, FILTER, EXACT, STEPS };

/* For each row, the rows that it can bring nearer to their seeds, in device memory. */
struct lists {
    bool made;
    uint32_t due; /* the number of seeds from which on it is worthwhile; 0: not known yet */
    cl_kernel choose, copy;
    cl_mem ends, listed, apart, seeds;
};

struct rounds {
    struct shard *shard;
    struct data *data;
    struct lane *lane;
    struct filter *filter;
    struct lane_held *held;
    const struct seed_tile *tiles;
    const struct seed_draws *draws;
    struct seed_launch *launches; /* STEPS x tiles */
    struct float16_candidates candidates;
    struct lists lists;
    /* random: KMEANS_TRIALS_MAX for each round of a batch; totals: what remains after it; state: KMEANS_SEED_STATE
     * values; sums and upto: blocks x KMEANS_TRIALS_MAX, what would remain in each, and in all up to it. */
    cl_mem random, totals, state, sums, upto;
    double *host_random, *host_totals, *host_upto;
    cl_uint blocks, groups; /* groups: of a round's launches of seed_exact */
};

static struct seed_launch *launch_of(const struct rounds *rounds, enum step step, uint32_t tile)
{
    return &rounds->launches[step * rounds->data->tile_count + tile];
}

/* trials: 0 draws none, so that rows only get their distance to the last seed. */
static enum status take_args(const struct rounds *rounds, uint32_t i, cl_uint trials,
                             struct error *err)
{
    const struct filter *filter = rounds->filter;
    const struct seed_tile *own = &rounds->tiles[i];
    const struct tile *tile = &rounds->data->tiles[i];
    const struct float16_candidates *candidates = &rounds->candidates;
    const cl_uint first_block = (cl_uint)(tile->offset / KMEANS_BLOCK_ROWS), rows = tile->rows;
    const cl_uint stride = rounds->data->stride, weighted = own->weights ? 1 : 0;
    const cl_mem weights = own->weights ? own->weights : own->distances;
    const cl_double scale = ldexp(1.0, -2 * filter->exponent);
    struct seed_launch *take = launch_of(rounds, TAKE, i);
    take->items = (trials + seed_groups(rows, 1)) * take->group;
    return ocl_args(take->kernel, err, OCL_ARG(tile->x), OCL_ARG(filter->centroids),
                    OCL_ARG(own->mask), OCL_ARG(filter->centre_buffer), OCL_ARG(rounds->state),
                    OCL_ARG(rounds->upto), OCL_ARG(rounds->random), OCL_ARG(weights),
                    OCL_ARG(own->distances), OCL_ARG(own->thresholds), OCL_ARG(filter->candidates),
                    OCL_ARG(candidates->values), OCL_ARG(candidates->starts),
                    OCL_ARG(rounds->blocks), OCL_ARG(first_block), OCL_ARG(rows), OCL_ARG(stride),
                    OCL_ARG(candidates->columns), OCL_ARG(trials), OCL_ARG(weighted),
                    OCL_ARG(scale), OCL_ARG(candidates->terms), OCL_ARGS_END);
}

static enum status open_launches(struct rounds *rounds, uint32_t i, struct error *err)
{
    struct assign *assign = &rounds->shard->assign;
    const struct seed_tile *own = &rounds->tiles[i];
    struct tile *tile = &rounds->data->tiles[i];
    const cl_uint first_block = (cl_uint)(tile->offset / KMEANS_BLOCK_ROWS), rows = tile->rows;
    const cl_uint stride = rounds->data->stride, trials = rounds->draws->trials;
    const cl_uint weighted = own->weights ? 1 : 0;
    const cl_mem weights = own->weights ? own->weights : own->distances;
    const size_t group = rounds->filter->width;
    struct seed_launch *take = launch_of(rounds, TAKE, i), *exact = launch_of(rounds, EXACT, i);
    const struct lane_wanted wanted[] = {
        KERNEL(take->kernel, "kmeans_exact", assign->exact.options, "seed_take"),
        KERNEL(exact->kernel, "kmeans_exact", assign->exact.options, "seed_exact")};
    if (float16_open_filter(launch_of(rounds, FILTER, i), &rounds->held, assign, tile,
                            own->thresholds, own->mask, err) != STATUS_OK ||
        lane_hold(&rounds->held, rounds->lane, wanted, COUNT_OF(wanted), "seeding", err) !=
            STATUS_OK)
        return err->status;
    take->tag = "seed take";
    exact->tag = "seed exact";
    exact->items = seed_groups(rows, trials) * group;
    take->group = exact->group = group;
    if (take_args(rounds, i, trials, err) != STATUS_OK)
        return err->status;
    return ocl_args(exact->kernel, err, OCL_ARG(tile->x), OCL_ARG(rounds->filter->candidates),
                    OCL_ARG(own->mask), OCL_ARG(own->distances), OCL_ARG(weights),
                    OCL_ARG(rounds->sums), OCL_ARG(rounds->upto),
                    OCL_ARG(rounds->filter->centroids), OCL_ARG(rounds->state),
                    OCL_ARG(rounds->totals), OCL_ARG(first_block), OCL_ARG(rows), OCL_ARG(stride),
                    OCL_ARG(trials), OCL_ARG(weighted), OCL_ARG(rounds->groups),
                    OCL_ARG(rounds->blocks), OCL_ARGS_END);
}

/* Gives rows their distance to the last seed. */
static enum status take_last(struct rounds *rounds, struct error *err)
{
    const struct seed_launch *take = launch_of(rounds, TAKE, 0);
    if (take_args(rounds, 0, 0, err) != STATUS_OK ||
        lane_launch(rounds->lane, take->tag, take->kernel, take->items, take->group, err) !=
            STATUS_OK)
        return err->status;
    return take_args(rounds, 0, rounds->draws->trials, err);
}

/* --- lists ----------------------------------------------------------------------------------- */

/* Whether to list rows now that there are `seeds` seeds: if it saves more time than it takes. */
static bool lists_due(struct rounds *rounds, uint32_t seeds)
{
    struct lists *lists = &rounds->lists;
    const uint64_t rows = rounds->data->rows, left = rounds->draws->config->k - seeds;
    if (lists->made || rounds->data->tile_count != 1 ||
        rows > KMEANS_LISTED_BLOCKS * (uint64_t)KMEANS_BLOCK_ROWS ||
        rounds->lane->device->max_work_group < KMEANS_LISTED_ITEMS)
        return false;
    if (lists->due == 0)
        lists->due = rows > ROWS_EACH ? (uint32_t)(rows / ROWS_EACH) : 1;
    return seeds >= lists->due && left > rows / ROWS_ROUND;
}

/* Turns the lengths of lists into where each begins; *total is that of all. */
static enum status place_lists(uint64_t *total, const struct rounds *rounds, struct error *err)
{
    struct lane *lane = rounds->lane;
    const uint32_t rows = rounds->data->tiles[0].rows;
    struct lane_held *held = NULL;
    cl_uint *host;
    const struct lane_wanted wanted = HOST(host, rows);
    const size_t bytes = rows * sizeof *host;
    enum status status = lane_hold(&held, lane, &wanted, 1, "seeding", err);
    if (status == STATUS_OK)
        status = lane_read(lane, "lengths of lists", rounds->lists.ends, 0, bytes, host, err);
    *total = 0;
    for (uint32_t i = 0; i < rows && status == STATUS_OK; i++) {
        const cl_uint length = host[i];
        host[i] = (cl_uint)*total;
        *total += length;
    }
    if (status == STATUS_OK)
        status = lane_write(lane, "ends of lists", rounds->lists.ends, 0, bytes, host, err);
    lane_release(&held);
    return status;
}

/* Lists what each row can bring nearer, if there is room for it: lists.made. */
static enum status list_rows(struct rounds *rounds, struct float16_pairs *pairs, cl_kernel lengths,
                             cl_kernel distances, struct error *err)
{
    struct lane *lane = rounds->lane;
    struct lists *lists = &rounds->lists;
    struct assign *assign = &rounds->shard->assign;
    struct tile *tile = rounds->data->tiles;
    const cl_mem apart = rounds->tiles[0].distances;
    const cl_uint rows = tile->rows, stride = rounds->data->stride, none = 0;
    const cl_double scale = ldexp(1.0, -2 * rounds->filter->exponent);
    const uint64_t copy = (uint64_t)rows * (stride * sizeof(float) + BESIDE_ROW);
    uint64_t total;
    if (LANE_RUN(lane, "list lengths", lengths, (uint64_t)rows * KMEANS_LANES, KMEANS_OWN_ITEMS,
                 err, OCL_ARG(tile->x), OCL_ARG(rounds->filter->centre_buffer), OCL_ARG(apart),
                 OCL_ARG(pairs->squares), OCL_ARG(pairs->limits), OCL_ARG(pairs->panels.ids),
                 OCL_ARG(rows), OCL_ARG(stride), OCL_ARG(scale)) != STATUS_OK ||
        float16_lay_out_pairs(pairs, assign, tile, apart, err) != STATUS_OK ||
        lane_fill(lane, "zero counts", lists->ends, 0, 0, rows * sizeof(cl_uint), err) !=
            STATUS_OK ||
        float16_list_pairs(pairs, assign, tile, pairs->panels.ids, lists->ends, none, err) !=
            STATUS_OK ||
        place_lists(&total, rounds, err) != STATUS_OK)
        return err->status;
    const uint64_t each = sizeof(cl_uint) + sizeof(double);
    const uint64_t allocation = lane->device->max_allocation;
    if (total > (uint64_t)rows * MOST || (allocation > 0 && total > allocation / sizeof(double)) ||
        !data_has_room(rounds->data, 0, copy + total * each))
        return STATUS_OK;
    const cl_uint room = (cl_uint)total;
    const struct lane_wanted wanted[] = {BUFFER(lists->listed, total * sizeof(cl_uint)),
                                         BUFFER(lists->apart, total * sizeof(double))};
    if (lane_hold(&rounds->held, lane, wanted, COUNT_OF(wanted), "seeding", err) != STATUS_OK ||
        float16_list_pairs(pairs, assign, tile, lists->listed, lists->ends, room, err) != STATUS_OK)
        return err->status;
    lists->made = true;
    return LANE_RUN(lane, "list distances", distances, (uint64_t)rows * KMEANS_OWN_ITEMS,
                    KMEANS_OWN_ITEMS, err, OCL_ARG(tile->x), OCL_ARG(lists->ends),
                    OCL_ARG(lists->listed), OCL_ARG(lists->apart), OCL_ARG(stride));
}

/* Makes lists of what is left to do, now that there are `seeds` seeds, if it pays and there is room. */
static enum status make_lists(struct rounds *rounds, uint32_t seeds, struct error *err)
{
    struct lane *lane = rounds->lane;
    struct lists *lists = &rounds->lists;
    const struct data *data = rounds->data;
    const struct tile *tile = data->tiles;
    struct lane_held *held = NULL;
    struct float16_pairs pairs;
    cl_kernel lengths, distances;
    if (!lists_due(rounds, seeds))
        return STATUS_OK;
    lists->due = lists->due > UINT32_MAX / 2 ? UINT32_MAX : 2 * lists->due;
    if (!data_has_room(data, 0, (uint64_t)tile->rows * (data->stride * sizeof(float) + BESIDE_ROW)))
        return STATUS_OK;
    if (take_last(rounds, err) != STATUS_OK)
        return err->status;
    const struct lane_wanted to_make[] = {KERNEL(lengths, "kmeans_lists", "", "list_lengths"),
                                          KERNEL(distances, "kmeans_lists", "", "list_distances")};
    const struct lane_wanted to_keep[] = {KERNEL(lists->choose, "kmeans_lists", "", "seed_listed"),
                                          KERNEL(lists->copy, "kmeans_lists", "", "copy_seeds"),
                                          BUFFER(lists->seeds, BATCH * sizeof(cl_uint)),
                                          BUFFER(lists->ends, tile->rows * sizeof(cl_uint))};
    enum status status = lane_hold(&held, lane, to_make, COUNT_OF(to_make), "seeding", err);
    if (status == STATUS_OK && !lists->choose)
        status = lane_hold(&rounds->held, lane, to_keep, COUNT_OF(to_keep), "seeding", err);
    if (status == STATUS_OK)
        status = float16_open_pairs(&pairs, &held, &rounds->shard->assign, tile, err);
    if (status == STATUS_OK)
        status = list_rows(rounds, &pairs, lengths, distances, err);
    lane_settle(lane);
    lane_release(&held);
    return status;
}

/* Enqueues the choice of seeds `from` to `to` - 1, up to the first one that takes a round of launches: the state
 * has how many there are then. */
static enum status launch_listed(const struct rounds *rounds, uint32_t from, uint32_t to,
                                 struct error *err)
{
    const struct lists *lists = &rounds->lists;
    const struct seed_tile *own = rounds->tiles;
    const struct tile *tile = rounds->data->tiles;
    const cl_uint rows = tile->rows, stride = rounds->data->stride, trials = rounds->draws->trials;
    const cl_uint weighted = own->weights ? 1 : 0, seed = from, count = to - from;
    const cl_mem weights = own->weights ? own->weights : own->distances;
    if (LANE_RUN(rounds->lane, "seed listed", lists->choose, KMEANS_LISTED_ITEMS,
                 KMEANS_LISTED_ITEMS, err, OCL_ARG(rounds->random), OCL_ARG(weights),
                 OCL_ARG(lists->ends), OCL_ARG(lists->listed), OCL_ARG(lists->apart),
                 OCL_ARG(own->distances), OCL_ARG(rounds->upto), OCL_ARG(rounds->totals),
                 OCL_ARG(lists->seeds), OCL_ARG(rounds->state), OCL_ARG(rows), OCL_ARG(trials),
                 OCL_ARG(weighted), OCL_ARG(seed), OCL_ARG(count)) != STATUS_OK)
        return err->status;
    return LANE_RUN(rounds->lane, "copy seeds", lists->copy, (uint64_t)count * KMEANS_OWN_ITEMS,
                    KMEANS_OWN_ITEMS, err, OCL_ARG(tile->x), OCL_ARG(lists->seeds),
                    OCL_ARG(rounds->state), OCL_ARG(rounds->filter->centroids), OCL_ARG(stride),
                    OCL_ARG(seed));
}

/* --- batches --------------------------------------------------------------------------------- */

static enum status open_rounds(struct rounds *rounds, const double *upto, struct error *err)
{
    struct lane *lane = rounds->lane;
    const struct data *data = rounds->data;
    const size_t all = (size_t)rounds->blocks * KMEANS_TRIALS_MAX;
    const size_t random = BATCH * KMEANS_TRIALS_MAX;
    const cl_uint state[KMEANS_SEED_STATE] = {
        [KMEANS_CHOSEN] = KMEANS_NONE, [KMEANS_SEEDS] = rounds->draws->from, [KMEANS_DONE] = 0};
    const struct lane_wanted wanted[] = {BUFFER(rounds->random, random * sizeof(double)),
                                         BUFFER(rounds->sums, all * sizeof(double)),
                                         BUFFER(rounds->upto, all * sizeof(double)),
                                         BUFFER(rounds->state, sizeof state),
                                         BUFFER(rounds->totals, BATCH * sizeof(double)),
                                         HOST(rounds->launches, STEPS * data->tile_count),
                                         HOST(rounds->host_upto, all),
                                         HOST(rounds->host_random, random),
                                         HOST(rounds->host_totals, BATCH)};
    if (lane_hold(&rounds->held, lane, wanted, COUNT_OF(wanted), "seeding", err) != STATUS_OK)
        return err->status;
    for (size_t b = 0; b < rounds->blocks; b++)
        rounds->host_upto[b * KMEANS_TRIALS_MAX] = upto[b];
    if (lane_write(lane, "seed sums", rounds->upto, 0, all * sizeof(double), rounds->host_upto,
                   err) != STATUS_OK ||
        lane_write(lane, "seeds", rounds->state, 0, sizeof state, state, err) != STATUS_OK ||
        float16_open_candidates(&rounds->candidates, &rounds->shard->assign, err) != STATUS_OK)
        return err->status;
    for (uint32_t i = 0; i < data->tile_count; i++)
        rounds->groups += seed_groups(data->tiles[i].rows, rounds->draws->trials);
    for (uint32_t i = 0; i < data->tile_count; i++)
        if (open_launches(rounds, i, err) != STATUS_OK)
            return err->status;
    return STATUS_OK;
}

/* Chooses seeds `from` to *to - 1 and waits; by lists *to may become less. */
static enum status run_batch(float *centroids, struct rounds *rounds, uint32_t from, uint32_t *to,
                             bool listed, struct error *err)
{
    struct lane *lane = rounds->lane;
    const size_t row = rounds->data->stride * sizeof *centroids;
    const uint32_t launches = STEPS * rounds->data->tile_count;
    cl_uint state[KMEANS_SEED_STATE];
    for (uint32_t c = from; c < *to; c++)
        seed_random(rounds->host_random + (size_t)(c % BATCH) * KMEANS_TRIALS_MAX, rounds->draws,
                    c);
    if (lane_send(lane, "random numbers", rounds->random, 0,
                  BATCH * KMEANS_TRIALS_MAX * sizeof(double), rounds->host_random,
                  err) != STATUS_OK)
        return err->status;
    for (uint32_t i = 0; i < (*to - from) * launches && !listed; i++) {
        const struct seed_launch *launch = &rounds->launches[i % launches];
        if (lane_launch(lane, launch->tag, launch->kernel, launch->items, launch->group, err) !=
            STATUS_OK)
            return err->status;
    }
    if (listed) {
        if (launch_listed(rounds, from, *to, err) != STATUS_OK ||
            lane_read(lane, "seeds", rounds->state, 0, sizeof state, state, err) != STATUS_OK)
            return err->status;
        *to = state[KMEANS_SEEDS];
    }
    if (*to == from)
        return STATUS_OK;
    if (lane_read(lane, "centroids", rounds->filter->centroids, from * row, (*to - from) * row,
                  (char *)centroids + from * row, err) != STATUS_OK ||
        lane_read(lane, "totals", rounds->totals, 0, BATCH * sizeof(double), rounds->host_totals,
                  err) != STATUS_OK)
        return err->status;
    for (uint32_t c = from; c < *to && c + 1 < rounds->draws->config->k; c++)
        if (rounds->host_totals[c % BATCH] == 0)
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
    bool alone = false; /* the next round takes launches of its own, although there are lists */
    if (draws->from < k && upto[blocks - 1] == 0)
        return seed_too_few(k, draws->from, err);
    enum status status = open_rounds(&rounds, upto, err);
    for (uint32_t from = draws->from, to; from < k && status == STATUS_OK; from = to) {
        seed_progress(draws->config, rounds.data->comm, from, k);
        status = lane_check_stop(rounds.lane, err);
        if (status == STATUS_OK)
            status = make_lists(&rounds, from, err);
        const struct lists *lists = &rounds.lists;
        const bool listed = lists->made && !alone;
        const uint32_t most = listed ? BATCH : alone ? 1 : ROUNDS_LAUNCHED;
        to = k - from < most ? k : from + most;
        if (!lists->made && from < lists->due && lists->due < to)
            to = lists->due;
        const uint32_t wanted = to;
        if (status == STATUS_OK)
            status = run_batch(centroids, &rounds, from, &to, listed, err);
        if (status == STATUS_OK && alone)
            status = take_last(&rounds, err);
        alone = to < wanted;
        if (status == STATUS_OK)
            seed_save(draws->checkpoint, to);
    }
    lane_settle(rounds.lane);
    lane_release(&rounds.held);
    return status;
}
