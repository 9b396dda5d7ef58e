/* sweep.c: one engine, several values of k.
 *
 * The largest k comes first, so that too few distinct rows or too little memory shows at once. */
#include "kmeans/sweep.h"
#include "kmeans/engine.h"
#include "kmeans/measures.h"
#include "kmeans/run.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sample rows per cluster of the largest k; with fewer, most clusters would have too few rows. */
#define SAMPLE_OF_CLUSTER 16

/* Kaufman and Rousseeuw (1990): below this, no substantial structure. */
#define WEAK_SILHOUETTE 0.25

/* The value of k with the largest value of `sign` times the measure at `offset`, the smallest such
 * k; 0 if it is defined nowhere. */
static uint32_t favourite(const struct cluster_sweep *sweep, size_t offset, double sign)
{
    uint32_t k = 0;
    double most = 0;
    for (uint32_t i = 0; i < sweep->count; i++) {
        double value;
        memcpy(&value, (const char *)&sweep->values[i].measures + offset, sizeof value);
        if (!isnan(value) && (k == 0 || sign * value > most)) {
            most = sign * value;
            k = sweep->values[i].k;
        }
    }
    return k;
}

static void explain(struct cluster_sweep *sweep)
{
    const uint32_t k = sweep->values[sweep->suggested].k;
    const double score = cluster_sweep_score(sweep, sweep->suggested);
    if (isnan(score)) {
        snprintf(sweep->reason, sizeof sweep->reason,
                 "it is the smallest: no measure is defined for these values with so few rows");
        return;
    }
    const uint32_t bouldin =
        favourite(sweep, offsetof(struct cluster_measures, davies_bouldin), -1);
    const uint32_t calinski =
        favourite(sweep, offsetof(struct cluster_measures, calinski_harabasz), 1);
    int used =
        snprintf(sweep->reason, sizeof sweep->reason, "the %ssilhouette is highest (%.4g)%s",
                 strcmp(sweep->measure, "silhouette") == 0 ? "" : "simplified ", score,
                 score < WEAK_SILHOUETTE ? " but low: the clusters run into each other" : "");
    if (bouldin == k && calinski == k)
        used += snprintf(sweep->reason + used, sizeof sweep->reason - (size_t)used,
                         ", and Davies-Bouldin and Calinski-Harabasz agree");
    else
        used += snprintf(sweep->reason + used, sizeof sweep->reason - (size_t)used,
                         "; Davies-Bouldin favours %u, Calinski-Harabasz %u", bouldin, calinski);
    if (sweep->count > 2 && sweep->suggested + 1 == sweep->count)
        snprintf(sweep->reason + used, sizeof sweep->reason - (size_t)used,
                 "; it is the largest tried: larger ones may be better");
}

bool cluster_sweep_prefers(const struct cluster_sweep *sweep, uint32_t i)
{
    const double score = cluster_sweep_score(sweep, i);
    const double most = cluster_sweep_score(sweep, sweep->suggested);
    return isnan(most) || score >= most;
}

/* Agreement of the clusters with the classes, over all rows. */
static enum status agree(struct cluster_agreement *agreement, const struct engine *engine,
                         const struct cluster_outcome *outcome,
                         const struct cluster_sweep_config *values, struct error *err)
{
    const struct data *data = &engine->shard.data;
    const size_t rows = (size_t)data->rows;
    int32_t *labels = malloc(rows * sizeof *labels);
    if (!labels)
        return error_memory(err, rows * sizeof *labels, "comparing with the folders");
    memcpy(labels + data->share.first, outcome->labels, data->share.rows * sizeof *labels);
    enum status status = shard_gather(&engine->shard, labels, sizeof *labels, err);
    if (status == STATUS_OK)
        status = cluster_agree(agreement, labels, outcome->k, values->classes, values->class_count,
                               rows, err);
    free(labels);
    return status;
}

static enum status run_value(struct cluster_outcome *best, struct cluster_sweep *sweep,
                             struct engine *engine, struct measures *measures,
                             const struct cluster_sweep_config *values, uint32_t i,
                             struct error *err)
{
    struct cluster_sweep_value *value = &sweep->values[i];
    struct checkpoint *checkpoint = &engine->checkpoint;
    struct cluster_outcome outcome = {0};
    enum status status = lane_check_stop(engine->fit.lane, err);
    if (status == STATUS_INTERRUPTED)
        checkpoint_save_interrupted(checkpoint, err);
    if (status == STATUS_OK)
        status = engine_run(&outcome, engine, value->k, err);
    if (status == STATUS_OK) {
        status = measures_take(&value->measures, measures, &outcome, err);
        if (status == STATUS_INTERRUPTED)
            checkpoint_save_interrupted(checkpoint, err);
    }
    if (status == STATUS_OK && values->classes)
        status = agree(&value->agreement, engine, &outcome, values, err);
    if (status == STATUS_OK) {
        value->iterations = outcome.iterations;
        value->converged = outcome.converged;
        value->inertia = outcome.inertia;
        const double init = best->seconds_init + outcome.seconds_init;
        const double iterate = best->seconds_iterate + outcome.seconds_iterate;
        if (!best->labels || cluster_sweep_prefers(sweep, i)) {
            struct cluster_outcome swap = *best;
            *best = outcome;
            outcome = swap;
            sweep->suggested = i;
        }
        best->seconds_init = init;
        best->seconds_iterate = iterate;
        checkpoint->values.done++;
    }
    checkpoint->runs = (struct checkpoint_runs){0};
    if (status == STATUS_OK && checkpoint_due(checkpoint))
        checkpoint_save(checkpoint);
    cluster_outcome_clear(&outcome);
    return status;
}

static enum status open_values(struct cluster_sweep *sweep,
                               const struct cluster_sweep_config *values, struct error *err)
{
    sweep->count = (values->last - values->first) / values->step + 1;
    sweep->has_classes = values->classes != NULL;
    sweep->values = calloc(sweep->count, sizeof *sweep->values);
    if (!sweep->values)
        return error_memory(err, sweep->count * sizeof *sweep->values, "the values of k");
    for (uint32_t i = 0; i < sweep->count; i++) {
        sweep->values[i].k = values->first + i * values->step;
        sweep->values[i].agreement = (struct cluster_agreement){NAN, NAN, NAN};
    }
    return STATUS_OK;
}

/* Restores the completed values. */
static enum status take_values(struct cluster_outcome *best, struct cluster_sweep *sweep,
                               struct engine *engine, const struct cluster_sweep_config *values,
                               struct error *err)
{
    struct checkpoint *checkpoint = &engine->checkpoint;
    const struct data *data = engine->fit.data;
    enum status status = checkpoint_open(
        checkpoint, data->comm, engine->config.checkpoint, data->dimension, data->stride,
        values->classes, values->classes ? data->rows * sizeof *values->classes : 0, err);
    checkpoint->values = (struct checkpoint_values){.sweep = sweep, .best = best};
    if (status == STATUS_OK)
        status = checkpoint_take_values(checkpoint, err);
    if (status != STATUS_OK || checkpoint->values.done == 0)
        return status;
    struct cluster_outcome known = *best;
    known.k = sweep->values[sweep->suggested].k;
    known.dimension = data->dimension;
    status = engine_complete(best, engine, &known, err);
    cluster_outcome_clear(&known);
    if (status == STATUS_INTERRUPTED)
        checkpoint_save_interrupted(checkpoint, err);
    return status;
}

struct sweeping {
    struct cluster_outcome *best;
    struct cluster_sweep *sweep; /* rank 0's results, both */
    const struct cluster_config *config;
    const struct cluster_sweep_config *values;
};

static enum status sweep_main(void *context, const struct rank *rank, struct error *err)
{
    const struct sweeping *job = context;
    const struct cluster_sweep_config *values = job->values;
    struct cluster_outcome best = {0};
    struct cluster_sweep sweep = {0};
    struct engine *engine = calloc(1, sizeof *engine);
    struct measures measures = {0};
    struct cluster_config largest = *job->config;
    enum status status = engine ? open_values(&sweep, values, err)
                                : error_memory(err, sizeof *engine, "the values of k");
    if (status == STATUS_OK) {
        largest.k = sweep.values[sweep.count - 1].k;
        status = engine_open(engine, rank, &largest, err);
    }
    if (status == STATUS_OK)
        status = measures_open(&measures, &engine->shard, &largest, err);
    sweep.sample = measures.sample;
    strcpy(sweep.measure, measures.sampled && measures.sample / SAMPLE_OF_CLUSTER < largest.k
                              ? "simplified_silhouette"
                              : "silhouette");
    if (status == STATUS_OK)
        status = take_values(&best, &sweep, engine, values, err);
    const uint32_t left = sweep.count - (engine ? engine->checkpoint.values.done : 0);
    for (uint32_t i = left; i > 0 && status == STATUS_OK; i--) {
        if (values->progress && rank->comm->rank == 0)
            values->progress(largest.watch.context, sweep.values[i - 1].k, sweep.count - i,
                             sweep.count);
        status = run_value(&best, &sweep, engine, &measures, values, i - 1, err);
    }
    if (status == STATUS_OK) {
        best.seconds_build = rank->lane->seconds_build;
        best.iterations_resumed = engine->checkpoint.resumed;
        explain(&sweep);
        status = cluster_hand_over(job->best, &best, &engine->shard, err);
    }
    if (status == STATUS_OK && rank->comm->rank == 0) {
        *job->sweep = sweep;
        sweep = (struct cluster_sweep){0};
    }
    measures_close(&measures);
    if (engine)
        engine_close(engine);
    free(engine);
    cluster_outcome_clear(&best);
    cluster_sweep_clear(&sweep);
    return status;
}

enum status cluster_sweep_run(struct cluster_outcome *best, struct cluster_sweep *sweep,
                              const struct cluster_devices *devices,
                              const struct matrix_source *source,
                              const struct cluster_config *config,
                              const struct cluster_sweep_config *values, struct error *err)
{
    struct sweeping sweeping = {best, sweep, config, values};
    const struct run_job job = {
        .source = source, .config = config, .main = sweep_main, .context = &sweeping};
    *best = (struct cluster_outcome){0};
    *sweep = (struct cluster_sweep){0};
    enum status status = cluster_run_ranks(&job, devices, err);
    if (status != STATUS_OK) {
        cluster_outcome_clear(best);
        cluster_sweep_clear(sweep);
    }
    return status;
}
