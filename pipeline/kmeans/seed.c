/* seed.c: the ways to choose initial centroids. */
#include "kmeans/seed.h"
#include "base/held.h"
#include "base/parse.h"
#include "kmeans/canonical.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Streams of random numbers per restart. */
enum { STREAM_PLUSPLUS, STREAM_RANDOM, STREAM_PARALLEL, STREAM_RECLUSTER, STREAMS };

/* The counter at which draws by weight begin, beyond all others of a stream. */
#define DRAWS (1ull << 63)

/* k-means||: minimum number of rounds, and candidates per round and centroid (Bahmani, Moseley,
 * Vattani, Kumar, Vassilvitskii: Scalable k-means++, 2012, use 5 and 2). */
#define PARALLEL_ROUNDS 5
#define OVERSAMPLING    2
/* The same if these would be a quarter of the rows or more: choosing k of so many would take
 * several times as long as iterations do. */
#define OVERSAMPLING_MANY 0.4
/* Rows that a thread draws at a time; a multiple of 64. */
#define DRAW_ROWS 16384

enum status seed_too_few(uint32_t k, uint64_t distinct, struct error *err)
{
    error_set(err, STATUS_FAILED, "k is %u, but there %s only %s; choose a smaller k", k,
              distinct == 1 ? "is" : "are", NUMBER_OF(distinct, "distinct row"));
    error_cause(err, CAUSE_DISTINCT, (int)distinct);
    return STATUS_FAILED;
}

enum status seed_given(float *centroids, const struct data *data,
                       const struct cluster_config *config, struct error *err)
{
    struct transform transform = data->transform;
    transform.what = "given centroid";
    return transform_rows(&transform, data->lane->workers, centroids, config->initial, 0, config->k,
                          err);
}

void seed_progress(const struct cluster_config *config, const struct comm *comm, uint64_t done,
                   uint64_t total)
{
    if (comm->rank == 0)
        watch_show(&config->watch, "first centroids", done, total);
}

/* One of 0 to n - 1, with probability proportional to its weight. */
static uint64_t weighted_choice(const double *weights, uint64_t n, double random)
{
    double total = 0, reached = 0;
    uint64_t last = 0;
    for (uint64_t i = 0; i < n; i++)
        total += weights[i];
    for (uint64_t i = 0; i < n; i++) {
        if (!(weights[i] > 0))
            continue;
        last = i;
        reached += weights[i];
        if (reached > random * total)
            break;
    }
    return last;
}

/* The weights of the rank's rows; *out stays NULL if all count the same. */
static enum status double_weights(double **out, const struct data *data, struct error *err)
{
    const uint64_t n = data->share.rows;
    if (!data->weights.of_row)
        return STATUS_OK;
    *out = malloc(n * sizeof **out);
    if (!*out)
        return error_memory(err, n * sizeof **out, "weights");
    for (uint64_t i = 0; i < n; i++)
        (*out)[i] = (double)data->weights.of_row[i];
    return STATUS_OK;
}

/* --- random ---------------------------------------------------------------------------------- */

/* k of n rows, every set equally likely, in one pass over the row numbers (selection sampling). */
static void sample_rows(uint64_t *rows, const struct data *data,
                        const struct cluster_config *config, uint32_t stream)
{
    const uint32_t k = config->k;
    uint32_t taken = 0;
    for (uint64_t row = 0; taken < k; row++) {
        double left = (double)(data->rows - row);
        if (canonical_random(config->seed, stream, row) * left < (double)(k - taken))
            rows[taken++] = row;
    }
}

/* The block sums of all ranks, initially zero: other ranks contribute zero bits, so that the sum
 * over ranks has the bits of the block's owner. */
static enum status gather_block_sums(double *sums, const struct data *data, const double *weights,
                                     uint64_t blocks, struct error *err)
{
    for (uint64_t i = 0; i < data->share.rows; i++)
        sums[(data->share.first + i) / KMEANS_BLOCK_ROWS] += weights[i];
    return comm_sum(data->comm, (int64_t *)sums, (const int64_t *)sums, blocks, err);
}

/* Takes a row of a block, which lies within one rank; updates the block's sum. */
static enum status take_row(uint64_t *row, double *sum, const struct data *data, double *left,
                            uint64_t block, double random, struct error *err)
{
    const struct data_share *share = &data->share;
    int64_t found[2] = {0, 0}; /* the row, and the bits of the remaining sum */
    const uint64_t first = block * KMEANS_BLOCK_ROWS, at = first - share->first;
    if (at < share->rows) {
        const uint64_t end =
            share->rows - at < KMEANS_BLOCK_ROWS ? share->rows : at + KMEANS_BLOCK_ROWS;
        const uint64_t chosen = at + weighted_choice(left + at, end - at, random);
        double rest = 0;
        left[chosen] = 0;
        for (uint64_t i = at; i < end; i++)
            rest += left[i];
        found[0] = (int64_t)(share->first + chosen);
        memcpy(&found[1], &rest, sizeof rest);
    }
    enum status status = comm_sum(data->comm, found, found, 2, err);
    *row = (uint64_t)found[0];
    memcpy(sum, &found[1], sizeof *sum);
    return status;
}

/* Draws `count` rows one after another, each with a probability proportional to its weight among
 * the remaining ones, using the sums of blocks of rows. weights: of the rank's rows. */
static enum status draw_rows(uint64_t *rows, uint32_t count, const struct data *data,
                             const double *weights, uint64_t seed, uint32_t stream,
                             struct error *err)
{
    const uint64_t blocks = (data->rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    struct lane_held *held = NULL;
    double *left, *sums;
    const struct lane_wanted wanted[] = {HOST(left, data->share.rows), HOST(sums, blocks)};
    enum status status = lane_hold(&held, data->lane, wanted, COUNT_OF(wanted), "random rows", err);
    if (status == STATUS_OK) {
        memcpy(left, weights, data->share.rows * sizeof *left);
        status = gather_block_sums(sums, data, left, blocks, err);
    }
    for (uint32_t taken = 0; taken < count && status == STATUS_OK; taken++) {
        const uint64_t counter = DRAWS + 2 * (uint64_t)taken;
        const uint64_t block =
            weighted_choice(sums, blocks, canonical_random(seed, stream, counter));
        status = take_row(&rows[taken], &sums[block], data, left, block,
                          canonical_random(seed, stream, counter + 1), err);
    }
    lane_release(&held);
    return status;
}

enum status seed_first_row(uint64_t *row, const struct data *data, const double *weights,
                           uint64_t seed, uint32_t stream, struct error *err)
{
    *row = (uint64_t)(canonical_random(seed, stream, 0) * (double)data->rows);
    return weights ? draw_rows(row, 1, data, weights, seed, stream, err) : STATUS_OK;
}

static enum status random_rows(float *centroids, struct shard *shard,
                               const struct cluster_config *config, uint32_t stream,
                               struct error *err)
{
    const uint32_t k = config->k;
    const struct data *data = &shard->data;
    uint64_t *rows = malloc(k * sizeof *rows);
    if (!rows)
        return error_memory(err, k * sizeof *rows, "random rows");
    double *weights = NULL;
    enum status status = double_weights(&weights, data, err);
    if (status == STATUS_OK && weights)
        status = draw_rows(rows, k, data, weights, config->seed, stream, err);
    else if (status == STATUS_OK)
        sample_rows(rows, data, config, stream);
    free(weights);
    if (status == STATUS_OK)
        status = shard_rows(shard, centroids, rows, k, err);
    free(rows);
    return status;
}

/* --- k-means|| ------------------------------------------------------------------------------- */

struct parallel {
    struct shard *shard;
    struct lane_held *held;
    const struct data *data;
    struct filter filter; /* for the candidates, like: */
    struct assign assign;
    float *candidates; /* capacity x stride */
    double *shifts;    /* capacity: infinite for this round's candidates, 0 for others */
    uint64_t *rows;    /* capacity: picked in this round */
    uint32_t count, capacity;
    double *weights;   /* capacity: of the rows nearest to each */
    double *distances; /* of the rank's rows, times their weights */
    int32_t *labels;   /* of the rank's rows */
};

/* Candidates that a round is expected to pick. */
static double candidates_each(const struct data *data, uint32_t k)
{
    const double usual = OVERSAMPLING * (double)k;
    return PARALLEL_ROUNDS * usual < (double)data->rows / 4 ? usual : OVERSAMPLING_MANY * k;
}

static enum status open_parallel(struct parallel *parallel, struct shard *shard, uint32_t k,
                                 struct error *err)
{
    struct data *data = &shard->data;
    *parallel = (struct parallel){.shard = shard, .data = data};
    const double each = candidates_each(data, k);
    double most = 1 + PARALLEL_ROUNDS * (each + 10 * sqrt(each) + 32);
    if (most > (double)data->rows)
        most = (double)data->rows;
    if (most > INT32_MAX / 2)
        return error_memory(err, SIZE_MAX, "candidates of k-means||");
    parallel->capacity = (uint32_t)most;
    const size_t capacity = parallel->capacity, rows = data->share.rows;
    const struct lane_wanted wanted[] = {HOST(parallel->candidates, capacity * data->stride),
                                         HOST(parallel->shifts, capacity),
                                         HOST(parallel->rows, capacity),
                                         HOST(parallel->weights, capacity),
                                         HOST(parallel->distances, rows),
                                         HOST(parallel->labels, rows)};
    if (lane_hold(&parallel->held, shard->lane, wanted, COUNT_OF(wanted), "candidates of k-means||",
                  err) != STATUS_OK)
        return err->status;
    if (filter_open(&parallel->filter, &parallel->held, data, parallel->capacity, err) != STATUS_OK)
        return err->status;
    return assign_open(&parallel->assign, &parallel->held, &parallel->filter, err);
}

/* Computes the distances of the rank's rows to the candidates so far, of which only those with
 * infinite shift are new. */
static enum status measure_rows(struct parallel *parallel, struct error *err)
{
    struct data *data = &parallel->shard->data;
    struct assign *assign = &parallel->assign;
    struct tile *tile;
    bool incremental;
    const bool first = parallel->count == 1;
    enum status status = assign_centroids(assign, &incremental, parallel->candidates,
                                          parallel->count, first ? NULL : parallel->shifts, err);
    if (status == STATUS_OK)
        status = data_begin(data, err);
    while (status == STATUS_OK && (status = data_next(data, &tile, err)) == STATUS_OK) {
        status = assign_tile(assign, tile, incremental, err);
        if (status == STATUS_OK)
            status = assign_tile_distances(assign, tile, parallel->distances + tile->offset, err);
    }
    return data_end(data, status);
}

/* Sums the weights of the rows nearest to each candidate, row by row. */
static void add_nearest(void *context, double *sums)
{
    const struct parallel *parallel = context;
    const float *of_row = parallel->data->weights.of_row;
    for (uint64_t i = 0; i < parallel->data->share.rows; i++)
        sums[parallel->labels[i]] += of_row ? (double)of_row[i] : 1;
}

static void add_distances(void *context, double *sums)
{
    const struct parallel *parallel = context;
    canonical_add_blocks(sums, parallel->distances, parallel->data->share.rows);
}

/* *remaining is the sum of all rows' weighted distances to the candidates. */
static enum status measure_all(struct parallel *parallel, double *remaining, struct error *err)
{
    const float *of_row = parallel->data->weights.of_row;
    if (measure_rows(parallel, err) != STATUS_OK)
        return err->status;
    for (uint64_t i = 0; i < parallel->data->share.rows && of_row; i++)
        parallel->distances[i] *= (double)of_row[i];
    *remaining = 0;
    return comm_fold(parallel->data->comm, remaining, 1, NULL, add_distances, parallel, err);
}

/* The weight of the rows nearest to each candidate, after measure_all. */
static enum status weigh_candidates(struct parallel *parallel, struct error *err)
{
    struct data *data = &parallel->shard->data;
    for (uint32_t i = 0; i < data->tile_count; i++) {
        const struct tile *tile = &data->tiles[i];
        if (fetch_copy(&data->fetch, "labels", tile->labels, tile->rows * sizeof *parallel->labels,
                       parallel->labels + tile->offset, err) != STATUS_OK)
            return err->status;
    }
    return comm_fold(data->comm, parallel->weights, parallel->count, NULL, add_nearest, parallel,
                     err);
}

/* One round's draw from the rank's rows. */
struct draw {
    const struct parallel *parallel;
    const struct cluster_config *config;
    double factor;
    uint64_t round;
    uint32_t stream;
    uint64_t *picked; /* one bit per row */
};

/* Each row has its own random number, so any thread may decide about it. */
static void draw_span(void *context, uint64_t span)
{
    const struct draw *draw = context;
    const struct data *data = draw->parallel->data;
    const double *distances = draw->parallel->distances;
    const uint64_t first = span * DRAW_ROWS, left = data->share.rows - first;
    const uint64_t end = first + (left < DRAW_ROWS ? left : DRAW_ROWS);
    const uint64_t counter = draw->round * data->rows + data->share.first;
    for (uint64_t i = first; i < end; i++)
        if (canonical_random(draw->config->seed, draw->stream, counter + i) <
            draw->factor * distances[i])
            draw->picked[i / 64] |= (uint64_t)1 << i % 64;
}

/* The rank's rows that a round picks, in order, as many as fit. */
static enum status pick_own_rows(uint64_t *count, uint64_t *rows, const struct draw *draw,
                                 struct error *err)
{
    const struct parallel *parallel = draw->parallel;
    const struct data_share *share = &parallel->data->share;
    const uint32_t room = parallel->capacity - parallel->count;
    const uint64_t spans = (share->rows + DRAW_ROWS - 1) / DRAW_ROWS, words = DRAW_ROWS / 64;
    struct draw own = *draw;
    own.picked = calloc(spans * words, sizeof *own.picked);
    if (!own.picked)
        return error_memory(err, spans * words * sizeof *own.picked, "candidates of k-means||");
    workers_run(parallel->data->lane->workers, draw_span, &own, spans);
    *count = 0;
    for (uint64_t word = 0; word < spans * words; word++)
        for (uint64_t bits = own.picked[word]; bits && *count < room; bits &= bits - 1)
            rows[(*count)++] = share->first + word * 64 + (uint64_t)__builtin_ctzll(bits);
    free(own.picked);
    return STATUS_OK;
}

/* The first of the rank's rows with the greatest distance. */
static uint64_t farthest_own_row(const struct parallel *parallel)
{
    uint64_t farthest = 0;
    for (uint64_t i = 1; i < parallel->data->share.rows; i++)
        if (parallel->distances[i] > parallel->distances[farthest])
            farthest = i;
    return farthest;
}

/* Picks rows for one round, in order, as many as fit; at least the farthest row. */
static enum status pick_rows(uint32_t *picked, struct parallel *parallel, double remaining,
                             uint64_t round, const struct cluster_config *config, uint32_t stream,
                             struct error *err)
{
    struct comm *comm = parallel->data->comm;
    const struct draw draw = {.parallel = parallel,
                              .config = config,
                              .factor = candidates_each(parallel->data, config->k) / remaining,
                              .round = round,
                              .stream = stream};
    const uint32_t room = parallel->capacity - parallel->count;
    SCOPED_HELD held = {0};
    struct pick {
        uint64_t count, farthest;
        double distance; /* of the farthest row */
    } *picks = held_array(&held, comm->size, sizeof *picks), *own;
    size_t *ends = held_array(&held, comm->size, sizeof *ends);
    uint64_t *rows = held_array(&held, room + 1ull, sizeof *rows);
    *picked = 0;
    if (held_check(&held, "candidates of k-means||", err) != STATUS_OK)
        return err->status;
    own = &picks[comm->rank];
    if (pick_own_rows(&own->count, rows, &draw, err) != STATUS_OK)
        return err->status;
    if (own->count == 0) { /* used only if no rank picks any */
        const uint64_t farthest = farthest_own_row(parallel);
        own->farthest = parallel->data->share.first + farthest;
        own->distance = parallel->distances[farthest];
    }
    if (comm_gather_each(comm, picks, sizeof *picks, err) != STATUS_OK)
        return err->status;
    uint64_t total = 0;
    uint32_t best = 0;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        total += picks[rank].count;
        ends[rank] = total * sizeof *rows;
        best = picks[rank].distance > picks[best].distance ? rank : best;
    }
    uint64_t *all = held_array(&held, total, sizeof *all);
    if (held_check(&held, "candidates of k-means||", err) != STATUS_OK)
        return err->status;
    memcpy((char *)all + ends[comm->rank] - own->count * sizeof *all, rows,
           own->count * sizeof *all);
    if (comm_gather(comm, all, ends, err) != STATUS_OK)
        return err->status;
    *picked = total < room ? (uint32_t)total : room;
    memcpy(parallel->rows, all, *picked * sizeof *all);
    if (*picked == 0 && room > 0)
        parallel->rows[(*picked)++] = picks[best].farthest;
    return STATUS_OK;
}

static enum status gather_candidates(struct parallel *parallel, const struct cluster_config *config,
                                     uint32_t stream, struct error *err)
{
    const struct data *data = parallel->data;
    const size_t stride = data->stride;
    double remaining = 0;
    double *weights = NULL;
    enum status status = double_weights(&weights, data, err);
    if (status == STATUS_OK)
        status = seed_first_row(parallel->rows, data, weights, config->seed, stream, err);
    free(weights);
    if (status == STATUS_OK)
        status = shard_rows(parallel->shard, parallel->candidates, parallel->rows, 1, err);
    parallel->count = 1;
    if (status == STATUS_OK)
        status = measure_all(parallel, &remaining, err);
    for (uint64_t round = 1; status == STATUS_OK; round++) {
        if (remaining == 0 && parallel->count < config->k)
            return seed_too_few(config->k, parallel->count, err);
        if (remaining == 0 || parallel->count == parallel->capacity ||
            (round > PARALLEL_ROUNDS && parallel->count >= config->k))
            break;
        uint32_t picked;
        status = pick_rows(&picked, parallel, remaining, round, config, stream, err);
        if (status != STATUS_OK)
            break;
        for (uint32_t i = 0; i < parallel->count + picked; i++)
            parallel->shifts[i] = i < parallel->count ? 0 : INFINITY;
        status = shard_rows(parallel->shard, parallel->candidates + parallel->count * stride,
                            parallel->rows, picked, err);
        parallel->count += picked;
        if (status == STATUS_OK)
            status = measure_all(parallel, &remaining, err);
        seed_progress(config, data->comm, parallel->count, 0);
    }
    return status == STATUS_OK ? weigh_candidates(parallel, err) : status;
}

/* Reads the candidates as a matrix. */
static enum status read_candidates(void *context, uint64_t first, uint64_t count, float *rows,
                                   struct error *err)
{
    (void)err;
    const struct parallel *parallel = context;
    const size_t stride = parallel->data->stride, dimension = parallel->data->dimension;
    for (uint64_t i = 0; i < count; i++)
        memcpy(rows + i * dimension, parallel->candidates + (first + i) * stride,
               dimension * sizeof *rows);
    return STATUS_OK;
}

/* Rank 0 chooses k candidates by k-means++ for all ranks, each weighted by its nearest rows. */
static enum status recluster(float *centroids, struct parallel *parallel,
                             const struct cluster_config *config, uint32_t stream,
                             struct error *err)
{
    struct cluster_config as_is = *config;
    as_is.metric = METRIC_EUCLIDEAN; /* they are already in the metric's space */
    as_is.weights = NULL;            /* the candidates' weights are passed separately */
    as_is.watch.show = NULL;
    const struct matrix_source source = {.rows = parallel->count,
                                         .dimension = parallel->data->dimension,
                                         .read = read_candidates,
                                         .context = parallel};
    struct comm *comm = parallel->data->comm, alone = {.size = 1};
    const struct rank first = {&alone, parallel->shard->lane, &source};
    struct shard shard = {0};
    enum status status = STATUS_OK;
    if (comm->rank == 0) {
        status = shard_open(&shard, &first, &as_is, err);
        if (status == STATUS_OK)
            status =
                seed_plus_plus(centroids, &shard, parallel->weights, config, stream, NULL, err);
        shard_close(&shard);
    }
    return status == STATUS_OK
               ? comm_broadcast(comm, centroids,
                                (size_t)config->k * parallel->data->stride * sizeof *centroids, 0,
                                err)
               : status;
}

static enum status parallel_rows(float *centroids, struct shard *shard,
                                 const struct cluster_config *config, uint32_t stream,
                                 struct error *err)
{
    struct parallel parallel;
    enum status status = open_parallel(&parallel, shard, config->k, err);
    if (status == STATUS_OK)
        status = gather_candidates(&parallel, config, stream + STREAM_PARALLEL, err);
    if (status == STATUS_OK)
        status = recluster(centroids, &parallel, config, stream + STREAM_RECLUSTER, err);
    lane_settle(shard->lane);
    lane_release(&parallel.held);
    return status;
}

enum status seed_centroids(float *centroids, struct shard *shard,
                           const struct cluster_config *config, uint32_t run,
                           struct checkpoint *checkpoint, struct error *err)
{
    const uint32_t stream = run * STREAMS;
    if (config->init == INIT_RANDOM)
        return random_rows(centroids, shard, config, stream + STREAM_RANDOM, err);
    if (config->init == INIT_KMEANS_PARALLEL)
        return parallel_rows(centroids, shard, config, stream, err);
    double *weights = NULL;
    enum status status = double_weights(&weights, &shard->data, err);
    if (status == STATUS_OK)
        status = seed_plus_plus(centroids, shard, weights, config, stream + STREAM_PLUSPLUS,
                                checkpoint, err);
    free(weights);
    return status;
}
