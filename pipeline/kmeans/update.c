/* update.c: sums rows on the host's threads, and computes centroids and inertia from the sums. */
#include "kmeans/update.h"
#include "base/avx2.h"
#include "kmeans/canonical.h"
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Added to an integer below 2^51, it puts that into the lowest bits of a float64. */
#define MAGIC 0x1.8p52

static enum status choose_scales(struct update *update, struct lane_held **held, uint64_t samples,
                                 struct error *err)
{
    const struct data *data = update->data;
    const int row_bits = data->weights.of_row
                             ? data->weights.sum_bits
                             : weights_bits_for(samples > data->rows ? samples : data->rows);
    const struct lane_wanted wanted[] = {HOST(update->scales, data->stride),
                                         HOST(update->units, data->stride),
                                         HOST(update->inverse, data->stride)};
    if (lane_hold(held, update->lane, wanted, COUNT_OF(wanted), "scales", err) != STATUS_OK)
        return err->status;
    update->small = WEIGHTS_SUM_BITS - row_bits <= 51;
    for (uint32_t j = 0; j < data->dimension; j++) {
        int exponent = 0; /* every |x_j| < 2^exponent */
        if (data->stats.largest[j] > 0)
            frexpf(data->stats.largest[j], &exponent);
        update->scales[j] = WEIGHTS_SUM_BITS - row_bits - exponent;
        update->units[j] = ldexp(1.0, -update->scales[j]);
        update->inverse[j] = ldexp(1.0, update->scales[j]);
    }
    return STATUS_OK;
}

static size_t values_of_sums(const struct update *update)
{
    return (size_t)update->k * update->data->stride;
}

/* pinned: the device fills the values in each iteration, several times as fast (see fetch.h). */
static enum status open_sums(struct update *update, struct lane_held **held, struct sums *sums,
                             bool pinned, struct error *err)
{
    const size_t values = values_of_sums(update);
    const struct lane_wanted in_memory = HOST(sums->values, values),
                             in_pinned = PINNED(sums->values, values * sizeof *sums->values);
    const struct lane_wanted wanted[] = {HOST(sums->tallies, UPDATE_TALLIES + update->k),
                                         HOST(sums->weights, update->k)};
    if (lane_hold(held, update->lane, wanted, update->data->weights.of_row ? 2 : 1,
                  "sums of clusters", err) != STATUS_OK ||
        lane_hold(held, update->lane, pinned ? &in_pinned : &in_memory, 1,
                  pinned ? "sums on the host" : "sums of clusters", err) != STATUS_OK)
        return err->status;
    sums->counts = (uint64_t *)(sums->tallies + UPDATE_TALLIES);
    return STATUS_OK;
}

bool update_keeps_subnormals(const struct ocl_device *device)
{
    cl_device_fp_config config = 0;
    clGetDeviceInfo(device->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
    return device->fp64 && (config & CL_FP_DENORM);
}

enum status update_open(struct update *update, struct lane_held **held, struct data *data,
                        uint32_t k, uint64_t samples, struct error *err)
{
    *update = (struct update){.lane = data->lane, .data = data, .k = k};
    /* One of several ranks: all sums are combined on the host. */
    const bool several = data->share.rows < data->rows;
    const struct lane_wanted moved = HOST(update->moved, data->tile_rows);
    if (choose_scales(update, held, samples, err) != STATUS_OK ||
        open_sums(update, held, &update->own, several, err) != STATUS_OK ||
        lane_hold(held, data->lane, &moved, 1, "sums of clusters", err) != STATUS_OK)
        return err->status;
    if (several)
        return open_sums(update, held, &update->all, false, err);
    update->all = update->own;
    return STATUS_OK;
}

void update_reset(struct update *update, bool values)
{
    struct sums *const both[2] = {&update->own, &update->all};
    for (int i = 0; i < 2; i++) {
        memset(both[i]->counts, 0, update->k * sizeof *both[i]->counts);
        if (both[i]->weights)
            memset(both[i]->weights, 0, update->k * sizeof *both[i]->weights);
        if (values)
            memset(both[i]->values, 0, values_of_sums(update) * sizeof *both[i]->values);
    }
}

/* --- a tile's moves -------------------------------------------------------------------------- */

/* Lists the rows that moved in update->moved and updates the counts. */
static uint32_t list_moves(struct update *update, const float *weights, const int32_t *old_labels,
                           const int32_t *new_labels, uint32_t rows)
{
    struct sums *own = &update->own;
    uint32_t moved = 0;
    for (uint32_t i = 0; i < rows; i++) {
        if (old_labels[i] == new_labels[i] || (weights && weights[i] == 0))
            continue;
        const int64_t units = weights ? weights_units(&update->data->weights, weights[i]) : 0;
        update->moved[moved++] = i;
        own->counts[new_labels[i]]++;
        if (weights)
            own->weights[new_labels[i]] += units;
        if (old_labels[i] < 0)
            continue;
        own->counts[old_labels[i]]--;
        if (weights)
            own->weights[old_labels[i]] -= units;
    }
    return moved;
}

/* A part takes the moved rows of some clusters: those whose numbers are equal modulo `groups`; if
 * there are fewer clusters than threads need, only some of the columns. */
struct sum_job {
    const struct update *update;
    const float *rows, *weights;
    const int32_t *old_labels, *new_labels;
    uint32_t moved, groups, columns; /* groups: of clusters, a power of 2; columns: per part */
};

/* Adds a row's values times its weight (negative: subtracts them), rounded like canonical_fixed. */
ALWAYS_INLINE void add_values(int64_t *sums, const float *row, const double *inverse,
                              uint32_t columns, double weight)
{
    for (uint32_t j = 0; j < columns; j++) {
        const double value = (double)row[j] * weight * inverse[j];
        sums[j] += (int64_t)(value + copysign(0.5, value));
    }
}

#if defined(__x86_64__)
/* The same for values of less than 2^51 units, which MAGIC puts into the lowest bits of a float64;
 * columns: a multiple of KMEANS_LANES. */
__attribute__((target("avx2"))) static inline void add_values_avx2(int64_t *sums, const float *row,
                                                                   const double *inverse,
                                                                   uint32_t columns, double weight)
{
    const __m256d times = _mm256_set1_pd(weight), magic = _mm256_set1_pd(MAGIC);
    const __m256d half = _mm256_set1_pd(0.5), sign = _mm256_set1_pd(-0.0);
    for (uint32_t j = 0; j < columns; j += 4) {
        __m256i *sum = (__m256i *)(sums + j);
        const __m256d value =
            _mm256_mul_pd(_mm256_mul_pd(_mm256_cvtps_pd(_mm_loadu_ps(row + j)), times),
                          _mm256_loadu_pd(inverse + j));
        const __m256d whole =
            _mm256_round_pd(_mm256_add_pd(value, _mm256_or_pd(half, _mm256_and_pd(value, sign))),
                            _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        const __m256i shifted = _mm256_castpd_si256(_mm256_add_pd(whole, magic));
        _mm256_storeu_si256(
            sum, _mm256_add_epi64(_mm256_loadu_si256(sum),
                                  _mm256_sub_epi64(shifted, _mm256_castpd_si256(magic))));
    }
}
#define HAS_AVX2 __builtin_cpu_supports("avx2")
#else
#define add_values_avx2 add_values
#define HAS_AVX2        0
#endif

ALWAYS_INLINE void sum_body(const struct sum_job *job, uint64_t part,
                            void (*add)(int64_t *sums, const float *row, const double *inverse,
                                        uint32_t columns, double weight))
{
    const size_t stride = job->update->data->stride;
    const uint32_t group = (uint32_t)part & (job->groups - 1), mask = job->groups - 1;
    const uint32_t from = (uint32_t)(part / job->groups) * job->columns;
    const uint32_t left = (uint32_t)stride - from;
    const uint32_t columns = left < job->columns ? left : job->columns;
    const double *inverse = job->update->inverse + from;
    int64_t *sums = job->update->own.values + from;
    for (uint32_t i = 0; i < job->moved; i++) {
        const uint32_t at = job->update->moved[i];
        const uint32_t to = (uint32_t)job->new_labels[at], before = (uint32_t)job->old_labels[at];
        const float *row = job->rows + at * stride + from;
        const double weight = job->weights ? (double)job->weights[at] : 1;
        if ((to & mask) == group)
            add(sums + to * stride, row, inverse, columns, weight);
        if (job->old_labels[at] >= 0 && (before & mask) == group)
            add(sums + before * stride, row, inverse, columns, -weight);
    }
}

static void sum_plain(void *context, uint64_t part)
{
    sum_body(context, part, add_values);
}

static void sum_avx2(void *context, uint64_t part)
{
    sum_body(context, part, add_values_avx2);
}

enum status update_tile(uint64_t *moved, struct update *update, struct tile *tile,
                        const int32_t *old_labels, const int32_t *new_labels, struct error *err)
{
    struct data *data = update->data;
    struct workers *workers = update->lane->workers;
    const uint32_t wanted = workers_count(workers) > 1 ? 4 * workers_count(workers) : 1;
    const uint32_t lanes = data->stride / KMEANS_LANES;
    struct sum_job job = {.update = update,
                          .weights = tile->host_weights,
                          .old_labels = old_labels,
                          .new_labels = new_labels,
                          .groups = 1};
    float *rows;
    *moved = job.moved = list_moves(update, job.weights, old_labels, new_labels, tile->rows);
    if (job.moved == 0)
        return STATUS_OK;
    if (data_map(&rows, data, tile, err) != STATUS_OK)
        return err->status;
    job.rows = rows;
    while (job.groups < wanted && job.groups < update->k)
        job.groups *= 2;
    const uint32_t slices = wanted / job.groups > 1 ? wanted / job.groups : 1;
    job.columns = (lanes + slices - 1) / slices * KMEANS_LANES;
    workers_run(workers, update->small && HAS_AVX2 ? sum_avx2 : sum_plain, &job,
                (uint64_t)job.groups * ((data->stride + job.columns - 1) / job.columns));
    return data_unmap(data, tile, rows, err);
}

/* --- ranks ----------------------------------------------------------------------------------- */

enum status update_add_counts(struct update *update, struct error *err)
{
    struct comm *comm = update->data->comm;
    const struct sums *own = &update->own, *all = &update->all;
    enum status status =
        comm_sum(comm, all->tallies, own->tallies, UPDATE_TALLIES + update->k, err);
    return status == STATUS_OK && own->weights
               ? comm_sum(comm, all->weights, own->weights, update->k, err)
               : status;
}

enum status update_add_sums(struct update *update, struct error *err)
{
    return comm_sum(update->data->comm, update->all.values, update->own.values,
                    values_of_sums(update), err);
}

static void move_row(const struct update *update, struct sums *sums, const float *row, float weight,
                     uint32_t from, uint32_t to)
{
    const uint32_t stride = update->data->stride;
    const int64_t units = weights_units(&update->data->weights, weight);
    sums->counts[from]--;
    sums->counts[to]++;
    if (sums->weights) {
        sums->weights[from] -= units;
        sums->weights[to] += units;
    }
    for (uint32_t j = 0; j < stride; j++) {
        const int64_t value = canonical_fixed(row[j], weight, update->scales[j]);
        sums->values[(size_t)from * stride + j] -= value;
        sums->values[(size_t)to * stride + j] += value;
    }
}

void update_move_row(struct update *update, const float *row, float weight, uint32_t from,
                     uint32_t to, bool own)
{
    move_row(update, &update->all, row, weight, from, to);
    if (own && update->all.values != update->own.values)
        move_row(update, &update->own, row, weight, from, to);
}

/* --- what follows from the sums -------------------------------------------------------------- */

/* The total weight of a cluster's rows. */
static double weight_of_cluster(const struct update *update, uint64_t cluster)
{
    return update->all.weights
               ? ldexp((double)update->all.weights[cluster], -update->data->weights.scale)
               : (double)update->all.counts[cluster];
}

void update_centroid(const struct update *update, float *centroids, uint64_t cluster)
{
    const uint32_t stride = update->data->stride;
    const int64_t *sums = update->all.values + cluster * stride;
    float *centroid = centroids + cluster * stride;
    const double count = weight_of_cluster(update, cluster);
    if (count == 0)
        return;
    double factor = 1;
    if (update->data->transform.metric == METRIC_COSINE) {
        /* Spherical k-means: the direction of the mean. If the rows cancel out, there is none. */
        double lanes[KMEANS_LANES] = {0};
        for (uint32_t j = 0; j < stride; j++) {
            double mean = (double)sums[j] / count * update->units[j];
            lanes[j % KMEANS_LANES] += mean * mean;
        }
        const double square = canonical_lane_sum(lanes);
        if (square == 0)
            return;
        factor = 1 / sqrt(square);
    }
    for (uint32_t j = 0; j < stride; j++)
        centroid[j] = (float)((double)sums[j] / count * update->units[j] * factor);
}

/* With m the columns' means, the inertia of a cluster of weight n and sum S about c is (sum of |x -
 * m|^2, weighted) - 2 (c - m).(S - n m) + n |c - m|^2. */
double update_inertia_part(const struct update *update, const float *centroids, uint64_t cluster)
{
    const struct data *data = update->data;
    const int64_t *sums = update->all.values + cluster * data->stride;
    const float *about = centroids + cluster * data->stride;
    const double count = weight_of_cluster(update, cluster);
    double lanes[KMEANS_LANES] = {0};
    for (uint32_t j = 0; j < data->dimension && count > 0; j++) {
        double mean = column_stats_mean(&data->stats, j), shift = (double)about[j] - mean;
        double sum = (double)sums[j] * update->units[j] - count * mean;
        lanes[j % KMEANS_LANES] += shift * (count * shift - 2 * sum);
    }
    return canonical_lane_sum(lanes);
}

double update_scatter(const struct update *update)
{
    const struct data *data = update->data;
    double total = 0;
    for (uint32_t j = 0; j < data->dimension; j++)
        total +=
            data->weights.of_row
                ? column_stats_scatter_about(&data->weighted, j, column_stats_mean(&data->stats, j),
                                             data->weights.total)
                : column_stats_scatter(&data->stats, j);
    return total;
}
