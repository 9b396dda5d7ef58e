/* measures.c: the same bits wherever they are computed: distances are canonical, sums over rows are
 * pairwise within blocks and blocks come in order, all other sums go one by one in the order of
 * rows, clusters or columns.
 *
 * The silhouette needs all pairs of rows, so it is that of a sample. The distances between its rows
 * do not depend on k: they are measured once.
 *
 * A row of weight w counts as w rows in one place. Weights are taken as they were given here, not
 * in the units of weights.h: it matters whether a row is one or several. Where they are all 1,
 * every product below is exact and every sum of them a number of rows. */
#include "cluster/measures.h"
#include "cluster/canonical.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of canonical_random; restarts use the streams from 0 on, their batches those from 2^31 on. */
#define SAMPLE_STREAM UINT32_MAX

static double weight_of(const struct measures *measures, uint64_t row)
{
    return measures->weights ? (double)measures->weights[row] : 1;
}

/* What is left of the weight of a cluster without one row of it: a row is left out once, or with
 * all of its weight if that is less. */
static double without_one(double cluster, double weight)
{
    return cluster - (weight < 1 ? weight : 1);
}

/* --- the sample ------------------------------------------------------------------------------ */

/* Whether `row` is among the first `count` of ascending rows; *place is where it is or belongs. */
static bool find_row(uint32_t *place, const uint64_t *rows, uint32_t count, uint64_t row)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    *place = low;
    return low < count && rows[low] == row;
}

/* Each set of rows is equally likely (Floyd: Bentley, Programming pearls: a sample of brilliance,
 * 1987). */
static void draw_sample(uint64_t *rows, uint32_t sample, uint64_t n, uint64_t seed)
{
    for (uint32_t i = 0; i < sample; i++) {
        const uint64_t last = n - sample + i;
        uint64_t row = (uint64_t)(canonical_random(seed, SAMPLE_STREAM, i) * ((double)last + 1));
        uint32_t place;
        if (row > last)
            row = last;
        if (find_row(&place, rows, i, row)) {
            row = last;
            place = i;
        }
        memmove(rows + place + 1, rows + place, (i - place) * sizeof *rows);
        rows[place] = row;
    }
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Draws with chances proportional to the weights, one by one, so that a row may come several times;
 * `times` counts that, `targets` has room for `draws`. Returns the number of different rows. */
static uint32_t draw_by_weight(uint64_t *rows, double *times, double *targets, uint32_t draws,
                               const struct measures *measures, uint64_t seed)
{
    const uint64_t n = measures->shards->rows;
    uint32_t taken = 0, next = 0;
    double reached = 0;
    for (uint32_t i = 0; i < draws; i++)
        targets[i] = canonical_random(seed, SAMPLE_STREAM, i) * measures->weight;
    qsort(targets, draws, sizeof *targets, compare_numbers);
    for (uint64_t row = 0; row < n && next < draws; row++) {
        const uint32_t before = next;
        reached += (double)measures->weights[row];
        while (next < draws && targets[next] < reached)
            next++;
        if (next > before) {
            rows[taken] = row;
            times[taken++] = next - before;
        }
    }
    return taken;
}

/* All rows of weight, or as many as a sample holds. */
static enum status choose_sample(struct measures *measures, uint32_t most, uint64_t seed,
                                 struct error *err)
{
    const struct data *data = &measures->shards->shard[0].data;
    uint64_t weighty = data->rows;
    for (uint64_t i = 0; i < data->rows && measures->weights; i++)
        weighty -= measures->weights[i] == 0;
    measures->sampled = weighty > most;
    measures->sample = measures->sampled ? most : (uint32_t)weighty;
    measures->rows = malloc((measures->sample + 1) * sizeof *measures->rows);
    measures->sample_weight = malloc((measures->sample + 1) * sizeof *measures->sample_weight);
    double *targets = malloc((most + 1) * sizeof *targets);
    if (!measures->rows || !measures->sample_weight || !targets) {
        free(targets);
        return error_memory(err, 3 * (size_t)most * sizeof *targets, "a sample of rows");
    }
    if (!measures->sampled) {
        for (uint64_t row = 0, i = 0; row < data->rows; row++)
            if (weight_of(measures, row) > 0) {
                measures->rows[i] = row;
                measures->sample_weight[i++] = weight_of(measures, row);
            }
    } else if (data->weights.of_row) {
        measures->sample =
            draw_by_weight(measures->rows, measures->sample_weight, targets, most, measures, seed);
    } else { /* all count the same */
        draw_sample(measures->rows, most, data->rows, seed);
        for (uint32_t i = 0; i < most; i++)
            measures->sample_weight[i] = 1;
    }
    free(targets);
    return STATUS_OK;
}

/* Where the distances from row i of the sample to those after it begin. */
static size_t pairs_of(uint32_t i, uint32_t sample)
{
    return (size_t)i * (2 * (size_t)sample - i - 1) / 2;
}

struct pair_job {
    const struct measures *measures;
    const float *values;
    uint32_t stride;
};

static void measure_pairs(void *context, uint64_t part)
{
    const struct pair_job *job = context;
    const uint32_t i = (uint32_t)part, sample = job->measures->sample;
    double *apart = job->measures->apart + pairs_of(i, sample);
    for (uint32_t j = i + 1; j < sample; j++)
        *apart++ = sqrt(canonical_distance(job->values + (size_t)i * job->stride,
                                           job->values + (size_t)j * job->stride, job->stride));
}

static enum status open_sample(struct measures *measures, uint64_t seed, struct error *err)
{
    const struct data *data = &measures->shards->shard[0].data;
    const uint32_t most = MEASURES_SAMPLE_VALUES / data->stride;
    enum status status =
        choose_sample(measures, most < MEASURES_SAMPLE ? most : MEASURES_SAMPLE, seed, err);
    if (status != STATUS_OK)
        return status;
    const uint32_t sample = measures->sample;
    const size_t bytes = (size_t)sample * data->stride * sizeof(float);
    const size_t pairs = pairs_of(sample, sample);
    struct pair_job job = {measures, NULL, data->stride};
    float *values = malloc(bytes + 1);
    measures->apart = malloc((pairs + 1) * sizeof *measures->apart);
    if (!values || !measures->apart)
        status = error_memory(err, bytes + pairs * sizeof *measures->apart, "a sample of rows");
    if (status == STATUS_OK)
        status = shards_rows(measures->shards, values, measures->rows, sample, err);
    job.values = values;
    if (status == STATUS_OK)
        workers_run(measures->shards->workers, measure_pairs, &job, sample);
    free(values);
    return status;
}

enum status measures_open(struct measures *measures, struct shards *shards,
                          const struct cluster_config *config, struct error *err)
{
    const uint64_t blocks = (shards->rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    *measures = (struct measures){.shards = shards, .weights = config->weights};
    for (uint64_t i = 0; i < shards->rows; i++) {
        const double weight = weight_of(measures, i);
        measures->weight += weight;
        measures->count += weight > 0 && weight < 1 ? 1 : weight;
    }
    measures->others = calloc(shards->count, sizeof(cl_kernel));
    measures->sums = malloc(blocks * sizeof *measures->sums);
    if (!measures->others || !measures->sums)
        return error_memory(err, blocks * sizeof *measures->sums, "distances");
    for (uint32_t i = 0; i < shards->count; i++) {
        struct shard *shard = &shards->shard[i];
        if (!shard->lane->host_exact && ocl_kernel(&measures->others[i], shard->assign.program,
                                                   "other_distances", err) != STATUS_OK)
            return shards_blame(shards, shard, err);
    }
    return open_sample(measures, config->seed, err);
}

void measures_close(struct measures *measures)
{
    for (uint32_t i = 0; measures->others && i < measures->shards->count; i++)
        if (measures->others[i])
            clReleaseKernel(measures->others[i]);
    free(measures->others);
    free(measures->rows);
    free(measures->sample_weight);
    free(measures->apart);
    free(measures->sums);
    *measures = (struct measures){0};
}

/* --- the silhouette of the sample ------------------------------------------------------------ */

/* Of one row: a is its distance from its own cluster, b from the nearest other one. */
static double silhouette_of(double a, double b)
{
    const double longer = a > b ? a : b;
    return longer > 0 ? (b - a) / longer : 0;
}

struct sample_job {
    const struct measures *measures;
    uint32_t clusters;
    uint32_t labels[MEASURES_SAMPLE]; /* of the clusters that the sample has, from 0 on */
    double weights[MEASURES_SAMPLE];  /* of these clusters */
    double values[MEASURES_SAMPLE];   /* of rows, times their weights */
};

static void measure_sampled(void *context, uint64_t part)
{
    struct sample_job *job = context;
    const uint32_t i = (uint32_t)part, sample = job->measures->sample, own = job->labels[i];
    const double *apart = job->measures->apart, *weight = job->measures->sample_weight;
    double sums[MEASURES_SAMPLE];
    for (uint32_t c = 0; c < job->clusters; c++)
        sums[c] = 0;
    for (uint32_t j = 0; j < i; j++)
        sums[job->labels[j]] += weight[j] * apart[pairs_of(j, sample) + (i - j - 1)];
    for (uint32_t j = i + 1; j < sample; j++)
        sums[job->labels[j]] += weight[j] * apart[pairs_of(i, sample) + (j - i - 1)];
    double nearest = INFINITY;
    for (uint32_t c = 0; c < job->clusters; c++)
        if (c != own && sums[c] / job->weights[c] < nearest)
            nearest = sums[c] / job->weights[c];
    const double others = without_one(job->weights[own], weight[i]);
    job->values[i] = others > 0 ? weight[i] * silhouette_of(sums[own] / others, nearest) : 0;
}

/* Sums pairwise within blocks, blocks in order; `values` are overwritten. */
static double sum_in_blocks(double *values, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i += KMEANS_BLOCK_ROWS) {
        double block[KMEANS_BLOCK_ROWS];
        const uint64_t left = count - i;
        const uint32_t rows = left < KMEANS_BLOCK_ROWS ? (uint32_t)left : KMEANS_BLOCK_ROWS;
        memcpy(block, values + i, rows * sizeof *block);
        sum += canonical_block_sum(block, rows);
    }
    return sum;
}

/* As scikit-learn has it: a row alone in its cluster counts as 0; there must be two clusters, and
 * fewer than rows (of which one of less weight than 1 is one, too). */
static enum status silhouette(double *out, const struct measures *measures,
                              const struct cluster_outcome *outcome, struct error *err)
{
    const uint32_t sample = measures->sample;
    uint32_t *number = calloc(outcome->k, sizeof *number); /* of a cluster, from 1 on */
    struct sample_job *job = calloc(1, sizeof *job);
    *out = NAN;
    if (!number || !job) {
        free(number);
        free(job);
        return error_memory(err, sizeof *job, "the silhouette");
    }
    job->measures = measures;
    double all = 0, count = 0;
    for (uint32_t i = 0; i < sample; i++) {
        const double weight = measures->sample_weight[i];
        uint32_t *label = &number[outcome->labels[measures->rows[i]]];
        if (*label == 0)
            *label = ++job->clusters;
        job->labels[i] = *label - 1;
        job->weights[*label - 1] += weight;
        all += weight;
        count += weight < 1 ? 1 : weight;
    }
    if (job->clusters > 1 && job->clusters < count) {
        workers_run(measures->shards->workers, measure_sampled, job, sample);
        *out = sum_in_blocks(job->values, sample) / all;
    }
    free(number);
    free(job);
    return STATUS_OK;
}

/* --- the simplified silhouette --------------------------------------------------------------- */

struct other_job {
    const struct measures *measures;
    const struct cluster_outcome *outcome;
    const double *cluster_weight;
    struct shard *shard;
    const struct tile *tile;
    const float *rows, *centroids; /* rows: where the host has them */
};

/* Canonical distances of a block of rows to the nearest centroid but their own. */
static void host_others(void *context, uint64_t part)
{
    const struct other_job *job = context;
    const uint32_t stride = job->shard->data.stride;
    const uint64_t from = part * KMEANS_BLOCK_ROWS;
    for (uint64_t i = from; i < from + KMEANS_BLOCK_ROWS && i < job->tile->rows; i++) {
        const uint32_t own = (uint32_t)job->outcome->labels[job->tile->first + i];
        double nearest = INFINITY;
        for (uint32_t c = 0; c < job->outcome->k; c++)
            if (c != own)
                nearest =
                    fmin(nearest, canonical_distance(job->rows + i * stride,
                                                     job->centroids + (size_t)c * stride, stride));
        job->shard->tile_distances[i] = nearest;
    }
}

static enum status device_others(const struct other_job *job, cl_kernel others, struct tile *tile,
                                 struct error *err)
{
    struct assign *assign = &job->shard->assign;
    struct lane *lane = assign->lane;
    double *distances = job->shard->tile_distances;
    const cl_uint rows = tile->rows, stride = assign->data->stride, k = job->outcome->k;
    enum status status = lane_write(lane, "labels", tile->labels, 0, rows * sizeof(cl_int),
                                    job->outcome->labels + tile->first, err);
    if (status == STATUS_OK)
        status = ocl_args(others, err, sizeof tile->x, &tile->x, sizeof(cl_mem),
                          &assign->filter->centroids, sizeof(cl_mem), &tile->labels, sizeof(cl_mem),
                          &assign->tile_distances, sizeof rows, &rows, sizeof stride, &stride,
                          sizeof k, &k, OCL_ARGS_END);
    if (status == STATUS_OK)
        status = lane_launch(lane, "other distances", others,
                             (uint64_t)rows * (lane->tiled ? KMEANS_LANES : 1),
                             lane->tiled ? assign->filter->width : 64, err);
    if (status == STATUS_OK)
        status = fetch_copy(&assign->data->fetch, "distances", assign->tile_distances,
                            rows * sizeof *distances, distances, err);
    return status;
}

/* A block's rows, from their distances; it takes the stored ones to their own centroids. */
static void sum_simplified(void *context, uint64_t part)
{
    const struct other_job *job = context;
    const struct cluster_outcome *outcome = job->outcome;
    const uint64_t from = part * KMEANS_BLOCK_ROWS;
    double block[KMEANS_BLOCK_ROWS];
    uint32_t rows = 0;
    for (; rows < KMEANS_BLOCK_ROWS && from + rows < job->tile->rows; rows++) {
        const uint64_t row = job->tile->first + from + rows;
        const double weight = weight_of(job->measures, row);
        block[rows] = without_one(job->cluster_weight[outcome->labels[row]], weight) > 0
                          ? weight * silhouette_of(sqrt((double)outcome->distances[row]),
                                                   sqrt(job->shard->tile_distances[from + rows]))
                          : 0;
    }
    job->measures->sums[job->tile->first / KMEANS_BLOCK_ROWS + part] =
        canonical_block_sum(block, rows);
}

static enum status simplified_of_tile(struct other_job *job, struct tile *tile, struct error *err)
{
    struct shard *shard = job->shard;
    const uint32_t blocks = (tile->rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    cl_kernel others = job->measures->others[shard - job->measures->shards->shard];
    enum status status = STATUS_OK;
    job->tile = tile;
    if (others) {
        status = device_others(job, others, tile, err);
    } else {
        float *rows;
        status = data_map(&rows, &shard->data, tile, err);
        if (status != STATUS_OK)
            return status;
        job->rows = rows;
        workers_run(shard->lane->workers, host_others, job, blocks);
        status = data_unmap(&shard->data, tile, rows, err);
        lane_settle(shard->lane);
    }
    if (status == STATUS_OK)
        workers_run(shard->lane->workers, sum_simplified, job, blocks);
    return status;
}

struct simplified_pass {
    struct measures *measures;
    const struct cluster_outcome *outcome;
    const double *cluster_weight;
    float *centroids;
};

static enum status simplified_of_share(void *context, struct shard *shard, struct error *err)
{
    const struct simplified_pass *pass = context;
    struct other_job job = {.measures = pass->measures,
                            .outcome = pass->outcome,
                            .cluster_weight = pass->cluster_weight,
                            .shard = shard,
                            .centroids = pass->centroids};
    struct data *data = &shard->data;
    struct tile *tile;
    bool incremental;
    enum status status = assign_centroids(&shard->assign, &incremental, pass->centroids,
                                          pass->outcome->k, NULL, NULL, err);
    if (status == STATUS_OK)
        status = data_begin_at_either_end(data, err);
    while (status == STATUS_OK && (status = data_next(data, &tile, err)) == STATUS_OK) {
        status = simplified_of_tile(&job, tile, err);
        if (status == STATUS_OK)
            status = data_done(data, tile, err);
    }
    data_end(data);
    return status == STATUS_END ? STATUS_OK : status;
}

/* The silhouette with distances to centroids in place of those to all rows (Hruschka, de Castro
 * and Campello 2004); of all rows. `centroids` are padded. */
static enum status simplified(double *out, struct measures *measures,
                              const struct cluster_outcome *outcome, const double *cluster_weight,
                              float *centroids, struct error *err)
{
    struct simplified_pass pass = {measures, outcome, cluster_weight, centroids};
    enum status status = shards_run(measures->shards, simplified_of_share, &pass, err);
    double sum = 0;
    for (uint64_t i = 0; i * KMEANS_BLOCK_ROWS < outcome->rows && status == STATUS_OK; i++)
        sum += measures->sums[i];
    if (status == STATUS_OK)
        *out = sum / measures->weight;
    return status;
}

/* --- measures of the centroids --------------------------------------------------------------- */

struct centroid_job {
    const float *centroids;
    const double *spread; /* the mean distance of a cluster's rows from its centroid */
    double *worst;
    uint32_t k, stride;
};

static void worst_neighbour(void *context, uint64_t part)
{
    const struct centroid_job *job = context;
    double worst = 0;
    for (uint32_t c = 0; c < job->k; c++) {
        if (c == part)
            continue;
        const double apart =
            sqrt(canonical_distance(job->centroids + (size_t)part * job->stride,
                                    job->centroids + (size_t)c * job->stride, job->stride));
        const double ratio = (job->spread[part] + job->spread[c]) / apart;
        if (apart > 0 && ratio > worst)
            worst = ratio;
    }
    job->worst[part] = worst;
}

/* Davies and Bouldin 1979, with the mean distance and Euclidean length, as scikit-learn. */
static enum status davies_bouldin(double *out, const struct measures *measures,
                                  const struct cluster_outcome *outcome,
                                  const double *cluster_weight, const float *centroids,
                                  struct error *err)
{
    const uint32_t k = outcome->k;
    double *spread = calloc(k, sizeof *spread), *worst = calloc(k, sizeof *worst);
    enum status status = STATUS_OK;
    if (!spread || !worst)
        status = error_memory(err, 2 * (size_t)k * sizeof *spread, "clusters' spreads");
    if (status == STATUS_OK) {
        for (uint64_t i = 0; i < outcome->rows; i++)
            spread[outcome->labels[i]] +=
                weight_of(measures, i) * sqrt((double)outcome->distances[i]);
        for (uint32_t c = 0; c < k; c++)
            spread[c] /= cluster_weight[c];
        struct centroid_job job = {centroids, spread, worst, k,
                                   measures->shards->shard[0].data.stride};
        workers_run(measures->shards->workers, worst_neighbour, &job, k);
        *out = 0;
        for (uint32_t c = 0; c < k; c++)
            *out += worst[c];
        *out /= k;
    }
    free(spread);
    free(worst);
    return status;
}

/* Calinski and Harabasz 1974; 1 where every row lies on its centroid, as scikit-learn. */
static double calinski_harabasz(const struct measures *measures,
                                const struct cluster_outcome *outcome, const double *cluster_weight,
                                const float *centroids)
{
    const struct data *data = &measures->shards->shard[0].data;
    double between = 0;
    for (uint32_t c = 0; c < outcome->k; c++) {
        double sum = 0;
        for (uint32_t j = 0; j < data->dimension; j++) {
            const double mean =
                data->weights.of_row
                    ? column_stats_weighted_mean(&data->weighted, j, data->weights.total)
                    : column_stats_mean(&data->stats, j);
            const double t = (double)centroids[(size_t)c * data->stride + j] - mean;
            sum += t * t;
        }
        between += cluster_weight[c] * sum;
    }
    if (!(outcome->inertia > 0))
        return 1;
    return between * (measures->count - outcome->k) / (outcome->inertia * (double)(outcome->k - 1));
}

enum status measures_take(struct cluster_measures *out, struct measures *measures,
                          const struct cluster_outcome *outcome, struct error *err)
{
    const struct data *data = &measures->shards->shard[0].data;
    *out = (struct cluster_measures){NAN, NAN, NAN, NAN};
    if (outcome->k < 2 || outcome->k >= measures->count)
        return STATUS_OK;
    const size_t bytes = outcome->k * data->stride * sizeof(float);
    float *centroids = calloc(1, bytes);
    double *weight = calloc(outcome->k, sizeof *weight);
    enum status status = STATUS_OK;
    if (!centroids || !weight)
        status = error_memory(err, bytes, "centroids");
    for (uint32_t c = 0; c < outcome->k && status == STATUS_OK; c++)
        memcpy(centroids + (size_t)c * data->stride,
               outcome->centroids + (size_t)c * data->dimension,
               data->dimension * sizeof *centroids);
    for (uint64_t i = 0; i < outcome->rows && status == STATUS_OK; i++)
        weight[outcome->labels[i]] += weight_of(measures, i);
    if (status == STATUS_OK)
        status = silhouette(&out->silhouette, measures, outcome, err);
    if (status == STATUS_OK)
        status = simplified(&out->simplified_silhouette, measures, outcome, weight, centroids, err);
    if (status == STATUS_OK)
        status = davies_bouldin(&out->davies_bouldin, measures, outcome, weight, centroids, err);
    if (status == STATUS_OK)
        out->calinski_harabasz = calinski_harabasz(measures, outcome, weight, centroids);
    free(centroids);
    free(weight);
    return status;
}
