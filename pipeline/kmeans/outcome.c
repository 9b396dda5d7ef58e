/* outcome.c: one pass over the labelled rows, for everything that does not follow from the labels
 * alone. */
#include "base/held.h"
#include "kmeans/canonical.h"
#include "kmeans/fit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct nearest_row {
    double distance; /* INFINITY: none */
    int64_t row;
};

static const struct nearest_row no_row = {INFINITY, -1};

/* Keeps the three smallest by distance, then row. */
static void keep_nearest(struct nearest_row *three, double distance, int64_t row)
{
    int place = 3;
    while (place > 0 && (distance < three[place - 1].distance ||
                         (distance == three[place - 1].distance && row < three[place - 1].row)))
        place--;
    if (place == 3)
        return;
    memmove(three + place + 1, three + place, (size_t)(2 - place) * sizeof *three);
    three[place] = (struct nearest_row){distance, row};
}

/* Measures a tile's distances, slice by slice. */
struct measure_job {
    const struct tile *tile;
    const struct cluster_outcome *out;
    double *sums;                /* of the rank's blocks */
    struct nearest_row *nearest; /* k x 3 per slice */
    struct nearest_row *own;     /* k x 3, over all slices */
    uint32_t k, slices;
};

static void forget_slice(void *context, uint64_t slice)
{
    const struct measure_job *job = context;
    const size_t rows = (size_t)job->k * 3;
    for (size_t i = 0; i < rows; i++)
        job->nearest[slice * rows + i] = no_row;
}

static void measure_slice(void *context, const struct fetch_slice *slice)
{
    const struct measure_job *job = context;
    const struct tile *tile = job->tile;
    const double *distances = slice->values;
    const uint64_t first = slice->offset / sizeof *distances; /* of the tile's rows */
    const uint64_t count = slice->bytes / sizeof *distances;
    struct nearest_row *nearest = job->nearest + (size_t)slice->number * job->k * 3;
    for (uint64_t at = 0; at < count; at += KMEANS_BLOCK_ROWS) {
        double block[KMEANS_BLOCK_ROWS];
        const uint64_t left = count - at, begin = tile->offset + first + at;
        const uint32_t rows = left < KMEANS_BLOCK_ROWS ? (uint32_t)left : KMEANS_BLOCK_ROWS;
        const int32_t *labels = job->out->labels + begin;
        float *rounded = job->out->distances + begin;
        memcpy(block, distances + at, rows * sizeof *block);
        for (uint32_t i = 0; i < rows; i++) {
            struct nearest_row *three = nearest + (size_t)labels[i] * 3;
            rounded[i] = (float)block[i];
            if (block[i] <= three[2].distance)
                keep_nearest(three, block[i], (int64_t)(tile->first + first + at + i));
        }
        for (uint32_t i = 0; i < rows && tile->host_weights; i++)
            block[i] *= (double)tile->host_weights[first + at + i];
        job->sums[begin / KMEANS_BLOCK_ROWS] = canonical_block_sum(block, rows);
    }
}

/* Clusters whose rows from all slices are merged at a time. */
#define MERGE_CLUSTERS 128

static void merge_slices(void *context, uint64_t part)
{
    const struct measure_job *job = context;
    const size_t from = part * MERGE_CLUSTERS * 3, all = (size_t)job->k * 3;
    const size_t to = from + MERGE_CLUSTERS * 3 < all ? from + MERGE_CLUSTERS * 3 : all;
    for (uint32_t s = 0; s < job->slices; s++)
        for (size_t i = from; i < to; i++) {
            const struct nearest_row *row = &job->nearest[s * all + i];
            if (row->row >= 0)
                keep_nearest(job->own + i / 3 * 3, row->distance, row->row);
        }
}

enum status outcome_measure(struct cluster_outcome *out, struct shard *shard,
                            const uint64_t *counts, struct error *err)
{
    struct comm *comm = shard->comm;
    struct workers *workers = shard->lane->workers;
    const uint32_t k = out->k, takers = fetch_takers(shard->lane);
    const size_t each = (size_t)k * 3;
    /* One slice per processing thread, unless their tables would be large relative to the rows. */
    const uint64_t most = shard->data.tile_rows / each + 1;
    const uint32_t slices = most < takers ? (uint32_t)most : takers;
    SCOPED_HELD held = {0};
    struct measure_job job = {.out = out, .k = k, .slices = slices};
    const uint64_t blocks = (shard->data.share.rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    job.sums = held_array(&held, blocks, sizeof *job.sums);
    job.nearest = held_array(&held, slices * each, sizeof *job.nearest);
    struct nearest_row *nearest =
        held_array(&held, comm->size * each, sizeof *nearest); /* of each rank */
    enum status status = held_check(&held, "nearest rows", err);
    if (status != STATUS_OK)
        return status;
    job.own = nearest + comm->rank * each;
    for (size_t i = 0; i < each; i++)
        job.own[i] = no_row;
    workers_run(workers, forget_slice, &job, slices);
    struct tile *tile;
    status = data_begin(&shard->data, err);
    while (status == STATUS_OK && (status = data_next(&shard->data, &tile, err)) == STATUS_OK) {
        job.tile = tile;
        status = assign_take_distances(&shard->assign, tile, slices, measure_slice, &job, err);
    }
    status = data_end(&shard->data, status);
    if (status != STATUS_OK)
        return status;
    workers_run(workers, merge_slices, &job, (k + MERGE_CLUSTERS - 1) / MERGE_CLUSTERS);
    status = comm_fold_values(comm, &out->inertia, NULL, job.sums, blocks, err);
    out->inertia *= shard->data.weights.unit;
    if (status == STATUS_OK)
        status = comm_gather_each(comm, nearest, each * sizeof *nearest, err);
    if (status != STATUS_OK)
        return status;
    for (size_t i = each; i < comm->size * each; i++)
        if (nearest[i].row >= 0)
            keep_nearest(nearest + i % each / 3 * 3, nearest[i].distance, nearest[i].row);
    for (size_t i = 0; i < each; i++)
        out->nearest[i] = nearest[i].row;
    memcpy(out->sizes, counts, k * sizeof *out->sizes);
    if (!shard->data.weights.of_row)
        return status;
    /* The counts leave out rows of weight 0. */
    memset(out->sizes, 0, k * sizeof *out->sizes);
    for (uint64_t i = 0; i < out->rows; i++)
        out->sizes[out->labels[i]]++;
    status = comm_sum(comm, (int64_t *)out->sizes, (int64_t *)out->sizes, k, err);
    return status;
}

enum status cluster_outcome_open(struct cluster_outcome *out, uint32_t k, uint32_t dimension,
                                 uint32_t iterations, struct error *err)
{
    const size_t values = (size_t)k * dimension;
    *out = (struct cluster_outcome){.k = k,
                                    .dimension = dimension,
                                    .iterations = iterations,
                                    .centroids = calloc(values + 1, sizeof *out->centroids),
                                    .inertia_history = calloc(iterations + 1ull, sizeof(double))};
    return out->centroids && out->inertia_history
               ? STATUS_OK
               : error_memory(err, values * sizeof *out->centroids, "centroids");
}

enum status cluster_outcome_copy(struct cluster_outcome *out, const struct cluster_outcome *from,
                                 struct error *err)
{
    const size_t bytes = (size_t)from->k * from->dimension * sizeof *out->centroids;
    struct cluster_outcome copy = {.k = from->k,
                                   .dimension = from->dimension,
                                   .iterations = from->iterations,
                                   .converged = from->converged,
                                   .centroids = out->centroids ? out->centroids : malloc(bytes),
                                   .inertia_history =
                                       calloc(from->iterations + 1ull, sizeof(double))};
    out->centroids = NULL;
    cluster_outcome_clear(out);
    *out = copy;
    if (!out->centroids || !out->inertia_history)
        return error_memory(err, bytes, "centroids");
    memcpy(out->centroids, from->centroids, bytes);
    if (from->iterations > 0)
        memcpy(out->inertia_history, from->inertia_history,
               from->iterations * sizeof *out->inertia_history);
    return STATUS_OK;
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
