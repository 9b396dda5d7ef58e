/* cluster.c: clustering and labelling from end to end. */
#include "cluster/cluster.h"
#include "base/log.h"
#include "cluster/engine.h"
#include "cluster/minibatch.h"
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

enum status cluster_check(const struct matrix_source *source, const struct cluster_config *config,
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

/* --- devices --------------------------------------------------------------------------------- */

/* `devices` without the one that failed. */
static void leave_out(struct shard_devices *devices, struct ocl_context **contexts,
                      const struct ocl_context *failed, struct error *err)
{
    char line[1200];
    uint32_t left = 0;
    for (uint32_t i = 0; i < devices->count; i++)
        if (devices->contexts[i] != failed)
            contexts[left++] = devices->contexts[i];
    log_message(LOG_NOTICE, "notice: %s; the other devices go on",
                error_line(line, sizeof line, err));
    *err = (struct error)ERROR_INIT;
    devices->contexts = contexts;
    devices->count = left;
}

enum status
cluster_on_devices(const struct shard_devices *devices,
                   enum status (*once)(void *context, const struct shard_devices *devices,
                                       const struct ocl_context **failed, struct error *err),
                   void *context, struct error *err)
{
    struct shard_devices left = *devices;
    struct ocl_context **contexts = malloc(devices->count * sizeof *contexts);
    if (!contexts)
        return error_memory(err, devices->count * sizeof *contexts, "devices");
    const struct ocl_context *failed = NULL;
    enum status status = once(context, &left, &failed, err);
    while (status == STATUS_FAILED && failed && left.count > 1) {
        leave_out(&left, contexts, failed, err);
        failed = NULL;
        status = once(context, &left, &failed, err);
    }
    free(contexts);
    return status;
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
                                 engine.lloyd.data->stride, NULL, 0, err);
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
    struct lloyd lloyd = {0};
    const uint32_t columns = job->source->dimension;
    enum status status = shards_open(&shards, devices, job->source, job->config, err);
    if (status == STATUS_OK)
        status = lloyd_open(&lloyd, &shards, job->config, NULL, err);
    for (uint32_t i = 0; i < job->config->k && status == STATUS_OK; i++)
        memcpy(lloyd.centroids + (size_t)i * lloyd.data->stride,
               job->centroids + (size_t)i * columns, columns * sizeof *lloyd.centroids);
    if (status == STATUS_OK)
        status = lloyd_label(&lloyd, &job->out, err);
    *failed = shards.failed;
    shards_settle(&shards);
    lloyd_close(&lloyd);
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
