/* engine.c: opens the parts of k-means in order, and runs restarts. */
#include "kmeans/engine.h"
#include "base/clock.h"
#include "base/parse.h"
#include "kmeans/run.h"
#include "kmeans/seed.h"
#include <stdlib.h>

static enum status open_outcome(struct cluster_outcome *out, const struct cluster_config *config,
                                uint64_t rows, uint32_t dimension, struct error *err)
{
    const size_t k = config->k, d = dimension;
    size_t n = (size_t)rows, bytes;
    *out = (struct cluster_outcome){.k = config->k, .dimension = dimension, .rows = n};
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

/* For the rank's rows. */
static enum status open_own_outcome(struct cluster_outcome *out, const struct engine *engine,
                                    struct error *err)
{
    const struct data *data = &engine->shard.data;
    return open_outcome(out, &engine->config, data->share.rows, data->dimension, err);
}

enum status engine_open(struct engine *engine, const struct rank *rank,
                        const struct cluster_config *config, struct error *err)
{
    const struct matrix_source *source = rank->source;
    *engine = (struct engine){.config = *config};
    const uint32_t k = config->k;
    char rows[40];
    enum status status = cluster_check(source, config, k, err);
    if (status != STATUS_OK)
        return status;
    if (k > source->rows)
        return error_set(err, STATUS_FAILED, "k is %u, but there %s only %s; choose a smaller k", k,
                         source->rows == 1 ? "is" : "are",
                         format_number_of(rows, sizeof rows, source->rows, "row"));
    /* Running out of memory should show before the rows are read. */
    struct cluster_outcome trial;
    status = open_outcome(&trial, config, source->rows / rank->comm->size, source->dimension, err);
    if (status != STATUS_OK)
        return status;
    cluster_outcome_clear(&trial);
    status = shard_open(&engine->shard, rank, &engine->config, err);
    if (status == STATUS_OK)
        status = shard_open_update(&engine->shard, &engine->config, err);
    if (status == STATUS_OK)
        status = fit_open(&engine->fit, &engine->shard, &engine->config, &engine->checkpoint, err);
    if (status == STATUS_INTERRUPTED)
        checkpoint_untouched(config->checkpoint, err);
    return status;
}

void engine_close(struct engine *engine)
{
    checkpoint_close(&engine->checkpoint);
    shard_close(&engine->shard);
}

/* Following runs have k clusters. */
static void use_k(struct engine *engine, uint32_t k)
{
    engine->config.k = engine->shard.update.k = k;
}

/* One restart, or the part of it that checkpoint->run does not have yet. */
static enum status run_once(struct fit *fit, struct cluster_outcome *out, struct error *err)
{
    const struct cluster_config *config = fit->config;
    struct checkpoint *checkpoint = fit->checkpoint;
    const double built = fit->lane->seconds_build;
    int64_t start = clock_now();
    enum status status = STATUS_OK;
    if (checkpoint->run.stage == CHECKPOINT_SEEDING) {
        status = config->init == INIT_GIVEN ? seed_given(fit->centroids, fit->data, config, err)
                                            : seed_centroids(fit->centroids, fit->shard, config,
                                                             fit->run, checkpoint, err);
        if (status == STATUS_OK) {
            checkpoint->run.stage = CHECKPOINT_ITERATING;
            checkpoint->run.seeds = out->k;
        }
    }
    int64_t seeded = clock_now();
    out->seconds_init += (double)(seeded - start) * 1e-9 - (fit->lane->seconds_build - built);
    if (status == STATUS_OK)
        status = fit_run(fit, out, err);
    out->seconds_iterate += clock_seconds_since(seeded);
    struct error trouble = ERROR_INIT;
    if (status == STATUS_INTERRUPTED && fit_read_state(fit, &trouble) == STATUS_OK)
        checkpoint_save_interrupted(checkpoint, err);
    /* The other devices will resume from there, unless the failed one writes the state. */
    if (status == STATUS_FAILED && fit->comm->size > 1 && cluster_device_failed(err) &&
        fit_read_state(fit, &trouble) == STATUS_OK)
        checkpoint_save(checkpoint);
    return status;
}

void engine_keep_better(struct cluster_outcome *best, struct cluster_outcome *other)
{
    if (!(other->inertia < best->inertia))
        return;
    struct cluster_outcome swap = *best;
    *best = *other;
    *other = swap;
}

/* The next restart starts from nothing. */
static void begin_run(struct fit *fit, struct cluster_outcome *outcome)
{
    const struct sums sums = fit->method->keeps_sums ? fit->update->all : (struct sums){0};
    outcome->iterations = 0;
    outcome->converged = false;
    fit->checkpoint->run = (struct checkpoint_run){.outcome = outcome,
                                                   .centroids = fit->centroids,
                                                   .counts = sums.counts,
                                                   .sums = sums.values,
                                                   .weights = sums.weights};
}

static enum status run_all(struct cluster_outcome *out, struct engine *engine, struct error *err)
{
    struct fit *fit = &engine->fit;
    const struct cluster_config *config = fit->config;
    struct checkpoint *checkpoint = fit->checkpoint;
    struct checkpoint_runs *kept = &checkpoint->runs;
    /* Given centroids lead to the same outcome each time. */
    const uint32_t runs = config->init == INIT_GIVEN && !fit->method->random ? 1 : config->n_init;
    struct cluster_outcome other = {0};
    enum status status = STATUS_OK;
    if (runs > 1)
        status = open_own_outcome(&other, engine, err);
    begin_run(fit, kept->done == 0 ? out : &other);
    if (status == STATUS_OK)
        status = checkpoint_take_run(checkpoint, err);
    double init = 0, iterate = 0;
    while (kept->done < runs && status == STATUS_OK) {
        struct cluster_outcome *outcome = checkpoint->run.outcome;
        outcome->seconds_init = outcome->seconds_iterate = 0;
        fit->run = kept->done;
        status = run_once(fit, outcome, err);
        init += outcome->seconds_init;
        iterate += outcome->seconds_iterate;
        if (status != STATUS_OK)
            break;
        if (outcome == &other)
            engine_keep_better(out, &other);
        kept->done++;
        begin_run(fit, &other);
        if (checkpoint_due(checkpoint))
            checkpoint_save(checkpoint);
    }
    checkpoint->run = (struct checkpoint_run){0};
    out->seconds_init = init;
    out->seconds_iterate = iterate;
    cluster_outcome_clear(&other);
    return status;
}

enum status engine_complete(struct cluster_outcome *out, struct engine *engine,
                            struct cluster_outcome *known, struct error *err)
{
    use_k(engine, known->k);
    enum status status = open_own_outcome(out, engine, err);
    if (status != STATUS_OK)
        return status;
    free(out->centroids);
    out->centroids = known->centroids;
    out->inertia_history = known->inertia_history;
    out->iterations = known->iterations;
    out->converged = known->converged;
    known->centroids = NULL;
    known->inertia_history = NULL;
    status = fit_complete(&engine->fit, out, err);
    if (status != STATUS_OK)
        cluster_outcome_clear(out);
    return status;
}

enum status engine_run(struct cluster_outcome *out, struct engine *engine, uint32_t k,
                       struct error *err)
{
    use_k(engine, k);
    engine->checkpoint.runs = (struct checkpoint_runs){.best = out};
    enum status status = open_own_outcome(out, engine, err);
    if (status == STATUS_OK)
        status = checkpoint_take_runs(&engine->checkpoint, err);
    if (status == STATUS_OK && engine->checkpoint.runs.done > 0)
        status = fit_complete(&engine->fit, out, err);
    if (status == STATUS_INTERRUPTED)
        checkpoint_save_interrupted(&engine->checkpoint, err);
    if (status == STATUS_OK)
        status = run_all(out, engine, err);
    out->seconds_read = engine->shard.data.seconds_read;
    if (status != STATUS_OK)
        cluster_outcome_clear(out);
    return status;
}
