/* update.c: sorting a tile's moves by cluster, and what follows from the sums. */
#include "cluster/update.h"
#include "cluster/canonical.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of segments' sums on the device at a time, and entries of a segment: many short segments
 * where there are many work-items to keep busy. */
#define PARTIAL_BYTES (32u << 20)
#define SEGMENT_CPU   1024
#define SEGMENT_TILED 64
#define GROUP_TILED   64

static enum status choose_scales(struct update *update, uint64_t samples, struct error *err)
{
    const struct data *data = update->data;
    const int row_bits = data->weights.of_row
                             ? data->weights.sum_bits
                             : weights_bits_for(samples > data->rows ? samples : data->rows);
    const struct lane_wanted wanted[] = {HOST(update->scales, data->stride),
                                         HOST(update->units, data->stride)};
    if (lane_hold(&update->held, update->lane, wanted, COUNT_OF(wanted), "scales", err) !=
        STATUS_OK)
        return err->status;
    for (uint32_t j = 0; j < data->dimension; j++) {
        int exponent = 0; /* every |x_j| < 2^exponent */
        if (data->stats.largest[j] > 0)
            frexpf(data->stats.largest[j], &exponent);
        update->scales[j] = WEIGHTS_SUM_BITS - row_bits - exponent;
        update->units[j] = ldexp(1.0, -update->scales[j]);
    }
    return STATUS_OK;
}

static uint32_t segment_entries(const struct update *update)
{
    return update->lane->tiled ? SEGMENT_TILED : SEGMENT_CPU;
}

static size_t bytes_of_sums(const struct update *update)
{
    return (size_t)update->k * update->data->stride * sizeof *update->sums;
}

static enum status open_sums(struct update *update, struct error *err)
{
    const size_t k = update->k, stride = update->data->stride;
    const struct lane_wanted sums = HOST(update->sums, k * stride);
    const struct lane_wanted wanted[] = {HOST(update->counts, k), HOST(update->weights, k)};
    if ((!update->pinned &&
         lane_hold(&update->held, update->lane, &sums, 1, "sums of clusters", err) != STATUS_OK) ||
        lane_hold(&update->held, update->lane, wanted, update->data->weights.of_row ? 2 : 1,
                  "sums of clusters", err) != STATUS_OK)
        return err->status;
    return STATUS_OK;
}

/* A device with memory of its own fills this several times as fast as any other: see fetch.h. */
static enum status pin_sums(struct update *update, struct error *err)
{
    const size_t bytes = bytes_of_sums(update);
    void *host = NULL;
    enum status status =
        ocl_buffer(&update->pinned, update->lane->ocl, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                   bytes, NULL, "sums on the host", err);
    if (status == STATUS_OK)
        status = ocl_enqueue_map(&host, update->lane->compute, "map sums", update->pinned, true,
                                 CL_MAP_READ | CL_MAP_WRITE, 0, bytes, OCL_NO_WAITS, NULL, err);
    update->sums = host;
    return status;
}

static void close_sums(struct update *update)
{
    struct error ignored = ERROR_INIT;
    if (update->pinned && update->sums)
        ocl_enqueue_unmap(update->lane->compute, "unmap sums", update->pinned, update->sums,
                          OCL_NO_WAITS, NULL, &ignored);
    ocl_buffer_release(&update->pinned);
}

static enum status open_buffers(struct update *update, struct error *err)
{
    const size_t row = update->data->stride * sizeof(cl_long);
    const size_t entries = 2 * (size_t)update->data->tile_rows;
    /* As many as a tile can come to, as far as memory allows. */
    const uint64_t most = entries / segment_entries(update) + update->k;
    const size_t fit = row < PARTIAL_BYTES / 64 ? PARTIAL_BYTES / row : 64;
    const size_t segments = most < fit ? (size_t)most : fit;
    update->segments_max = (uint32_t)segments;
    const struct lane_wanted wanted[] = {
        HOST(update->host_entries, entries),
        HOST(update->host_segments, segments + 1),
        HOST(update->host_begins, segments + 1),
        HOST(update->host_clusters, segments),
        HOST(update->cluster_end, update->k),
        BUFFER(update->scale_buffer, update->data->stride * sizeof(cl_int)),
        BUFFER(update->totals, update->k * row),
        BUFFER(update->entries, entries * sizeof(cl_uint)),
        BUFFER(update->segments, (segments + 1) * sizeof(cl_uint)),
        BUFFER(update->begins, (segments + 1) * sizeof(cl_uint)),
        BUFFER(update->clusters, segments * sizeof(cl_uint)),
        BUFFER(update->partial, segments * row),
    };
    return lane_hold(&update->held, update->lane, wanted, COUNT_OF(wanted), "sums of clusters",
                     err);
}

bool update_keeps_subnormals(const struct ocl_device *device)
{
    cl_device_fp_config config = 0;
    clGetDeviceInfo(device->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
    return device->fp64 && (config & CL_FP_DENORM);
}

enum status update_open(struct update *update, struct data *data, uint32_t k, uint64_t samples,
                        struct error *err)
{
    struct lane *lane = data->lane;
    *update = (struct update){.lane = lane, .data = data, .k = k};
    if (choose_scales(update, samples, err) != STATUS_OK)
        return err->status;
    const uint32_t vectors = data->stride / 16;
    update->vectors = lane->tiled ? 1 : vectors % 4 == 0 ? 4 : vectors % 2 == 0 ? 2 : 1;
    const bool weighted = data->weights.of_row;
    char options[80];
    snprintf(options, sizeof options, "-DVECTOR=%d -DVECTORS=%u -DWEIGHTED=%d -DDOUBLES=%d",
             lane->tiled ? 1 : 16, update->vectors, weighted,
             !lane->tiled && !weighted && update_keeps_subnormals(lane->device));
    cl_program program;
    if (lane_program(&program, lane, "kmeans_update", options, err) != STATUS_OK)
        return err->status;
    const struct lane_wanted kernels[] = {KERNEL(update->sum, program, "sum_segments"),
                                          KERNEL(update->add, program, "add_segments")};
    /* One of several ranks: all sums meet on the host. */
    const bool pinned = data->share.rows < data->rows;
    if (lane_hold(&update->held, lane, kernels, COUNT_OF(kernels), "sums of clusters", err) !=
            STATUS_OK ||
        (pinned && pin_sums(update, err) != STATUS_OK) || open_sums(update, err) != STATUS_OK ||
        open_buffers(update, err) != STATUS_OK ||
        lane_write(lane, "scales", update->scale_buffer, 0, data->stride * sizeof *update->scales,
                   update->scales, err) != STATUS_OK)
        return err->status;
    return update_reset(update, err);
}

enum status update_open_totals(struct update *totals, const struct update *part, uint64_t samples,
                               struct error *err)
{
    *totals = (struct update){.lane = part->lane, .data = part->data, .k = part->k};
    if (choose_scales(totals, samples, err) != STATUS_OK)
        return err->status;
    return open_sums(totals, err);
}

void update_close(struct update *update)
{
    close_sums(update);
    lane_release(&update->held);
    *update = (struct update){0};
}

void update_clear(struct update *update)
{
    memset(update->counts, 0, update->k * sizeof *update->counts);
    if (update->weights)
        memset(update->weights, 0, update->k * sizeof *update->weights);
    memset(update->sums, 0, bytes_of_sums(update));
}

enum status update_reset(struct update *update, struct error *err)
{
    update_clear(update);
    return ocl_enqueue_fill(update->lane->compute, "zero sums", update->totals, 0, 0,
                            bytes_of_sums(update), OCL_NO_WAITS, NULL, err);
}

enum status update_write(struct update *update, struct error *err)
{
    return lane_write(update->lane, "sums", update->totals, 0, bytes_of_sums(update), update->sums,
                      err);
}

/* --- a tile's moves -------------------------------------------------------------------------- */

/* Counting sort of the moves by cluster into host_entries; cluster_end[c] is where c's end. */
static uint64_t sort_entries(struct update *update, const float *weights, const int32_t *old_labels,
                             const int32_t *new_labels, uint32_t rows)
{
    uint32_t *end = update->cluster_end;
    uint64_t moved = 0;
    memset(end, 0, update->k * sizeof *end);
    for (uint32_t i = 0; i < rows; i++)
        if (old_labels[i] != new_labels[i]) {
            moved++;
            if (weights && weights[i] == 0)
                continue;
            const int64_t units = weights ? weights_units(&update->data->weights, weights[i]) : 0;
            end[new_labels[i]]++;
            update->counts[new_labels[i]]++;
            if (weights)
                update->weights[new_labels[i]] += units;
            if (old_labels[i] >= 0) {
                end[old_labels[i]]++;
                update->counts[old_labels[i]]--;
                if (weights)
                    update->weights[old_labels[i]] -= units;
            }
        }
    if (moved == 0)
        return 0;
    uint32_t begin = 0;
    for (uint32_t c = 0; c < update->k; c++) {
        uint32_t count = end[c];
        end[c] = begin;
        begin += count;
    }
    for (uint32_t i = 0; i < rows; i++)
        if (old_labels[i] != new_labels[i] && !(weights && weights[i] == 0)) {
            update->host_entries[end[new_labels[i]]++] = i;
            if (old_labels[i] >= 0)
                update->host_entries[end[old_labels[i]]++] = i | KMEANS_ENTRY_LEAVES;
        }
    return moved;
}

/* Sums the segments laid out in host_segments and adds them to the `clusters` of host_clusters. */
static enum status run_batch(struct update *update, struct tile *tile, uint32_t segments,
                             uint32_t clusters, struct error *err)
{
    struct lane *lane = update->lane;
    const cl_uint stride = update->data->stride;
    if (lane_write(lane, "segments", update->segments, 0, (segments + 1) * sizeof(cl_uint),
                   update->host_segments, err) != STATUS_OK ||
        lane_write(lane, "segments", update->begins, 0, (clusters + 1) * sizeof(cl_uint),
                   update->host_begins, err) != STATUS_OK ||
        lane_write(lane, "segments", update->clusters, 0, clusters * sizeof(cl_uint),
                   update->host_clusters, err) != STATUS_OK)
        return err->status;
    if (ocl_args(update->sum, err, OCL_ARG(tile->x), OCL_ARG(update->scale_buffer),
                 OCL_ARG(update->entries), OCL_ARG(update->segments), OCL_ARG(update->partial),
                 OCL_ARG(*(tile->weights ? &tile->weights : &update->scale_buffer)),
                 OCL_ARG(stride), OCL_ARGS_END) != STATUS_OK)
        return err->status;
    const size_t local[2] = {lane->tiled ? GROUP_TILED : 1, 1};
    size_t columns = lane->tiled ? stride : stride / 16 / update->vectors;
    size_t global[2] = {(columns + local[0] - 1) / local[0] * local[0], segments};
    if (lane_launch_2d(lane, "sum segments", update->sum, global, local, err) != STATUS_OK)
        return err->status;
    if (ocl_args(update->add, err, OCL_ARG(update->partial), OCL_ARG(update->begins),
                 OCL_ARG(update->clusters), OCL_ARG(update->totals), OCL_ARG(stride),
                 OCL_ARGS_END) != STATUS_OK)
        return err->status;
    const size_t add_local[2] = {GROUP_TILED, 1};
    size_t add_global[2] = {(stride + GROUP_TILED - 1) / GROUP_TILED * GROUP_TILED, clusters};
    return lane_launch_2d(lane, "add segments", update->add, add_global, add_local, err);
}

enum status update_tile(uint64_t *moved, struct update *update, struct tile *tile,
                        const int32_t *old_labels, const int32_t *new_labels, struct error *err)
{
    *moved = sort_entries(update, tile->host_weights, old_labels, new_labels, tile->rows);
    const uint32_t total = *moved > 0 ? update->cluster_end[update->k - 1] : 0;
    if (total == 0)
        return STATUS_OK;
    const uint32_t most = segment_entries(update);
    enum status status = lane_write(update->lane, "entries", update->entries, 0,
                                    total * sizeof(cl_uint), update->host_entries, err);
    uint32_t at = 0, segments = 0, clusters = 0;
    for (uint32_t c = 0; c < update->k && status == STATUS_OK; c++) {
        const uint32_t end = update->cluster_end[c];
        while (at < end && status == STATUS_OK) {
            if (clusters == 0 || update->host_clusters[clusters - 1] != c) {
                update->host_begins[clusters] = segments;
                update->host_clusters[clusters++] = c;
            }
            update->host_segments[segments++] = at;
            at += end - at < most ? end - at : most;
            update->host_segments[segments] = at;
            update->host_begins[clusters] = segments;
            if (segments == update->segments_max || at == total) {
                status = run_batch(update, tile, segments, clusters, err);
                segments = clusters = 0;
            }
        }
    }
    return status;
}

enum status update_wait(struct update *update, struct error *err)
{
    cl_long one;
    return lane_read(update->lane, "sums", update->totals, 0, sizeof one, &one, err);
}

enum status update_read(struct update *update, struct error *err)
{
    return lane_read(update->lane, "sums", update->totals, 0, bytes_of_sums(update), update->sums,
                     err);
}

enum status update_add_counts(struct update *totals, const struct update *part, int64_t *values,
                              size_t count, struct error *err)
{
    struct comm *comm = totals->data->comm;
    const size_t k = totals->k, weights = totals->weights ? k : 0, all = k + weights + count;
    int64_t *tallies = malloc(all * sizeof *tallies);
    if (!tallies)
        return error_memory(err, all * sizeof *tallies, "sums of clusters");
    memcpy(tallies, part->counts, k * sizeof *tallies);
    if (weights)
        memcpy(tallies + k, part->weights, weights * sizeof *tallies);
    memcpy(tallies + k + weights, values, count * sizeof *tallies);
    enum status status = comm_sum(comm, tallies, tallies, all, err);
    if (status == STATUS_OK) {
        memcpy(totals->counts, tallies, k * sizeof *tallies);
        if (weights)
            memcpy(totals->weights, tallies + k, weights * sizeof *tallies);
        memcpy(values, tallies + k + weights, count * sizeof *tallies);
    }
    free(tallies);
    return status;
}

enum status update_add_sums(struct update *totals, const struct update *part, struct error *err)
{
    return comm_sum(totals->data->comm, totals->sums, part->sums,
                    (size_t)totals->k * totals->data->stride, err);
}

enum status update_move_row(struct update *update, const float *row, float weight, uint32_t from,
                            uint32_t to, struct error *err)
{
    const uint32_t stride = update->data->stride;
    if (update->weights) {
        const int64_t units = weights_units(&update->data->weights, weight);
        update->weights[from] -= units;
        update->weights[to] += units;
    }
    const uint32_t changed[2] = {from, to};
    for (uint32_t j = 0; j < stride; j++) {
        int64_t value = update->weights
                            ? canonical_fixed_weighted(row[j], weight, update->scales[j])
                            : canonical_fixed(row[j], update->scales[j]);
        update->sums[(size_t)from * stride + j] -= value;
        update->sums[(size_t)to * stride + j] += value;
    }
    update->counts[from]--;
    update->counts[to]++;
    enum status status = STATUS_OK;
    for (int i = 0; i < 2 && update->totals && status == STATUS_OK; i++) {
        size_t at = (size_t)changed[i] * stride;
        status = lane_write(update->lane, "sums", update->totals, at * sizeof *update->sums,
                            stride * sizeof *update->sums, update->sums + at, err);
    }
    return status;
}

/* --- what follows from the sums -------------------------------------------------------------- */

/* What a cluster's rows count together. */
static double weight_of_cluster(const struct update *update, uint64_t cluster)
{
    return update->weights ? ldexp((double)update->weights[cluster], -update->data->weights.scale)
                           : (double)update->counts[cluster];
}

void update_centroid(const struct update *update, float *centroids, uint64_t cluster)
{
    const uint32_t stride = update->data->stride;
    const cl_long *sums = update->sums + cluster * stride;
    float *centroid = centroids + cluster * stride;
    const double count = weight_of_cluster(update, cluster);
    if (count == 0)
        return;
    double factor = 1;
    if (update->data->transform.metric == METRIC_COSINE) {
        /* Spherical k-means: the mean's direction. Rows that cancel out have none. */
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

/* With m the columns' means, a cluster of weight n and sum S has about c the inertia
 * (sum of |x - m|^2, weighted) - 2 (c - m).(S - n m) + n |c - m|^2. */
double update_inertia_part(const struct update *update, const float *centroids, uint64_t cluster)
{
    const struct data *data = update->data;
    const cl_long *sums = update->sums + cluster * data->stride;
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
