/* seed_parts.c: greedy k-means++ of many small sets of rows, each by one work-group: seed_device.c takes a few
 * launches for each round, which would cost more than the work of a small set. */
#include "kmeans/canonical.h"
#include "kmeans/run.h"
#include "kmeans/seed.h"
#include <stdlib.h>
#include <string.h>

/* Rounds of a launch: the host can stop between launches. */
#define ROUNDS 32

struct parts {
    const struct seed_set *sets;
    uint32_t count;
    uint32_t *seeds; /* count x k */
    bool *done;
    const struct cluster_config *config;
};

struct part_buffers {
    cl_kernel kernel;
    cl_mem rows, random, upto, distances, mask, seeds, found;
    cl_uint *host_rows, *host_found;
    double *host_random;
};

static enum status open_buffers(struct part_buffers *buffers, struct lane_held **held,
                                const struct shard *shard, const struct parts *parts,
                                struct error *err)
{
    const struct data *data = &shard->data;
    const size_t rows = data->rows, count = parts->count, seeds = count * parts->config->k;
    const struct lane_wanted wanted[] = {
        KERNEL(buffers->kernel, "kmeans_exact", shard->assign.exact.options, "seed_parts"),
        BUFFER(buffers->rows, 2 * count * sizeof(cl_uint)),
        BUFFER(buffers->random, ROUNDS * KMEANS_TRIALS_MAX * sizeof(double)),
        BUFFER(buffers->upto, (rows / KMEANS_BLOCK_ROWS + count + 1) * sizeof(double)),
        BUFFER(buffers->distances, rows * sizeof(double)),
        BUFFER(buffers->mask, rows * sizeof(cl_uint)),
        BUFFER(buffers->seeds, seeds * sizeof(cl_uint)),
        BUFFER(buffers->found, count * sizeof(cl_uint)),
        HOST(buffers->host_rows, 2 * count),
        HOST(buffers->host_found, count),
        HOST(buffers->host_random, ROUNDS * KMEANS_TRIALS_MAX)};
    enum status status = lane_hold(held, data->lane, wanted, COUNT_OF(wanted), "seeding", err);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct seed_set *set = &parts->sets[i];
        buffers->host_rows[2 * i] = (cl_uint)set->first;
        buffers->host_rows[2 * i + 1] = (cl_uint)set->rows;
        parts->seeds[(size_t)i * parts->config->k] =
            (uint32_t)(canonical_random(parts->config->seed, 0, 0) * (double)set->rows);
    }
    if (status == STATUS_OK)
        status = lane_write(data->lane, "rows of parts", buffers->rows, 0,
                            2 * count * sizeof(cl_uint), buffers->host_rows, err);
    if (status == STATUS_OK)
        status = lane_write(data->lane, "found", buffers->found, 0, count * sizeof(cl_uint),
                            buffers->host_found, err);
    return status == STATUS_OK ? lane_write(data->lane, "seeds", buffers->seeds, 0,
                                            seeds * sizeof(cl_uint), parts->seeds, err)
                               : status;
}

static enum status run_rounds(struct part_buffers *buffers, const struct shard *shard,
                              const struct parts *parts, struct error *err)
{
    struct lane *lane = shard->lane;
    const struct seed_draws draws = seed_draws_of(parts->config);
    const size_t group = shard->filter.width;
    const cl_uint stride = shard->data.stride, k = parts->config->k, trials = draws.trials;
    enum status status = STATUS_OK;
    for (cl_uint seed = 0, rounds; seed < k && status == STATUS_OK; seed += rounds) {
        rounds = k - seed < ROUNDS ? k - seed : ROUNDS;
        for (cl_uint r = 0; r < rounds; r++)
            if (seed + r > 0)
                seed_random(buffers->host_random + (size_t)r * KMEANS_TRIALS_MAX, &draws, seed + r);
        status = lane_check_stop(lane, err);
        if (status == STATUS_OK)
            status =
                lane_write(lane, "random numbers", buffers->random, 0,
                           ROUNDS * KMEANS_TRIALS_MAX * sizeof(double), buffers->host_random, err);
        if (status == STATUS_OK)
            status = LANE_RUN(lane, "seed parts", buffers->kernel, parts->count * group, group, err,
                              OCL_ARG(shard->data.tiles[0].x), OCL_ARG(buffers->rows),
                              OCL_ARG(buffers->random), OCL_ARG(buffers->upto),
                              OCL_ARG(buffers->distances), OCL_ARG(buffers->mask),
                              OCL_ARG(buffers->seeds), OCL_ARG(buffers->found), OCL_ARG(stride),
                              OCL_ARG(k), OCL_ARG(trials), OCL_ARG(seed), OCL_ARG(rounds));
    }
    if (status == STATUS_OK)
        status = lane_read(lane, "seeds", buffers->seeds, 0,
                           (size_t)parts->count * k * sizeof(cl_uint), parts->seeds, err);
    return status == STATUS_OK ? lane_read(lane, "found", buffers->found, 0,
                                           parts->count * sizeof(cl_uint), buffers->host_found, err)
                               : status;
}

static enum status parts_main(void *context, const struct rank *rank, struct error *err)
{
    const struct parts *parts = context;
    struct shard shard = {0};
    struct lane_held *held = NULL;
    struct part_buffers buffers = {0};
    const uint64_t columns = rank->source->dimension + KMEANS_LANES;
    if (!rank->lane->tiled || rank->lane->host_exact || columns > KMEANS_PART_STRIDE ||
        rank->source->rows * columns * sizeof(float) > rank->lane->device->max_allocation)
        return STATUS_OK;
    enum status status = shard_open(&shard, rank, parts->config, err);
    const bool possible = status == STATUS_OK && shard.data.resident && shard.data.tile_count == 1;
    if (possible)
        status = open_buffers(&buffers, &held, &shard, parts, err);
    if (possible && status == STATUS_OK)
        status = run_rounds(&buffers, &shard, parts, err);
    for (uint32_t i = 0; i < parts->count && possible && status == STATUS_OK; i++)
        parts->done[i] = buffers.host_found[i] == parts->config->k;
    lane_settle(rank->lane);
    lane_release(&held);
    shard_close(&shard);
    return status;
}

enum status seed_sets(uint32_t *seeds, bool *done, const struct seed_set *sets, uint32_t count,
                      const struct cluster_devices *devices, const struct matrix_source *source,
                      const struct cluster_config *config, struct error *err)
{
    struct parts parts = {sets, count, seeds, done, config};
    const struct run_job job = {
        .source = source, .config = config, .main = parts_main, .context = &parts};
    const struct cluster_devices one = {devices->contexts, 1};
    memset(done, 0, count * sizeof *done);
    const enum status status = cluster_run_ranks(&job, &one, err);
    if (status != STATUS_FAILED || !cluster_device_failed(err))
        return status;
    /* Memory may suffice for one set at a time; if not, that fails with the same message. */
    *err = (struct error)ERROR_INIT;
    return STATUS_OK;
}
