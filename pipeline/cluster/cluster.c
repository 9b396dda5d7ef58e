/* cluster.c: clustering and labelling from end to end. */
#include "cluster/cluster.h"
#include "base/clock.h"
#include "cluster/minibatch.h"
#include "cluster/run.h"
#include "cluster/seed.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void cluster_config_default(struct cluster_config *config)
{
    *config = (struct cluster_config){
        .k = 10,
        .metric = METRIC_EUCLIDEAN,
        .init = INIT_KMEANSPP,
        .n_init = 1,
        .max_iter = 100,
        .memory = (uint64_t)256 << 20,
        .threads = 1,
    };
}

void cluster_outcome_clear(struct cluster_outcome *outcome)
{
    free(outcome->centroids);
    free(outcome->labels);
    free(outcome->distances);
    free(outcome->sizes);
    free(outcome->nearest);
    free(outcome->inertia_history);
    *outcome = (struct cluster_outcome){0};
}

static enum status open_outcome(struct cluster_outcome *out, const struct matrix_source *source,
                                const struct cluster_config *config, struct error *err)
{
    const size_t k = config->k, d = source->dimension;
    size_t n = (size_t)source->rows, bytes;
    *out = (struct cluster_outcome){.k = config->k, .dimension = source->dimension, .rows = n};
    if (__builtin_mul_overflow(n, sizeof(double), &bytes) || __builtin_mul_overflow(k, d, &bytes) ||
        __builtin_mul_overflow(bytes, sizeof(float), &bytes))
        return error_memory(err, SIZE_MAX, "the outcome");
    out->centroids = malloc(bytes);
    out->labels = malloc(n * sizeof *out->labels);
    out->distances = malloc(n * sizeof *out->distances);
    out->sizes = calloc(k, sizeof *out->sizes);
    out->nearest = malloc(k * 3 * sizeof *out->nearest);
    if (out->centroids && out->labels && out->distances && out->sizes && out->nearest)
        return STATUS_OK;
    cluster_outcome_clear(out);
    return error_memory(err, bytes + n * 8, "the outcome");
}

static enum status check(const struct matrix_source *source, const struct cluster_config *config,
                         uint32_t k, struct error *err)
{
    if (k < 1)
        return error_set(err, STATUS_USAGE, "k must be at least 1");
    if (k > INT32_MAX)
        return error_set(err, STATUS_USAGE, "k can be at most %d", INT32_MAX);
    if (source->rows == 0)
        return error_set(err, STATUS_FAILED, "there are no rows to cluster");
    if (source->dimension == 0)
        return error_set(err, STATUS_FAILED, "the rows to cluster have no columns");
    if ((uint64_t)config->mini_batch * config->max_iter > MINIBATCH_SAMPLES_MAX)
        return error_set(err, STATUS_USAGE,
                         "--mini-batch times --max-iter is more than 2^40 rows; lower one of them");
    return STATUS_OK;
}

static enum status run_once(struct lloyd *lloyd, struct cluster_outcome *out, uint32_t run,
                            struct error *err)
{
    const struct cluster_config *config = lloyd->config;
    const double built = lloyd->lane->seconds_build;
    int64_t start = clock_now();
    lloyd->run = run;
    enum status status = config->init == INIT_GIVEN
                             ? seed_given(lloyd->centroids, lloyd->data, config, err)
                             : seed_centroids(lloyd->centroids, lloyd->assign, config, run, err);
    int64_t seeded = clock_now();
    out->seconds_init += (double)(seeded - start) * 1e-9 - (lloyd->lane->seconds_build - built);
    if (status == STATUS_OK)
        status = lloyd_run(lloyd, out, err);
    out->seconds_iterate += (double)(clock_now() - seeded) * 1e-9;
    return status;
}

/* The better of two outcomes (the earlier, if they are equal) ends up in `best`. */
static void keep_better(struct cluster_outcome *best, struct cluster_outcome *other)
{
    if (!(other->inertia < best->inertia))
        return;
    struct cluster_outcome swap = *best;
    *best = *other;
    *other = swap;
}

static enum status run_all(struct cluster_outcome *out, struct lloyd *lloyd,
                           const struct matrix_source *source, struct error *err)
{
    const struct cluster_config *config = lloyd->config;
    enum status status = run_once(lloyd, out, 0, err);
    /* Given centroids lead to the same outcome each time. */
    const uint32_t runs =
        config->init == INIT_GIVEN && config->mini_batch == 0 ? 1 : config->n_init;
    struct cluster_outcome other = {0};
    if (status == STATUS_OK && runs > 1)
        status = open_outcome(&other, source, config, err);
    double init = out->seconds_init, iterate = out->seconds_iterate;
    for (uint32_t run = 1; run < runs && status == STATUS_OK; run++) {
        other.seconds_init = other.seconds_iterate = 0;
        status = run_once(lloyd, &other, run, err);
        init += other.seconds_init;
        iterate += other.seconds_iterate;
        if (status == STATUS_OK)
            keep_better(out, &other);
    }
    out->seconds_init = init;
    out->seconds_iterate = iterate;
    cluster_outcome_clear(&other);
    return status;
}

enum status cluster_run_on(struct cluster_outcome *out, struct ocl_context *ocl,
                           const struct matrix_source *source, const struct cluster_config *config,
                           const struct lane_choice *choice, struct error *err)
{
    *out = (struct cluster_outcome){0};
    enum status status = check(source, config, config->k, err);
    if (status != STATUS_OK)
        return status;
    if (config->k > source->rows)
        return error_set(err, STATUS_FAILED,
                         "k is %u and larger than the number of rows, which is %llu", config->k,
                         (unsigned long long)source->rows);
    struct lane lane = {0};
    struct data data = {0};
    struct filter filter = {0};
    struct assign assign = {0};
    struct update update = {0};
    struct moves moves = {0};
    struct lloyd lloyd = {0};
    status = lane_open(&lane, ocl, config->threads, config->stop, choice, err);
    if (status != STATUS_OK)
        return status;
    status = open_outcome(out, source, config, err);
    if (status == STATUS_OK)
        status = data_open(&data, &lane, source, config, err);
    double read = data.seconds_read;
    if (status == STATUS_OK)
        status = filter_open(&filter, &data, config->k, err);
    if (status == STATUS_OK)
        status = assign_open(&assign, &filter, err);
    if (status == STATUS_OK)
        status = update_open(&update, &data, config->k,
                             (uint64_t)config->mini_batch * config->max_iter, err);
    if (status == STATUS_OK)
        status = moves_open(&moves, &update, &filter, err);
    if (status == STATUS_OK)
        status = lloyd_open(&lloyd, &assign, &update, moves.used ? &moves : NULL, config, err);
    if (status == STATUS_OK)
        status = run_all(out, &lloyd, source, err);
    out->seconds_read = read;
    out->seconds_build = lane.seconds_build;
    lane_settle(&lane);
    lloyd_close(&lloyd);
    moves_close(&moves);
    update_close(&update);
    assign_close(&assign);
    filter_close(&filter);
    data_close(&data);
    lane_close(&lane);
    if (status != STATUS_OK)
        cluster_outcome_clear(out);
    return status;
}

enum status cluster_run(struct cluster_outcome *out, struct ocl_context *ocl,
                        const struct matrix_source *source, const struct cluster_config *config,
                        struct error *err)
{
    return cluster_run_on(out, ocl, source, config, NULL, err);
}

enum status cluster_assign(int32_t *labels, float *distances, struct ocl_context *ocl,
                           const struct matrix_source *source, const float *centroids, uint32_t k,
                           const struct cluster_config *config, struct error *err)
{
    enum status status = check(source, config, k, err);
    if (status != STATUS_OK)
        return status;
    struct cluster_config with_k = *config;
    with_k.k = k;
    struct lane lane = {0};
    struct data data = {0};
    struct filter filter = {0};
    struct assign assign = {0};
    struct lloyd lloyd = {0};
    struct cluster_outcome out = {.labels = labels, .distances = distances};
    status = lane_open(&lane, ocl, config->threads, config->stop, NULL, err);
    if (status != STATUS_OK)
        return status;
    status = data_open(&data, &lane, source, config, err);
    if (status == STATUS_OK)
        status = filter_open(&filter, &data, k, err);
    if (status == STATUS_OK)
        status = assign_open(&assign, &filter, err);
    if (status == STATUS_OK)
        status = lloyd_open(&lloyd, &assign, NULL, NULL, &with_k, err);
    for (uint32_t i = 0; i < k && status == STATUS_OK; i++)
        for (uint32_t j = 0; j < source->dimension && status == STATUS_OK; j++) {
            float value = centroids[(size_t)i * source->dimension + j];
            lloyd.centroids[(size_t)i * data.stride + j] = value;
            if (!isfinite(value))
                status =
                    error_set(err, STATUS_FAILED, "centroid %u is not finite in column %u", i, j);
        }
    if (status == STATUS_OK)
        status = lloyd_label(&lloyd, &out, err);
    lane_settle(&lane);
    lloyd_close(&lloyd);
    assign_close(&assign);
    filter_close(&filter);
    data_close(&data);
    lane_close(&lane);
    return status;
}
