/* cluster.c: clustering and labelling from end to end. */
#include "kmeans/cluster.h"
#include "kmeans/engine.h"
#include "kmeans/run.h"
#include <math.h>

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

/* --- clustering ------------------------------------------------------------------------------ */

struct clustering {
    struct cluster_outcome *out;
    const struct cluster_config *config;
};

enum status cluster_fit(struct cluster_outcome *out, struct engine *engine, const struct rank *rank,
                        struct cluster_outcome *known, struct error *err)
{
    const struct checkpoint_config *kept = engine->config.checkpoint;
    struct cluster_outcome own = {0};
    enum status status = STATUS_OK;
    if (!known)
        status = checkpoint_open(&engine->checkpoint, rank->comm, kept, rank->source->dimension,
                                 engine->fit.data->stride, NULL, 0, err);
    if (status == STATUS_OK)
        status = known ? engine_complete(&own, engine, known, err)
                       : engine_run(&own, engine, engine->config.k, err);
    if (status == STATUS_OK && engine->config.whole)
        status = fit_round(&engine->fit, &own, err);
    own.seconds_build = rank->lane->seconds_build;
    own.iterations_resumed = engine->checkpoint.resumed;
    if (status == STATUS_OK && !known && rank->comm->rank == 0 && kept && kept->fits)
        kept->fits->made = engine->checkpoint.made;
    if (status == STATUS_OK)
        status = cluster_hand_over(out, &own, &engine->shard, err);
    cluster_outcome_clear(&own);
    checkpoint_close(&engine->checkpoint);
    return status;
}

static enum status run_main(void *context, const struct rank *rank, struct error *err)
{
    const struct clustering *job = context;
    struct engine engine;
    enum status status = engine_open(&engine, rank, job->config, err);
    if (status == STATUS_OK)
        status = cluster_fit(job->out, &engine, rank, NULL, err);
    engine_close(&engine);
    return status;
}

enum status cluster_run(struct cluster_outcome *out, const struct cluster_devices *devices,
                        const struct matrix_source *source, const struct cluster_config *config,
                        struct error *err)
{
    struct clustering clustering = {out, config};
    const struct run_job job = {
        .source = source, .config = config, .main = run_main, .context = &clustering};
    *out = (struct cluster_outcome){0};
    enum status status = cluster_run_ranks(&job, devices, err);
    if (status != STATUS_OK)
        cluster_outcome_clear(out);
    return status;
}

/* --- labelling ------------------------------------------------------------------------------- */

struct labelling {
    int32_t *labels; /* of all rows; NULL except in the first process */
    float *distances;
    const struct cluster_config *config;
    const float *centroids;
};

static enum status label_main(void *context, const struct rank *rank, struct error *err)
{
    const struct labelling *job = context;
    struct shard shard = {0};
    struct fit fit = {0};
    int32_t *labels = NULL; /* of the rank's rows: their place among all, or separate memory */
    float *distances = NULL;
    enum status status = shard_open(&shard, rank, job->config, err);
    if (status == STATUS_OK)
        status = fit_open(&fit, &shard, job->config, NULL, err);
    const struct data_share *share = &shard.data.share;
    const struct lane_wanted own[] = {HOST(labels, share->rows), HOST(distances, share->rows)};
    if (status == STATUS_OK && !job->labels)
        status = lane_hold(&shard.held, rank->lane, own, COUNT_OF(own), "labels", err);
    if (status == STATUS_OK) {
        labels = job->labels ? job->labels + share->first : labels;
        distances = job->labels ? job->distances + share->first : distances;
        data_pad(fit.data, fit.centroids, job->centroids, job->config->k);
        status = fit_label(&fit, labels, distances, err);
    }
    if (status == STATUS_OK)
        status = shard_collect(&shard, job->labels, labels, sizeof *labels, err);
    if (status == STATUS_OK)
        status = shard_collect(&shard, job->distances, distances, sizeof *distances, err);
    shard_close(&shard);
    return status;
}

enum status cluster_assign(int32_t *labels, float *distances, const struct cluster_devices *devices,
                           const struct matrix_source *source, const float *centroids, uint32_t k,
                           const struct cluster_config *config, struct error *err)
{
    if (cluster_check(source, config, k, err) != STATUS_OK)
        return err->status;
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t j = 0; j < source->dimension; j++)
            if (!isfinite(centroids[(size_t)i * source->dimension + j]))
                return error_set(err, STATUS_FAILED, "centroid %u is not finite in column %u", i,
                                 j);
    struct cluster_config with_k = *config;
    with_k.k = k;
    struct labelling labelling = {labels, distances, &with_k, centroids};
    const struct run_job job = {
        .source = source, .config = &with_k, .main = label_main, .context = &labelling};
    return cluster_run_ranks(&job, devices, err);
}
