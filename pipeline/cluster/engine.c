/* engine.c: opens the parts of k-means in their order, and runs restarts. */
#include "cluster/engine.h"
#include "base/clock.h"
#include "cluster/run.h"
#include "cluster/seed.h"
#include <stdlib.h>

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

enum status engine_open(struct engine *engine, struct ocl_context *ocl,
                        const struct matrix_source *source, const struct cluster_config *config,
                        const struct lane_choice *choice, struct error *err)
{
    *engine = (struct engine){.config = *config, .source = source};
    const uint32_t k = config->k;
    enum status status = cluster_check(source, config, k, err);
    if (status != STATUS_OK)
        return status;
    if (k > source->rows)
        return error_set(err, STATUS_FAILED,
                         "k is %u and larger than the number of rows, which is %llu", k,
                         (unsigned long long)source->rows);
    /* Memory that cannot be had shows before the rows are read. */
    struct cluster_outcome trial;
    status = open_outcome(&trial, source, config, err);
    if (status != STATUS_OK)
        return status;
    cluster_outcome_clear(&trial);
    status = lane_open(&engine->lane, ocl, config->threads, config->stop, choice, err);
    if (status == STATUS_OK)
        status = data_open(&engine->data, &engine->lane, source, &engine->config, err);
    if (status == STATUS_OK)
        status = filter_open(&engine->filter, &engine->data, k, err);
    if (status == STATUS_OK)
        status = assign_open(&engine->assign, &engine->filter, err);
    if (status == STATUS_OK)
        status = update_open(&engine->update, &engine->data, k,
                             (uint64_t)config->mini_batch * config->max_iter, err);
    if (status == STATUS_OK)
        status = moves_open(&engine->moves, &engine->update, &engine->filter, err);
    if (status == STATUS_OK)
        status = lloyd_open(&engine->lloyd, &engine->assign, &engine->update,
                            engine->moves.used ? &engine->moves : NULL, &engine->config, err);
    return status;
}

void engine_close(struct engine *engine)
{
    lane_settle(&engine->lane);
    lloyd_close(&engine->lloyd);
    moves_close(&engine->moves);
    update_close(&engine->update);
    assign_close(&engine->assign);
    filter_close(&engine->filter);
    data_close(&engine->data);
    lane_close(&engine->lane);
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

static enum status run_all(struct cluster_outcome *out, struct lloyd *lloyd, struct error *err)
{
    const struct cluster_config *config = lloyd->config;
    enum status status = run_once(lloyd, out, 0, err);
    /* Given centroids lead to the same outcome each time. */
    const uint32_t runs =
        config->init == INIT_GIVEN && config->mini_batch == 0 ? 1 : config->n_init;
    struct cluster_outcome other = {0};
    if (status == STATUS_OK && runs > 1)
        status = open_outcome(&other, lloyd->data->source, config, err);
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

enum status engine_run(struct cluster_outcome *out, struct engine *engine, uint32_t k,
                       struct error *err)
{
    engine->config.k = engine->update.k = k;
    enum status status = open_outcome(out, engine->source, &engine->config, err);
    if (status == STATUS_OK)
        status = run_all(out, &engine->lloyd, err);
    out->seconds_read = engine->data.seconds_read;
    if (status != STATUS_OK)
        cluster_outcome_clear(out);
    return status;
}
