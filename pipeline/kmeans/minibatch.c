/* minibatch.c: mini-batch k-means (Sculley: Web-scale k-means clustering, 2010).
 *
 * A batch is a set of rows drawn with replacement. Each is assigned to its nearest centroid, and a
 * centroid becomes the mean of all rows that batches have assigned to it so far, which is
 * equivalent to Sculley's learning rate of one over their number. The sums are those of update.h,
 * so the order of rows does not matter, and a batch may be processed in pieces that fit the
 * device's lists. */
#include "base/compare.h"
#include "kmeans/canonical.h"
#include "kmeans/fit.h"
#include "ranks/processes.h"
#include <stdlib.h>
#include <string.h>

/* Random streams, apart from those of seeding: one per restart. */
#define STREAM 0x80000000u

struct minibatch {
    struct fit *fit;
    struct lane_held *held;
    double tolerance;
    struct tile tile;     /* the current piece of the batch */
    uint32_t piece;       /* maximum number of rows */
    uint64_t *rows;       /* of the batch, ascending */
    int32_t *none;        /* -1 for each row of a piece */
    struct sums before;   /* sums before this batch */
    float *weights;       /* of a piece, in order */
    float *values;        /* of a piece, if the data is not resident */
    struct gather gather; /* if it is */
};

static enum status open_tile(struct minibatch *batch, struct error *err)
{
    struct fit *fit = batch->fit;
    struct tile *tile = &batch->tile;
    const size_t each = batch->piece * sizeof(float);
    const struct lane_wanted wanted[] = {SHARED(tile->x, each * fit->data->stride),
                                         SHARED(tile->labels, each),
                                         SHARED(tile->upper_bounds, each),
                                         SHARED(tile->lower_bounds, each),
                                         SHARED(tile->norms, each),
                                         SHARED(tile->weights, each)}; /* if rows have weights */
    const struct lane_wanted summed = SHARED(tile->summed_labels, each);
    if (lane_hold(&batch->held, fit->lane, wanted, batch->weights ? 6 : 5, "a batch", err) !=
            STATUS_OK ||
        (fit->shard->device_update.used &&
         lane_hold(&batch->held, fit->lane, &summed, 1, "a batch", err) != STATUS_OK))
        return err->status;
    tile->rows = batch->piece;
    tile->host = batch->values;
    tile->host_weights = batch->weights;
    return float16_open_tile(fit->assign, &batch->held, tile, err);
}

static enum status open_batch(struct minibatch *batch, struct error *err)
{
    const struct fit *fit = batch->fit;
    const struct data *data = fit->data;
    const uint32_t rows = fit->config->mini_batch;
    batch->piece = rows < data->tile_rows ? rows : data->tile_rows;
    const bool weighted = data->weights.of_row;
    const struct lane_wanted wanted[] = {
        HOST(batch->rows, rows), HOST(batch->none, batch->piece),
        HOST(batch->before.values, (size_t)fit->config->k * data->stride),
        HOST(batch->before.counts, fit->config->k)};
    const struct lane_wanted values = HOST(batch->values, (size_t)batch->piece * data->stride);
    const struct lane_wanted weights[] = {HOST(batch->before.weights, fit->config->k),
                                          HOST(batch->weights, batch->piece)};
    struct lane_held **held = &batch->held;
    if (lane_hold(held, fit->lane, wanted, COUNT_OF(wanted), "a batch", err) != STATUS_OK ||
        (data->resident ? data_open_gather(&batch->gather, held, data, batch->piece, err)
                        : lane_hold(held, fit->lane, &values, 1, "a batch", err)) != STATUS_OK ||
        (weighted && lane_hold(held, fit->lane, weights, 2, "a batch", err) != STATUS_OK))
        return err->status;
    for (uint32_t i = 0; i < batch->piece; i++)
        batch->none[i] = -1;
    return open_tile(batch, err);
}

static void minibatch_close(void **method)
{
    struct minibatch *batch = *method;
    if (!batch)
        return;
    lane_settle(batch->fit->lane);
    lane_release(&batch->held);
    free(batch);
    *method = NULL;
}

/* Draws the rows of a batch, sorted, so that they are read in order. */
static void draw(struct minibatch *batch, uint32_t iteration)
{
    const struct fit *fit = batch->fit;
    const uint32_t rows = fit->config->mini_batch;
    const uint64_t n = fit->data->rows;
    for (uint32_t i = 0; i < rows; i++) {
        const double random =
            canonical_random(fit->config->seed, STREAM + fit->run, (uint64_t)iteration * rows + i);
        const uint64_t row = (uint64_t)(random * (double)n);
        batch->rows[i] = row < n ? row : n - 1;
    }
    qsort(batch->rows, rows, sizeof *batch->rows, compare_u64);
}

/* Fills the piece with `count` of the batch's rows. */
static enum status fill(struct minibatch *batch, const uint64_t *rows, uint32_t count,
                        struct error *err)
{
    struct data *data = batch->fit->data;
    struct tile *piece = &batch->tile;
    piece->rows = count;
    piece->has_norms = piece->has_float16 = false;
    for (uint32_t i = 0; i < count && batch->weights; i++)
        batch->weights[i] = data->weights.of_row[rows[i]];
    if (batch->weights &&
        lane_write(data->lane, "weights of a batch", piece->weights, 0,
                   count * sizeof *batch->weights, batch->weights, err) != STATUS_OK)
        return err->status;
    if (!data->resident) {
        if (data_rows(data, batch->values, rows, count, err) != STATUS_OK)
            return err->status;
        return lane_write(data->lane, "rows of a batch", piece->x, 0,
                          (size_t)count * data->stride * sizeof *batch->values, batch->values, err);
    }
    return data_gather(&batch->gather, data, piece->x, rows, count, err);
}

/* Adds a piece to the sums. None of its rows is in the sums: all old labels are -1. */
static enum status sum_piece(struct minibatch *batch, struct error *err)
{
    struct shard *shard = batch->fit->shard;
    struct device_update *device = &shard->device_update;
    struct tile *tile = &batch->tile;
    uint64_t moved;
    if (!device->used)
        return update_tile(&moved, &shard->update, tile, batch->none, shard->tile_labels, err);
    if (lane_fill(shard->lane, "no labels", tile->summed_labels, UINT32_MAX, 0,
                  tile->rows * sizeof(cl_int), err) != STATUS_OK)
        return err->status;
    return device_update_tile(device, tile, NULL, err);
}

static void copy_sums(const struct minibatch *batch, struct sums *to, const struct sums *from)
{
    const size_t k = batch->fit->config->k;
    memcpy(to->values, from->values, k * batch->fit->data->stride * sizeof *to->values);
    memcpy(to->counts, from->counts, k * sizeof *to->counts);
    if (to->weights)
        memcpy(to->weights, from->weights, k * sizeof *to->weights);
}

/* Call after the last piece. */
static enum status read_sums(const struct minibatch *batch, struct error *err)
{
    struct shard *shard = batch->fit->shard;
    struct device_update *device = &shard->device_update;
    uint64_t moved;
    if (!device->used)
        return STATUS_OK;
    if (device_update_read(device, err) != STATUS_OK ||
        mailbox_read(&shard->filter.mailbox, err) != STATUS_OK)
        return err->status;
    device_update_count(&moved, device);
    return STATUS_OK;
}

/* Assigns one piece and adds its rows to the sums and their inertia to *inertia. */
static enum status do_piece(struct minibatch *batch, double *inertia, struct error *err)
{
    struct fit *fit = batch->fit;
    struct shard *shard = fit->shard;
    struct tile *tile = &batch->tile;
    if (assign_tile(fit->assign, tile, false, err) != STATUS_OK ||
        assign_tile_distances(fit->assign, tile, shard->tile_distances, err) != STATUS_OK ||
        lane_read(fit->lane, "labels", tile->labels, 0, tile->rows * sizeof *shard->tile_labels,
                  shard->tile_labels, err) != STATUS_OK ||
        sum_piece(batch, err) != STATUS_OK)
        return err->status;
    for (uint32_t i = 0; i < tile->rows; i++)
        *inertia += shard->tile_distances[i] * (batch->weights ? (double)batch->weights[i] : 1);
    return STATUS_OK;
}

/* Runs one batch; *shift is the sum of the centroids' squared moves. */
static enum status do_batch(struct minibatch *batch, uint32_t iteration, double *inertia,
                            double *shift, struct error *err)
{
    struct fit *fit = batch->fit;
    const uint32_t k = fit->config->k, rows = fit->config->mini_batch;
    bool incremental;
    draw(batch, iteration);
    copy_sums(batch, &batch->before, &fit->update->all);
    *inertia = *shift = 0;
    enum status status = assign_centroids(fit->assign, &incremental, fit->centroids, k, NULL, err);
    for (uint32_t from = 0; from < rows && status == STATUS_OK; from += batch->piece) {
        const uint32_t count = rows - from < batch->piece ? rows - from : batch->piece;
        processes_watch(fit->config->processes, fit->config->watch.stop);
        status = lane_check_stop(fit->lane, err);
        if (status == STATUS_OK)
            status = fill(batch, batch->rows + from, count, err);
        if (status == STATUS_OK)
            status = do_piece(batch, inertia, err);
    }
    if (status == STATUS_OK)
        status = read_sums(batch, err);
    if (status != STATUS_OK) { /* restores a state to resume from */
        copy_sums(batch, &fit->update->all, &batch->before);
        return status;
    }
    *inertia *= fit->data->weights.unit;
    return fit_move_centroids(fit, shift, false, err);
}

static enum status minibatch_iterate(struct method_step *step, void *method, uint32_t iteration,
                                     struct error *err)
{
    struct minibatch *batch = method;
    double shift;
    enum status status = do_batch(batch, iteration, &step->inertia, &shift, err);
    step->moved = batch->fit->config->mini_batch;
    step->converged = batch->tolerance > 0 && shift <= batch->tolerance;
    return status;
}

static enum status minibatch_open(void **out, struct fit *fit, uint32_t first, struct error *err)
{
    enum status status = STATUS_FAILED;
    struct minibatch *batch = *out = malloc(sizeof *batch);
    if (!batch)
        return error_memory(err, sizeof *batch, "a batch");
    *batch = (struct minibatch){.fit = fit, .tolerance = fit_tolerance(fit)};
    status = open_batch(batch, err);
    if (status != STATUS_OK)
        goto out;
    if (first == 0)
        update_reset(fit->update, true);
    if (fit->shard->device_update.used)
        status = device_update_write(&fit->shard->device_update, err);
out:
    if (status != STATUS_OK)
        minibatch_close(out);
    return status;
}

/* With more rows than this in all batches together, sums have too few bits per value. */
#define SAMPLES_MAX (1ull << 40)

static uint64_t count_samples(const struct cluster_config *config)
{
    return (uint64_t)config->mini_batch * config->max_iter;
}

static enum status check_samples(const struct cluster_config *config, struct error *err)
{
    if (config->mini_batch == 0)
        return error_set(err, STATUS_USAGE, "the method mini-batch requires a batch size");
    if (count_samples(config) <= SAMPLES_MAX)
        return STATUS_OK;
    error_set(err, STATUS_USAGE, "all mini-batches together have more than 2^40 rows");
    return error_remedy(err, REMEDY_FEWER_SAMPLES);
}

const struct kmeans_method minibatch_method = {
    .name = "mini-batch",
    .one_device = true,
    .random = true,
    .keeps_sums = true,
    .check = check_samples,
    .samples = count_samples,
    .open = minibatch_open,
    .iterate = minibatch_iterate,
    .close = minibatch_close,
};
