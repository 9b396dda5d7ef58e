/* cluster.c: clustering and labelling from end to end. */
#include "cluster/cluster.h"
#include "cluster/engine.h"
#include "cluster/run.h"
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

/* --- clustering ------------------------------------------------------------------------------ */

struct run_job {
    struct cluster_outcome *out;
    const struct matrix_source *source;
    const struct cluster_config *config;
};

static enum status run_once(void *context, const struct shard_devices *devices,
                            const struct ocl_context **failed, struct error *err)
{
    const struct run_job *job = context;
    const struct cluster_config *config = job->config;
    struct engine engine;
    *job->out = (struct cluster_outcome){0};
    enum status status = engine_open(&engine, devices, job->source, config, err);
    if (status == STATUS_OK)
        status = checkpoint_open(&engine.checkpoint, config->checkpoint, job->source->dimension,
                                 engine.fit.data->stride, NULL, 0, err);
    if (status == STATUS_OK)
        status = engine_run(job->out, &engine, config->k, err);
    if (status == STATUS_OK) {
        job->out->seconds_build = shards_seconds_build(&engine.shards);
        job->out->iterations_resumed = engine.checkpoint.resumed;
    }
    *failed = engine.shards.failed;
    engine_close(&engine);
    return status;
}

enum status cluster_run_on(struct cluster_outcome *out, struct ocl_context *ocl,
                           const struct matrix_source *source, const struct cluster_config *config,
                           const struct lane_choice *choice, struct error *err)
{
    struct ocl_context *const same[LANE_SHARES] = {ocl, ocl, ocl, ocl};
    const struct shard_devices devices = {same, choice->shares, choice};
    struct run_job job = {out, source, config};
    return cluster_on_devices(&devices, run_once, &job, err);
}

enum status cluster_run(struct cluster_outcome *out, const struct cluster_devices *devices,
                        const struct matrix_source *source, const struct cluster_config *config,
                        struct error *err)
{
    const struct shard_devices all = {devices->contexts, devices->count, NULL};
    struct run_job job = {out, source, config};
    return cluster_on_devices(&all, run_once, &job, err);
}

/* --- labelling ------------------------------------------------------------------------------- */

struct assign_job {
    struct cluster_outcome out; /* labels and distances are the caller's */
    const struct matrix_source *source;
    const struct cluster_config *config;
    const float *centroids;
};

static enum status assign_once(void *context, const struct shard_devices *devices,
                               const struct ocl_context **failed, struct error *err)
{
    struct assign_job *job = context;
    struct shards shards = {0};
    struct fit fit = {0};
    const uint32_t columns = job->source->dimension;
    enum status status = shards_open(&shards, devices, job->source, job->config, err);
    if (status == STATUS_OK)
        status = fit_open(&fit, &shards, job->config, NULL, err);
    for (uint32_t i = 0; i < job->config->k && status == STATUS_OK; i++)
        memcpy(fit.centroids + (size_t)i * fit.data->stride, job->centroids + (size_t)i * columns,
               columns * sizeof *fit.centroids);
    if (status == STATUS_OK)
        status = fit_label(&fit, &job->out, err);
    *failed = shards.failed;
    shards_settle(&shards);
    fit_close(&fit);
    shards_close(&shards);
    return status;
}

enum status cluster_assign(int32_t *labels, float *distances, const struct cluster_devices *devices,
                           const struct matrix_source *source, const float *centroids, uint32_t k,
                           const struct cluster_config *config, struct error *err)
{
    enum status status = cluster_check(source, config, k, err);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t j = 0; j < source->dimension; j++)
            if (!isfinite(centroids[(size_t)i * source->dimension + j]))
                return error_set(err, STATUS_FAILED, "centroid %u is not finite in column %u", i,
                                 j);
    struct cluster_config with_k = *config;
    with_k.k = k;
    const struct shard_devices all = {devices->contexts, devices->count, NULL};
    struct assign_job job = {
        {.labels = labels, .distances = distances}, source, &with_k, centroids};
    return cluster_on_devices(&all, assign_once, &job, err);
}
