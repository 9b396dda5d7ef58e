/* seed.c: the ways to first centroids. */
#include "cluster/seed.h"
#include "cluster/canonical.h"
#include "cluster/seed_pass.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Streams of random numbers: this many for each restart. */
enum { STREAM_PLUSPLUS, STREAM_RANDOM, STREAM_PARALLEL, STREAM_RECLUSTER, STREAMS };

/* k-means||: rounds at least, and candidates a round for each centroid (Bahmani, Moseley, Vattani,
 * Kumar, Vassilvitskii: Scalable k-means++, 2012, take 5 and 2). */
#define PARALLEL_ROUNDS 5
#define OVERSAMPLING    2

static enum status too_few(uint32_t k, uint64_t distinct, struct error *err)
{
    return error_set(err, STATUS_FAILED,
                     "k is %u, and there are only %llu distinct rows; choose a smaller k", k,
                     (unsigned long long)distinct);
}

enum status seed_given(float *centroids, const struct data *data,
                       const struct cluster_config *config, struct error *err)
{
    struct transform transform = data->transform;
    transform.what = "given centroid";
    return transform_rows(&transform, data->lane->workers, centroids, config->initial, 0, config->k,
                          err);
}

static void tell_progress(const struct cluster_config *config, uint64_t done, uint64_t total)
{
    if (config->phase)
        config->phase(config->progress_context, "first centroids", done, total);
}

/* One of n numbers from 0 on, with a chance proportional to its weight. */
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

static uint64_t first_row(const struct data *data, const double *weights, double random)
{
    return weights ? weighted_choice(weights, data->rows, random)
                   : (uint64_t)(random * (double)data->rows);
}

/* The weights of the rows; *out stays NULL where all count the same. */
static enum status double_weights(double **out, const struct data *data, struct error *err)
{
    if (!data->weights.of_row)
        return STATUS_OK;
    *out = malloc(data->rows * sizeof **out);
    if (!*out)
        return error_memory(err, data->rows * sizeof **out, "weights");
    for (uint64_t i = 0; i < data->rows; i++)
        (*out)[i] = (double)data->weights.of_row[i];
    return STATUS_OK;
}

/* --- random ---------------------------------------------------------------------------------- */

/* k of n rows, each set equally likely, in one walk over the row numbers (selection sampling). */
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

/* k rows one after another, each with a chance proportional to its weight among those that are
 * left; by the sums of blocks of rows. */
static enum status draw_rows(uint64_t *rows, const struct data *data,
                             const struct cluster_config *config, uint32_t stream,
                             struct error *err)
{
    const uint64_t n = data->rows, blocks = (n + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    double *left = malloc(n * sizeof *left), *sums = calloc(blocks, sizeof *sums);
    enum status status = STATUS_OK;
    if (!left || !sums)
        status = error_memory(err, n * sizeof *left, "random rows");
    for (uint64_t i = 0; i < n && status == STATUS_OK; i++) {
        left[i] = (double)data->weights.of_row[i];
        sums[i / KMEANS_BLOCK_ROWS] += left[i];
    }
    for (uint32_t taken = 0; taken < config->k && status == STATUS_OK; taken++) {
        const uint64_t block = weighted_choice(
            sums, blocks, canonical_random(config->seed, stream, 2 * (uint64_t)taken));
        const uint64_t first = block * KMEANS_BLOCK_ROWS;
        const uint64_t count = n - first < KMEANS_BLOCK_ROWS ? n - first : KMEANS_BLOCK_ROWS;
        rows[taken] = first + weighted_choice(
                                  left + first, count,
                                  canonical_random(config->seed, stream, 2 * (uint64_t)taken + 1));
        left[rows[taken]] = 0;
        sums[block] = 0;
        for (uint64_t i = first; i < first + count; i++)
            sums[block] += left[i];
    }
    free(left);
    free(sums);
    return status;
}

static enum status random_rows(float *centroids, struct shards *shards,
                               const struct cluster_config *config, uint32_t stream,
                               struct error *err)
{
    const uint32_t k = config->k;
    const struct data *data = &shards->shard[0].data;
    uint64_t *rows = malloc(k * sizeof *rows);
    if (!rows)
        return error_memory(err, k * sizeof *rows, "random rows");
    enum status status = STATUS_OK;
    if (data->weights.of_row)
        status = draw_rows(rows, data, config, stream, err);
    else
        sample_rows(rows, data, config, stream);
    if (status == STATUS_OK)
        status = shards_rows(shards, centroids, rows, k, err);
    free(rows);
    return status;
}

/* --- k-means++ ------------------------------------------------------------------------------- */

static uint32_t trials_for(uint32_t k)
{
    uint32_t trials = 2 + (uint32_t)log((double)k);
    return trials < KMEANS_TRIALS_MAX ? trials : KMEANS_TRIALS_MAX;
}

static void keep_seeds(struct checkpoint *checkpoint, uint32_t seeds)
{
    checkpoint->run.seeds = seeds;
    if (checkpoint_due(checkpoint))
        checkpoint_save(checkpoint);
}

/* Greedy k-means++: of 2 + floor(ln k) rows drawn in proportion to weight and squared distance, the
 * one that leaves least is taken (ties to the first). */
static enum status plus_plus(float *centroids, struct shards *shards, const double *weights,
                             const struct cluster_config *config, uint32_t stream,
                             struct checkpoint *checkpoint, struct error *err)
{
    const struct data *data = &shards->shard[0].data;
    const uint32_t k = config->k, trials = trials_for(k);
    const uint32_t before = checkpoint ? checkpoint->run.seeds : 0;
    const size_t stride = data->stride;
    struct seeding seeding = {0};
    uint64_t rows[KMEANS_TRIALS_MAX];
    float *candidates = malloc(KMEANS_TRIALS_MAX * stride * sizeof *candidates);
    enum status status =
        candidates ? STATUS_OK : error_memory(err, KMEANS_TRIALS_MAX * stride * 4, "seeding");
    if (status == STATUS_OK)
        status = seeding_open(&seeding, shards, weights, err);
    rows[0] = first_row(data, weights, canonical_random(config->seed, stream, 0));
    if (status == STATUS_OK && before == 0)
        status = shards_rows(shards, centroids, rows, 1, err);
    if (status == STATUS_OK)
        status = seeding_restore(&seeding, centroids, before > 0 ? before : 1, err);
    for (uint32_t c = before > 0 ? before : 1; c < k && status == STATUS_OK; c++) {
        double remaining[KMEANS_TRIALS_MAX];
        uint64_t counter = 1 + (uint64_t)(c - 1) * trials;
        tell_progress(config, c, k);
        if (seeding_remaining(&seeding) == 0) {
            status = too_few(k, c, err);
            break;
        }
        for (uint32_t t = 0; t < trials && status == STATUS_OK; t++)
            status = seeding_draw(&rows[t], &seeding,
                                  canonical_random(config->seed, stream, counter++), err);
        if (status == STATUS_OK)
            status = shards_rows(shards, candidates, rows, trials, err);
        if (status == STATUS_OK)
            status = seeding_evaluate(&seeding, remaining, candidates, trials, err);
        uint32_t best = 0;
        for (uint32_t t = 1; t < trials && status == STATUS_OK; t++)
            if (remaining[t] < remaining[best])
                best = t;
        if (status == STATUS_OK)
            status = seeding_take(&seeding, candidates, best, err);
        if (status == STATUS_OK)
            memcpy(centroids + c * stride, candidates + best * stride, stride * sizeof *centroids);
        if (status == STATUS_OK && checkpoint)
            keep_seeds(checkpoint, c + 1);
    }
    shards_settle(shards);
    seeding_close(&seeding);
    free(candidates);
    return status;
}

/* --- k-means|| ------------------------------------------------------------------------------- */

/* What labels a shard's rows by candidates. */
struct parallel_share {
    struct filter filter;
    struct assign assign;
};

struct parallel {
    struct shards *shards;
    const struct data *data;       /* the first shard's */
    struct parallel_share *shares; /* one for each shard */
    float *candidates;             /* capacity x stride */
    double *drifts; /* capacity: infinite for candidates of this round, 0 for others */
    uint64_t *rows; /* capacity: picked in this round */
    uint32_t count, capacity;
    double *distances; /* rows */
    double *weights;   /* capacity */
    int32_t *labels;   /* rows */
};

static enum status open_parallel(struct parallel *parallel, struct shards *shards, uint32_t k,
                                 struct error *err)
{
    const struct data *data = &shards->shard[0].data;
    *parallel = (struct parallel){.shards = shards, .data = data};
    double most =
        1 + PARALLEL_ROUNDS * (OVERSAMPLING * (double)k + 10 * sqrt(OVERSAMPLING * (double)k) + 32);
    if (most > (double)data->rows)
        most = (double)data->rows;
    if (most > INT32_MAX / 2)
        return error_memory(err, SIZE_MAX, "candidates of k-means||");
    parallel->capacity = (uint32_t)most;
    const size_t capacity = parallel->capacity;
    parallel->candidates = malloc(capacity * data->stride * sizeof *parallel->candidates);
    parallel->drifts = calloc(capacity, sizeof *parallel->drifts);
    parallel->rows = malloc(capacity * sizeof *parallel->rows);
    parallel->distances = malloc(data->rows * sizeof *parallel->distances);
    parallel->weights = calloc(capacity, sizeof *parallel->weights);
    parallel->labels = malloc(data->rows * sizeof *parallel->labels);
    parallel->shares = calloc(shards->count, sizeof *parallel->shares);
    if (!parallel->candidates || !parallel->drifts || !parallel->rows || !parallel->distances ||
        !parallel->weights || !parallel->labels || !parallel->shares)
        return error_memory(err, capacity * data->stride * 4 + data->rows * 12,
                            "candidates of k-means||");
    for (uint32_t i = 0; i < shards->count; i++) {
        struct shard *shard = &shards->shard[i];
        struct parallel_share *share = &parallel->shares[i];
        enum status status = filter_open(&share->filter, &shard->data, parallel->capacity, err);
        if (status == STATUS_OK)
            status = assign_open(&share->assign, &share->filter, err);
        if (status != STATUS_OK)
            return shards_blame(shards, shard, err);
    }
    return STATUS_OK;
}

static void close_parallel(struct parallel *parallel)
{
    shards_settle(parallel->shards);
    for (uint32_t i = 0; parallel->shares && i < parallel->shards->count; i++) {
        assign_close(&parallel->shares[i].assign);
        filter_close(&parallel->shares[i].filter);
    }
    free(parallel->shares);
    free(parallel->candidates);
    free(parallel->drifts);
    free(parallel->rows);
    free(parallel->distances);
    free(parallel->weights);
    free(parallel->labels);
}

/* Labels the rows of a shard by the candidates so far, of which only those of infinite drift are
 * new. */
static enum status label_share(void *context, struct shard *shard, struct error *err)
{
    struct parallel *parallel = context;
    struct data *data = &shard->data;
    struct assign *assign = &parallel->shares[shard - parallel->shards->shard].assign;
    struct tile *tile;
    bool incremental;
    const bool first = parallel->count == 1;
    enum status status =
        assign_centroids(assign, &incremental, parallel->candidates, parallel->count,
                         first ? NULL : parallel->drifts, NULL, err);
    if (status == STATUS_OK)
        status = data_begin_at_either_end(data, err);
    while (status == STATUS_OK && (status = data_next(data, &tile, err)) == STATUS_OK) {
        status = assign_tile(assign, tile, incremental, err);
        if (status == STATUS_OK)
            status = assign_tile_distances(assign, tile, parallel->distances + tile->first, err);
        if (status == STATUS_OK)
            status = fetch_copy(&data->fetch, "labels", tile->labels,
                                tile->rows * sizeof *parallel->labels,
                                parallel->labels + tile->first, err);
        if (status == STATUS_OK)
            status = data_done(data, tile, err);
    }
    data_end(data);
    return status == STATUS_END ? STATUS_OK : status;
}

/* Labels all rows; *remaining is the sum of their distances times their weights, which
 * parallel->distances gets. Counts the rows of each candidate into the weights. */
static enum status label_by_candidates(struct parallel *parallel, double *remaining,
                                       struct error *err)
{
    const uint64_t n = parallel->data->rows;
    const float *of_row = parallel->data->weights.of_row;
    double *distances = parallel->distances;
    enum status status = shards_run(parallel->shards, label_share, parallel, err);
    if (status != STATUS_OK)
        return status;
    memset(parallel->weights, 0, parallel->capacity * sizeof *parallel->weights);
    *remaining = 0;
    for (uint64_t i = 0; i < n; i++) {
        parallel->weights[parallel->labels[i]] += of_row ? (double)of_row[i] : 1;
        if (of_row)
            distances[i] *= (double)of_row[i];
    }
    for (uint64_t i = 0; i < n; i += KMEANS_BLOCK_ROWS) {
        double block[KMEANS_BLOCK_ROWS];
        uint32_t rows = n - i < KMEANS_BLOCK_ROWS ? (uint32_t)(n - i) : KMEANS_BLOCK_ROWS;
        memcpy(block, distances + i, rows * sizeof *block);
        *remaining += canonical_block_sum(block, rows);
    }
    return STATUS_OK;
}

/* Picks rows for one round, each by its own random number; at least the farthest. */
static uint32_t pick_rows(struct parallel *parallel, double remaining, uint64_t round,
                          const struct cluster_config *config, uint32_t stream)
{
    const uint64_t n = parallel->data->rows;
    const double factor = OVERSAMPLING * (double)config->k / remaining;
    uint32_t picked = 0, room = parallel->capacity - parallel->count;
    uint64_t farthest = 0;
    for (uint64_t i = 0; i < n && picked < room; i++) {
        const double distance = parallel->distances[i];
        if (distance > parallel->distances[farthest])
            farthest = i;
        if (canonical_random(config->seed, stream, round * n + i) < factor * distance)
            parallel->rows[picked++] = i;
    }
    if (picked == 0 && room > 0)
        parallel->rows[picked++] = farthest;
    return picked;
}

static enum status gather_candidates(struct parallel *parallel, const struct cluster_config *config,
                                     uint32_t stream, struct error *err)
{
    const struct data *data = parallel->data;
    const size_t stride = data->stride;
    double remaining = 0;
    double *weights = NULL;
    enum status status = double_weights(&weights, data, err);
    if (status != STATUS_OK)
        return status;
    parallel->rows[0] = first_row(data, weights, canonical_random(config->seed, stream, 0));
    free(weights);
    status = shards_rows(parallel->shards, parallel->candidates, parallel->rows, 1, err);
    parallel->count = 1;
    if (status == STATUS_OK)
        status = label_by_candidates(parallel, &remaining, err);
    for (uint64_t round = 1; status == STATUS_OK; round++) {
        if (remaining == 0 && parallel->count < config->k)
            return too_few(config->k, parallel->count, err);
        if (remaining == 0 || parallel->count == parallel->capacity ||
            (round > PARALLEL_ROUNDS && parallel->count >= config->k))
            break;
        uint32_t picked = pick_rows(parallel, remaining, round, config, stream);
        for (uint32_t i = 0; i < parallel->count + picked; i++)
            parallel->drifts[i] = i < parallel->count ? 0 : INFINITY;
        status = shards_rows(parallel->shards, parallel->candidates + parallel->count * stride,
                             parallel->rows, picked, err);
        parallel->count += picked;
        if (status == STATUS_OK)
            status = label_by_candidates(parallel, &remaining, err);
        tell_progress(config, parallel->count, 0);
    }
    return status;
}

/* The candidates as a matrix of their own. */
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

/* k of the candidates by k-means++, each weighing as much as the rows nearest to it; on the first
 * device. */
static enum status recluster(float *centroids, struct parallel *parallel,
                             const struct cluster_config *config, uint32_t stream,
                             struct error *err)
{
    struct cluster_config as_is = *config;
    as_is.metric = METRIC_EUCLIDEAN; /* they are in the metric's space already */
    as_is.weights = NULL;            /* those of the candidates are given to plus_plus */
    as_is.phase = NULL;
    struct matrix_source source = {.rows = parallel->count,
                                   .dimension = parallel->data->dimension,
                                   .read = read_candidates,
                                   .context = parallel};
    struct shard first = {.lane = parallel->shards->shard[0].lane};
    struct shards alone = {.shard = &first, .count = 1, .rows = parallel->count};
    enum status status = data_open(&first.data, first.lane, &source, &as_is, NULL, err);
    if (status == STATUS_OK)
        status = filter_open(&first.filter, &first.data, config->k, err);
    if (status == STATUS_OK)
        status = assign_open(&first.assign, &first.filter, err);
    if (status == STATUS_OK)
        status = plus_plus(centroids, &alone, parallel->weights, config, stream, NULL, err);
    lane_settle(first.lane);
    assign_close(&first.assign);
    filter_close(&first.filter);
    data_close(&first.data);
    return status == STATUS_OK ? status : shards_blame(parallel->shards, &first, err);
}

static enum status parallel_rows(float *centroids, struct shards *shards,
                                 const struct cluster_config *config, uint32_t stream,
                                 struct error *err)
{
    struct parallel parallel;
    enum status status = open_parallel(&parallel, shards, config->k, err);
    if (status == STATUS_OK)
        status = gather_candidates(&parallel, config, stream + STREAM_PARALLEL, err);
    if (status == STATUS_OK)
        status = recluster(centroids, &parallel, config, stream + STREAM_RECLUSTER, err);
    close_parallel(&parallel);
    return status;
}

enum status seed_centroids(float *centroids, struct shards *shards,
                           const struct cluster_config *config, uint32_t run,
                           struct checkpoint *checkpoint, struct error *err)
{
    const uint32_t stream = run * STREAMS;
    if (config->init == INIT_RANDOM)
        return random_rows(centroids, shards, config, stream + STREAM_RANDOM, err);
    if (config->init == INIT_KMEANS_PARALLEL)
        return parallel_rows(centroids, shards, config, stream, err);
    double *weights = NULL;
    enum status status = double_weights(&weights, &shards->shard[0].data, err);
    if (status == STATUS_OK)
        status = plus_plus(centroids, shards, weights, config, stream + STREAM_PLUSPLUS, checkpoint,
                           err);
    free(weights);
    return status;
}
