/* outcome.c: a pass over the labelled rows for what the labels alone do not tell. */
#include "cluster/outcome.h"
#include "cluster/canonical.h"
#include <stdlib.h>
#include <string.h>

struct nearest_row {
    double distance;
    int64_t row;
};

/* Keeps the three smallest by distance, then row. */
static void keep_nearest(struct nearest_row *three, double distance, int64_t row)
{
    int place = 3;
    while (place > 0 && (three[place - 1].row < 0 || distance < three[place - 1].distance ||
                         (distance == three[place - 1].distance && row < three[place - 1].row)))
        place--;
    if (place == 3)
        return;
    memmove(three + place + 1, three + place, (size_t)(2 - place) * sizeof *three);
    three[place] = (struct nearest_row){distance, row};
}

/* What is worked out of a tile's distances, in parts of whole blocks. */
struct measure_job {
    const struct tile *tile;
    const struct cluster_outcome *out;
    double *distances;           /* of a tile, with room for all_rows */
    double *sums;                /* of blocks of all rows */
    struct nearest_row *nearest; /* k x 3 for each part */
    uint32_t k, parts, part_rows, all_rows;
};

static void measure_part(void *context, uint64_t part)
{
    const struct measure_job *job = context;
    struct nearest_row *nearest = job->nearest + part * job->k * 3;
    const uint64_t from = part * job->part_rows;
    for (uint64_t at = from; at < from + job->part_rows && at < job->tile->rows;
         at += KMEANS_BLOCK_ROWS) {
        double block[KMEANS_BLOCK_ROWS];
        const uint64_t left = job->tile->rows - at;
        const uint32_t rows = left < KMEANS_BLOCK_ROWS ? (uint32_t)left : KMEANS_BLOCK_ROWS;
        memcpy(block, job->distances + at, rows * sizeof *block);
        for (uint32_t i = 0; i < rows; i++) {
            const uint64_t row = job->tile->first + at + i;
            job->out->distances[row] = (float)block[i];
            keep_nearest(nearest + (size_t)job->out->labels[row] * 3, block[i], (int64_t)row);
            if (job->tile->host_weights)
                block[i] *= (double)job->tile->host_weights[at + i];
        }
        job->sums[(job->tile->first + at) / KMEANS_BLOCK_ROWS] = canonical_block_sum(block, rows);
    }
}

/* The first touch of many pages takes longer than reading into them, unless threads share it. */
static void touch_part(void *context, uint64_t part)
{
    const struct measure_job *job = context;
    const uint64_t from = part * job->part_rows, rows = job->all_rows;
    const uint64_t to = from + job->part_rows < rows ? from + job->part_rows : rows;
    if (from < to)
        memset(job->distances + from, 0, (to - from) * sizeof *job->distances);
}

/* As many parts as threads, unless their tables would be large beside the rows. */
static uint32_t measure_parts(const struct shard *shard, uint32_t k)
{
    const uint64_t most = shard->data.tile_rows / ((uint64_t)k * 3) + 1;
    const unsigned threads = workers_count(shard->lane->workers);
    return most < threads ? (uint32_t)most : threads;
}

/* The sums count no rows of weight 0. */
static void count_labels(struct cluster_outcome *out, const uint64_t *counts, bool weighted)
{
    memcpy(out->sizes, counts, out->k * sizeof *out->sizes);
    if (!weighted)
        return;
    memset(out->sizes, 0, out->k * sizeof *out->sizes);
    for (uint64_t i = 0; i < out->rows; i++)
        out->sizes[out->labels[i]]++;
}

/* What the shards find of all rows. */
struct measure_pass {
    const struct shards *shards;
    const struct cluster_outcome *out;
    double *sums;                /* of blocks of all rows */
    struct nearest_row *nearest; /* k x 3 for each shard */
};

static enum status measure_tiles(struct measure_job *job, struct shard *shard, struct error *err)
{
    struct tile *tile;
    struct workers *workers = shard->lane->workers;
    workers_run(workers, touch_part, job, job->parts);
    enum status status = data_begin(&shard->data, err);
    while (status == STATUS_OK && (status = data_next(&shard->data, &tile, err)) == STATUS_OK) {
        status = assign_tile_distances(&shard->assign, tile, job->distances, err);
        if (status != STATUS_OK)
            break;
        job->tile = tile;
        workers_run(workers, measure_part, job, job->parts);
        status = data_done(&shard->data, tile, err);
    }
    data_end(&shard->data);
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status measure_shard(void *context, struct shard *shard, struct error *err)
{
    const struct measure_pass *pass = context;
    const uint32_t k = pass->out->k, parts = measure_parts(shard, k);
    const uint32_t blocks = (shard->data.tile_rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    const size_t rows = (size_t)parts * k * 3;
    struct nearest_row *own = pass->nearest + (size_t)(shard - pass->shards->shard) * k * 3;
    struct measure_job job = {.out = pass->out,
                              .distances = shard->tile_distances,
                              .sums = pass->sums,
                              .nearest = malloc(rows * sizeof *job.nearest),
                              .k = k,
                              .parts = parts,
                              .part_rows = (blocks + parts - 1) / parts * KMEANS_BLOCK_ROWS,
                              .all_rows = shard->data.tile_rows};
    if (!job.nearest)
        return error_memory(err, rows * sizeof *job.nearest, "nearest rows");
    for (size_t i = 0; i < rows; i++)
        job.nearest[i] = (struct nearest_row){0, -1};
    enum status status = measure_tiles(&job, shard, err);
    for (size_t i = 0; i < rows && status == STATUS_OK; i++)
        if (job.nearest[i].row >= 0)
            keep_nearest(own + i % ((size_t)k * 3) / 3 * 3, job.nearest[i].distance,
                         job.nearest[i].row);
    free(job.nearest);
    return status;
}

enum status outcome_measure(struct cluster_outcome *out, struct shards *shards,
                            const uint64_t *counts, struct error *err)
{
    const struct weights *weights = &shards->shard[0].data.weights;
    const size_t each = (size_t)out->k * 3, rows = shards->count * each;
    const uint64_t blocks = (shards->rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    struct measure_pass pass = {.shards = shards,
                                .out = out,
                                .sums = malloc(blocks * sizeof *pass.sums),
                                .nearest = malloc(rows * sizeof *pass.nearest)};
    enum status status = STATUS_OK;
    if (!pass.sums || !pass.nearest)
        status = error_memory(err, rows * sizeof *pass.nearest, "nearest rows");
    for (size_t i = 0; i < rows && status == STATUS_OK; i++)
        pass.nearest[i] = (struct nearest_row){0, -1};
    if (status == STATUS_OK)
        status = shards_run(shards, measure_shard, &pass, err);
    out->inertia = 0;
    for (uint64_t i = 0; i < blocks && status == STATUS_OK; i++)
        out->inertia += pass.sums[i];
    out->inertia *= weights->unit;
    for (size_t i = each; i < rows && status == STATUS_OK; i++)
        if (pass.nearest[i].row >= 0)
            keep_nearest(pass.nearest + i % each / 3 * 3, pass.nearest[i].distance,
                         pass.nearest[i].row);
    for (size_t i = 0; i < each && status == STATUS_OK; i++)
        out->nearest[i] = pass.nearest[i].row;
    if (status == STATUS_OK)
        count_labels(out, counts, weights->of_row);
    free(pass.sums);
    free(pass.nearest);
    return status;
}
