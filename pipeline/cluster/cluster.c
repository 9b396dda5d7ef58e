/* cluster.c: clustering and labelling from end to end. */
#include "cluster/cluster.h"
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

enum status cluster_run_on(struct cluster_outcome *out, struct ocl_context *ocl,
                           const struct matrix_source *source, const struct cluster_config *config,
                           const struct lane_choice *choice, struct error *err)
{
    struct engine engine;
    *out = (struct cluster_outcome){0};
    enum status status = engine_open(&engine, ocl, source, config, choice, err);
    if (status == STATUS_OK)
        status = checkpoint_open(&engine.checkpoint, config->checkpoint, source->dimension,
                                 engine.data.stride, NULL, 0, err);
    if (status == STATUS_OK)
        status = engine_run(out, &engine, config->k, err);
    if (status == STATUS_OK) {
        out->seconds_build = engine.lane.seconds_build;
        out->iterations_resumed = engine.checkpoint.resumed;
    }
    engine_close(&engine);
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
    enum status status = cluster_check(source, config, k, err);
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
    status = data_open(&data, &lane, source, &with_k, err);
    if (status == STATUS_OK)
        status = filter_open(&filter, &data, k, err);
    if (status == STATUS_OK)
        status = assign_open(&assign, &filter, err);
    if (status == STATUS_OK)
        status = lloyd_open(&lloyd, &assign, NULL, NULL, &with_k, NULL, err);
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
