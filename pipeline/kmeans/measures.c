/* measures.c: gives the same bits on any device: distances are canonical, sums over rows are
 * pairwise within blocks with the blocks in order, and all other sums are in the order of rows,
 * clusters or columns.
 *
 * The silhouette needs all pairs of rows, so it is computed for a sample. The distances between the
 * sample's rows do not depend on k and are computed once.
 *
 * A row of weight w counts as w identical rows. Weights are used as given, not in the units of
 * weights.h, since it matters whether a row counts as one or several. If all are 1, every product
 * below is exact and every sum of them is a number of rows. */
#include "kmeans/measures.h"
#include "base/compare.h"
#include "kmeans/canonical.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* For canonical_random; restarts use the streams from 0 on, their batches those from 2^31 on. */
#define SAMPLE_STREAM UINT32_MAX

/* The weight of a row, counted from the rank's first. */
static double weight_of(const struct measures *measures, uint64_t row)
{
    return measures->weights ? (double)measures->weights[row] : 1;
}

/* The weight of a cluster without one of its rows: without weight 1, or all of the row's weight if
 * that is less. */
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

/* Every set of rows is equally likely (Floyd, in Bentley, Programming pearls: a sample of
 * brilliance, 1987). */
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

/* The part of the sample drawn from the rank's rows. */
struct drawing {
    const struct measures *measures;
    double reached; /* sum of the weights of all previous rows */
    uint64_t *rows;
    double *times;
    uint32_t taken;
};

/* Draws with probabilities proportional to the weights, one by one, so that a row may be drawn
 * several times, counted in `times`. targets: ascending. */
static void draw_by_weight(struct drawing *drawing, const double *targets, uint32_t draws)
{
    const struct data_share *share = &drawing->measures->shard->data.share;
    double reached = drawing->reached;
    uint32_t next = 0;
    while (next < draws && targets[next] < reached)
        next++;
    for (uint64_t row = 0; row < share->rows && next < draws; row++) {
        const uint32_t before = next;
        reached += (double)drawing->measures->weights[row];
        while (next < draws && targets[next] < reached)
            next++;
        if (next > before) {
            drawing->rows[drawing->taken] = share->first + row;
            drawing->times[drawing->taken++] = next - before;
        }
    }
}

/* Combines the ranks' parts of the sample. */
static enum status gather_sample(struct measures *measures, const struct drawing *own,
                                 struct error *err)
{
    struct comm *comm = measures->shard->comm;
    size_t *ends = calloc(2 * (size_t)comm->size, sizeof *ends), all = 0;
    if (!ends)
        return error_memory(err, 2 * comm->size * sizeof *ends, "ranks");
    ends[comm->rank] = own->taken;
    enum status status = comm_gather_each(comm, ends, sizeof *ends, err);
    if (status != STATUS_OK)
        goto out;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (rank == comm->rank) {
            memcpy(measures->rows + all, own->rows, own->taken * sizeof *own->rows);
            memcpy(measures->sample_weight + all, own->times, own->taken * sizeof *own->times);
        }
        all += ends[rank];
        ends[rank] = all * sizeof(uint64_t);
    }
    measures->sample = (uint32_t)all;
    status = comm_gather(comm, measures->rows, ends, err);
    if (status == STATUS_OK)
        status = comm_gather(comm, measures->sample_weight, ends, err);
out:
    free(ends);
    return status;
}

static void add_weights(void *context, double *sums)
{
    const struct measures *measures = context;
    for (uint64_t i = 0; i < measures->shard->data.share.rows; i++) {
        const double weight = weight_of(measures, i);
        sums[0] += weight;
        sums[1] += weight > 0 && weight < 1 ? 1 : weight;
    }
}

/* Takes all rows of positive weight, or as many as a sample holds. */
static enum status choose_sample(struct measures *measures, uint32_t most, uint64_t seed,
                                 struct error *err)
{
    const struct data *data = &measures->shard->data;
    enum { WEIGHT, COUNT };
    double sums[2] = {0, 0};
    int64_t weighty = (int64_t)data->share.rows;
    struct drawing own = {.measures = measures};
    SCOPED_HELD held = {0};
    double *targets = held_array(&held, most, sizeof *targets);
    own.rows = held_array(&held, most, sizeof *own.rows);
    own.times = held_array(&held, most, sizeof *own.times);
    measures->rows = held_array(&measures->held, most, sizeof *measures->rows);
    measures->sample_weight = held_array(&measures->held, most, sizeof *measures->sample_weight);
    enum status status = held_check(&held, "a sample of rows", err);
    if (status == STATUS_OK)
        status = held_check(&measures->held, "a sample of rows", err);
    if (status != STATUS_OK)
        return status;
    status = comm_fold(measures->shard->comm, sums, 2, &own.reached, add_weights, measures, err);
    measures->weight = sums[WEIGHT];
    measures->count = sums[COUNT];
    for (uint64_t i = 0; i < data->share.rows && measures->weights; i++)
        weighty -= measures->weights[i] == 0;
    if (status == STATUS_OK)
        status = comm_sum(measures->shard->comm, &weighty, &weighty, 1, err);
    if (status != STATUS_OK)
        return status;
    measures->sampled = weighty > (int64_t)most;
    if (measures->sampled && !data->weights.of_row) { /* all weights are equal */
        measures->sample = most;
        draw_sample(measures->rows, most, data->rows, seed);
        for (uint32_t i = 0; i < most; i++)
            measures->sample_weight[i] = 1;
        return status;
    }
    if (measures->sampled) {
        for (uint32_t i = 0; i < most; i++)
            targets[i] = canonical_random(seed, SAMPLE_STREAM, i) * measures->weight;
        qsort(targets, most, sizeof *targets, compare_doubles);
        draw_by_weight(&own, targets, most);
    } else {
        for (uint64_t row = 0; row < data->share.rows; row++)
            if (weight_of(measures, row) > 0) {
                own.rows[own.taken] = data->share.first + row;
                own.times[own.taken++] = weight_of(measures, row);
            }
    }
    status = gather_sample(measures, &own, err);
    return status;
}

/* Index of the first distance from row i of the sample to the later ones. */
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
    const struct data *data = &measures->shard->data;
    const uint32_t most = MEASURES_SAMPLE_VALUES / data->stride;
    if (choose_sample(measures, most < MEASURES_SAMPLE ? most : MEASURES_SAMPLE, seed, err) !=
        STATUS_OK)
        return err->status;
    const uint32_t sample = measures->sample;
    const size_t bytes = (size_t)sample * data->stride * sizeof(float);
    const size_t pairs = pairs_of(sample, sample);
    float *values = malloc(bytes + 1);
    measures->apart = held_array(&measures->held, pairs, sizeof *measures->apart);
    enum status status = values ? held_check(&measures->held, "a sample of rows", err)
                                : error_memory(err, bytes, "a sample of rows");
    if (status == STATUS_OK)
        status = shard_rows(measures->shard, values, measures->rows, sample, err);
    struct pair_job job = {measures, values, data->stride};
    if (status == STATUS_OK)
        workers_run(measures->shard->lane->workers, measure_pairs, &job, sample);
    free(values);
    return status;
}

enum status measures_open(struct measures *measures, struct shard *shard,
                          const struct cluster_config *config, struct error *err)
{
    const struct data_share *share = &shard->data.share;
    *measures = (struct measures){.shard = shard};
    measures->weights = config->weights ? config->weights + share->first : NULL;
    measures->blocks = (share->rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    measures->sums = held_array(&measures->held, measures->blocks, sizeof *measures->sums);
    return open_sample(measures, config->seed, err);
}

void measures_close(struct measures *measures)
{
    held_free(&measures->held);
    *measures = (struct measures){0};
}

/* --- the silhouette of the sample ------------------------------------------------------------ */

/* For one row: a is its distance from its own cluster, b from the nearest other one. */
static double silhouette_of(double a, double b)
{
    const double longer = a > b ? a : b;
    return longer > 0 ? (b - a) / longer : 0;
}

struct sample_job {
    const struct measures *measures;
    uint32_t clusters;
    uint32_t labels[MEASURES_SAMPLE]; /* numbering the sample's clusters from 0 */
    double weights[MEASURES_SAMPLE];  /* of these clusters */
    double values[MEASURES_SAMPLE];   /* per row, times its weight */
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

/* As in scikit-learn: a row alone in its cluster counts as 0; there must be at least two clusters,
 * and fewer than rows (a row of weight below 1 is one row, too). */
static enum status silhouette(double *out, struct measures *measures, struct error *err)
{
    const uint32_t sample = measures->sample;
    const struct cluster_outcome *outcome = measures->outcome;
    SCOPED_HELD held = {0};
    uint32_t *number = held_array(&held, outcome->k, sizeof *number); /* per cluster, from 1 on */
    struct sample_job *job = held_array(&held, 1, sizeof *job);
    int64_t labels[MEASURES_SAMPLE] = {0};
    enum status status = held_check(&held, "the silhouette", err);
    *out = NAN;
    if (status != STATUS_OK)
        return status;
    /* Each rank has the labels of its own rows. */
    for (uint32_t i = 0; i < sample; i++)
        if (shard_has_row(measures->shard, measures->rows[i]))
            labels[i] = outcome->labels[measures->rows[i] - measures->shard->data.share.first];
    status = comm_sum(measures->shard->comm, labels, labels, sample, err);
    if (status != STATUS_OK)
        return status;
    job->measures = measures;
    double all = 0, count = 0;
    for (uint32_t i = 0; i < sample; i++) {
        const double weight = measures->sample_weight[i];
        uint32_t *label = &number[labels[i]];
        if (*label == 0)
            *label = ++job->clusters;
        job->labels[i] = *label - 1;
        job->weights[*label - 1] += weight;
        all += weight;
        count += weight < 1 ? 1 : weight;
    }
    if (job->clusters > 1 && job->clusters < count) {
        workers_run(measures->shard->lane->workers, measure_sampled, job, sample);
        *out = 0;
        canonical_add_blocks(out, job->values, sample);
        *out /= all;
    }
    return status;
}

/* --- the simplified silhouette --------------------------------------------------------------- */

struct other_job {
    const struct measures *measures;
    const struct tile *tile;
};

/* Sums a block's rows from their other distances and the stored ones to their own centroids. */
static void sum_simplified(void *context, uint64_t part)
{
    const struct other_job *job = context;
    const struct measures *measures = job->measures;
    const struct cluster_outcome *outcome = measures->outcome;
    const uint64_t from = part * KMEANS_BLOCK_ROWS;
    double block[KMEANS_BLOCK_ROWS];
    uint32_t rows = 0;
    for (; rows < KMEANS_BLOCK_ROWS && from + rows < job->tile->rows; rows++) {
        const uint64_t row = job->tile->offset + from + rows;
        const double weight = weight_of(measures, row);
        block[rows] =
            without_one(measures->cluster_weight[outcome->labels[row]], weight) > 0
                ? weight * silhouette_of(sqrt((double)outcome->distances[row]),
                                         sqrt(measures->shard->tile_distances[from + rows]))
                : 0;
    }
    measures->sums[job->tile->offset / KMEANS_BLOCK_ROWS + part] = canonical_block_sum(block, rows);
}

/* The silhouette with distances to centroids instead of distances to all rows (Hruschka, de Castro
 * and Campello 2004), over all rows. */
static enum status simplified(double *out, struct measures *measures, struct error *err)
{
    const struct cluster_outcome *outcome = measures->outcome;
    struct other_job job = {.measures = measures};
    struct shard *shard = measures->shard;
    struct exact *exact = &shard->assign.exact;
    struct data *data = &shard->data;
    struct tile *tile;
    bool incremental;
    double sum;
    enum status status =
        assign_centroids(&shard->assign, &incremental, measures->centroids, outcome->k, NULL, err);
    if (status == STATUS_OK)
        status = data_begin(data, err);
    while (status == STATUS_OK && (status = data_next(data, &tile, err)) == STATUS_OK) {
        job.tile = tile;
        status = exact->ops->other_distances(exact, tile, shard->tile_distances,
                                             outcome->labels + tile->offset, outcome->k, err);
        if (status == STATUS_OK)
            workers_run(shard->lane->workers, sum_simplified, &job,
                        (tile->rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS);
    }
    if (data_end(data, status) != STATUS_OK ||
        comm_fold_values(shard->comm, &sum, NULL, measures->sums, measures->blocks, err) !=
            STATUS_OK)
        return err->status;
    *out = sum / measures->weight;
    return STATUS_OK;
}

/* --- measures of the centroids --------------------------------------------------------------- */

struct centroid_job {
    const float *centroids;
    const double *spread; /* mean distance of a cluster's rows from its centroid */
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

/* Adds row after row to the sum of its cluster. */
static void add_spreads(void *context, double *sums)
{
    const struct measures *measures = context;
    const struct cluster_outcome *outcome = measures->outcome;
    for (uint64_t i = 0; i < outcome->rows; i++)
        sums[outcome->labels[i]] += weight_of(measures, i) * sqrt((double)outcome->distances[i]);
}

static void add_cluster_weights(void *context, double *sums)
{
    const struct measures *measures = context;
    for (uint64_t i = 0; i < measures->outcome->rows; i++)
        sums[measures->outcome->labels[i]] += weight_of(measures, i);
}

/* Davies and Bouldin 1979, with mean distance and Euclidean length, as in scikit-learn. */
static enum status davies_bouldin(double *out, struct measures *measures, struct error *err)
{
    const uint32_t k = measures->outcome->k;
    SCOPED_HELD held = {0};
    double *spread = held_array(&held, k, sizeof *spread),
           *worst = held_array(&held, k, sizeof *worst);
    enum status status = held_check(&held, "clusters' spreads", err);
    if (status == STATUS_OK)
        status = comm_fold(measures->shard->comm, spread, k, NULL, add_spreads, measures, err);
    if (status != STATUS_OK)
        return status;
    for (uint32_t c = 0; c < k; c++)
        spread[c] /= measures->cluster_weight[c];
    struct centroid_job job = {measures->centroids, spread, worst, k, measures->shard->data.stride};
    workers_run(measures->shard->lane->workers, worst_neighbour, &job, k);
    *out = 0;
    for (uint32_t c = 0; c < k; c++)
        *out += worst[c];
    *out /= k;
    return status;
}

/* Calinski and Harabasz 1974; 1 if every row lies on its centroid, as in scikit-learn. */
static double calinski_harabasz(const struct measures *measures)
{
    const struct cluster_outcome *outcome = measures->outcome;
    const struct data *data = &measures->shard->data;
    double between = 0;
    for (uint32_t c = 0; c < outcome->k; c++) {
        double sum = 0;
        for (uint32_t j = 0; j < data->dimension; j++) {
            const double mean =
                data->weights.of_row
                    ? column_stats_weighted_mean(&data->weighted, j, data->weights.total)
                    : column_stats_mean(&data->stats, j);
            const double t = (double)measures->centroids[(size_t)c * data->stride + j] - mean;
            sum += t * t;
        }
        between += measures->cluster_weight[c] * sum;
    }
    if (!(outcome->inertia > 0))
        return 1;
    return between * (measures->count - outcome->k) / (outcome->inertia * (double)(outcome->k - 1));
}

enum status measures_take(struct cluster_measures *out, struct measures *measures,
                          const struct cluster_outcome *outcome, struct error *err)
{
    const struct data *data = &measures->shard->data;
    *out = (struct cluster_measures){NAN, NAN, NAN, NAN};
    if (outcome->k < 2 || outcome->k >= measures->count)
        return STATUS_OK;
    SCOPED_HELD held = {0};
    float *centroids = held_array(&held, (uint64_t)outcome->k * data->stride, sizeof *centroids);
    double *weight = held_array(&held, outcome->k, sizeof *weight);
    enum status status = held_check(&held, "centroids", err);
    measures->outcome = outcome;
    measures->cluster_weight = weight;
    measures->centroids = centroids;
    if (status == STATUS_OK) {
        data_pad(data, centroids, outcome->centroids, outcome->k);
        status = comm_fold(measures->shard->comm, weight, outcome->k, NULL, add_cluster_weights,
                           measures, err);
    }
    if (status == STATUS_OK)
        status = silhouette(&out->silhouette, measures, err);
    if (status == STATUS_OK)
        status = simplified(&out->simplified_silhouette, measures, err);
    if (status == STATUS_OK)
        status = davies_bouldin(&out->davies_bouldin, measures, err);
    if (status == STATUS_OK)
        out->calinski_harabasz = calinski_harabasz(measures);
    lane_settle(measures->shard->lane); /* after a stop, the centroids may still be on their way */
    return status;
}
