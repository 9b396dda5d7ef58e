/* fit.c: passes over the rows and what follows from their sums, for all methods. */
#include "cluster/fit.h"
#include "base/clock.h"
#include "cluster/canonical.h"
#include "cluster/outcome.h"
#include "cluster/relocate.h"
#include "cluster/shard_assign.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum status fit_open(struct fit *fit, struct shard *shard, const struct cluster_config *config,
                     struct checkpoint *checkpoint, struct error *err)
{
    struct data *data = &shard->data;
    *fit = (struct fit){.config = config,
                        .method = method_of(config),
                        .shard = shard,
                        .comm = shard->comm,
                        .lane = shard->lane,
                        .data = data,
                        .assign = &shard->assign,
                        .update = &shard->update,
                        .checkpoint = checkpoint};
    if (fit->comm->size > 1 ? shard->exchange.used : shard->device_update.used)
        fit->device_update = &shard->device_update;
    const size_t k = config->k, values = k * data->stride;
    const struct lane_wanted wanted[] = {HOST(fit->centroids, values), HOST(fit->previous, values),
                                         HOST(fit->saved, values), HOST(fit->move, k),
                                         HOST(fit->shifts, k)};
    return lane_hold(&fit->held, fit->lane, wanted, COUNT_OF(wanted), "centroids", err);
}

void fit_close(struct fit *fit)
{
    lane_release(&fit->held);
    *fit = (struct fit){0};
}

static size_t bytes_of_centroids(const struct fit *fit)
{
    return (size_t)fit->config->k * fit->data->stride * sizeof *fit->centroids;
}

/* --- the device and the host ----------------------------------------------------------------- */

/* Makes the device work with fit->centroids; *incremental tells whether the tiles' labels help. */
static enum status use_centroids(struct fit *fit, bool *incremental, struct error *err)
{
    const double *shifts = fit->has_labels ? fit->shifts : NULL;
    const uint32_t k = fit->config->k;
    if (fit->host_stale && fit->device_update)
        return assign_use_centroids(fit->assign, incremental, k, shifts,
                                    fit->device_update->moves.buffer, err);
    return assign_centroids(fit->assign, incremental, fit->centroids, k, shifts, fit->measured,
                            err);
}

/* Brings sums to the host, those of all ranks. */
static enum status read_sums(struct fit *fit, struct error *err)
{
    struct device_update *device = &fit->shard->device_update;
    if (device->used && device_update_read(device, err) != STATUS_OK)
        return err->status;
    return update_add_sums(fit->update, err);
}

enum status fit_read_device(struct fit *fit, bool sums, struct error *err)
{
    struct shard *shard = fit->shard;
    if (!fit->host_stale)
        return STATUS_OK;
    fit->host_stale = false;
    if (device_update_fetch(&shard->device_update, fit->labels,
                            fit->device_update ? fit->centroids : NULL, err) != STATUS_OK)
        return err->status;
    return sums && fit->device_update ? read_sums(fit, err) : STATUS_OK;
}

enum status fit_read_state(struct fit *fit, struct error *err)
{
    if (fit->moving)
        return error_set(err, STATUS_FAILED, "the centroids are between two iterations");
    return fit->host_stale && fit->device_update
               ? device_update_read_centroids(fit->device_update, fit->centroids, err)
               : STATUS_OK;
}

/* --- passes ---------------------------------------------------------------------------------- */

enum status fit_assign(struct fit *fit, bool move, uint64_t *moved, struct error *err)
{
    struct shard *shard = fit->shard;
    const uint64_t scored = fit->assign->scored;
    bool incremental;
    enum { MOVED, SCORED };
    if (use_centroids(fit, &incremental, err) != STATUS_OK ||
        shard_assign(shard, fit->labels, incremental, move && fit->device_update, err) != STATUS_OK)
        return err->status;
    int64_t *tallies = fit->update->own.tallies;
    tallies[MOVED] = (int64_t)shard->moved;
    tallies[SCORED] = (int64_t)(fit->assign->scored - scored);
    if (update_add_counts(fit->update, err) != STATUS_OK ||
        (!fit->device_update && read_sums(fit, err) != STATUS_OK))
        return err->status;
    tallies = fit->update->all.tallies;
    *moved = (uint64_t)tallies[MOVED];
    fit->has_labels = true;
    fit->measured = false;
    fit->passes++;
    fit->pruned_now = 1 - (double)tallies[SCORED] / ((double)fit->data->rows * fit->config->k);
    fit->pruned += fit->pruned_now;
    memset(fit->shifts, 0, fit->config->k * sizeof *fit->shifts);
    fit->host_stale = shard->device_update.used;
    if (fit->comm->size == 1 || !move || !fit->device_update || relocate_count_empty(fit) > 0)
        return STATUS_OK;
    fit->moving = true;
    return shard_move(shard, err);
}

enum status fit_forget_labels(struct fit *fit, struct error *err)
{
    struct shard *shard = fit->shard;
    fit->has_labels = fit->host_stale = false;
    fit->passes = fit->pruned = 0;
    memset(fit->shifts, 0, fit->config->k * sizeof *fit->shifts);
    update_reset(&shard->update);
    /* Where the device keeps labels, the host's are written before they are read. */
    if (shard->device_update.used)
        return device_update_reset(&shard->device_update, err);
    for (uint64_t i = 0; i < fit->data->share.rows; i++)
        fit->labels[i] = -1;
    return STATUS_OK;
}

/* --- centroids ------------------------------------------------------------------------------- */

struct move_job {
    struct fit *fit;
    uint64_t first; /* cluster */
    bool inertia;
};

static void inertia_of_cluster(void *context, uint64_t cluster)
{
    const struct fit *fit = context;
    fit->move[cluster].inertia = update_inertia_part(fit->update, fit->centroids, cluster);
}

static void move_cluster(void *context, uint64_t part)
{
    const struct move_job *job = context;
    const struct fit *fit = job->fit;
    const uint64_t cluster = job->first + part;
    const uint32_t stride = fit->data->stride;
    struct centroid_move *move = &fit->move[cluster];
    float *now = fit->centroids + cluster * stride, *before = fit->previous + cluster * stride;
    if (job->inertia)
        inertia_of_cluster(job->fit, cluster);
    memcpy(before, now, stride * sizeof *now);
    update_centroid(fit->update, fit->centroids, cluster);
    filter_measure(move, &fit->shard->filter, now);
    const bool same = memcmp(now, before, stride * sizeof *now) == 0;
    move->shift = same ? 0 : canonical_distance(now, before, stride);
}

/* What follows from fit->move, once all centroids have moved; returns the sum of the squared moves.
 * shifts: they are to grow. */
static double follow_moves(struct fit *fit, bool shifts)
{
    const uint32_t k = fit->config->k;
    double sum = 0;
    filter_take_measures(&fit->shard->filter, fit->move, k);
    for (uint32_t c = 0; c < k; c++) {
        sum += fit->move[c].shift;
        if (shifts)
            fit->shifts[c] += sqrt(fit->move[c].shift);
    }
    return sum;
}

/* Each rank moves its part of the centroids. */
enum status fit_move_centroids(struct fit *fit, double *shift, bool inertia, struct error *err)
{
    const uint32_t k = fit->config->k;
    uint64_t begin, end;
    comm_part(&begin, &end, fit->comm, fit->comm->rank, k);
    struct move_job job = {fit, begin, inertia};
    workers_run(fit->lane->workers, move_cluster, &job, end - begin);
    if (comm_gather_parts(fit->comm, fit->move, k, sizeof *fit->move, err) != STATUS_OK ||
        comm_gather_parts(fit->comm, fit->centroids, k, fit->data->stride * sizeof *fit->centroids,
                          err) != STATUS_OK)
        return err->status;
    *shift = follow_moves(fit, true);
    fit->measured = true;
    return STATUS_OK;
}

static double inertia_of_moves(const struct fit *fit)
{
    double total = update_scatter(fit->update);
    for (uint32_t c = 0; c < fit->config->k; c++)
        total += fit->move[c].inertia;
    return total > 0 ? total * fit->data->weights.unit : 0;
}

/* Moves the centroids on the host. The inertia is that of the clusters before any is given a row. */
static enum status update_on_host(struct fit *fit, double *inertia, double *shift, bool empty,
                                  struct error *err)
{
    enum status status = STATUS_OK;
    const bool can_fail = empty || fit->comm->size > 1;
    if (can_fail)
        memcpy(fit->saved, fit->centroids, bytes_of_centroids(fit));
    if (empty) {
        workers_run(fit->lane->workers, inertia_of_cluster, fit, fit->config->k);
        *inertia = inertia_of_moves(fit);
        status = relocate_rows(fit, err);
    }
    if (status == STATUS_OK)
        status = fit_move_centroids(fit, shift, !empty, err);
    if (status == STATUS_OK && !empty)
        *inertia = inertia_of_moves(fit);
    if (status != STATUS_OK && can_fail) /* a state to resume from */
        memcpy(fit->centroids, fit->saved, bytes_of_centroids(fit));
    return status;
}

enum status fit_update(struct fit *fit, double *inertia, double *shift, bool *relocated,
                       struct error *err)
{
    *relocated = relocate_count_empty(fit) > 0;
    if (fit->host_stale && fit->device_update && !*relocated) {
        memcpy(fit->move, fit->device_update->moves.host, fit->config->k * sizeof *fit->move);
        *shift = follow_moves(fit, !fit->assign->prune.plan_ready);
        *inertia = inertia_of_moves(fit);
        fit->moving = false;
        return STATUS_OK;
    }
    if ((fit->device_update || *relocated) && fit_read_device(fit, true, err) != STATUS_OK)
        return err->status;
    return update_on_host(fit, inertia, shift, *relocated, err);
}

double fit_tolerance(const struct fit *fit)
{
    const struct data *data = fit->data;
    double variance = 0;
    for (uint32_t j = 0; j < data->dimension; j++)
        variance += column_stats_scatter(&data->stats, j) / (double)data->rows;
    return fit->config->tol * (variance / data->dimension);
}

/* --- the outcome ----------------------------------------------------------------------------- */

/* Makes room for iteration i's inertia, i counting up from 0. The room doubles. */
static enum status extend_history(struct cluster_outcome *out, uint32_t i, struct error *err)
{
    if ((i & (i - 1)) != 0)
        return STATUS_OK;
    const size_t bytes = (i > 0 ? 2 * (size_t)i : 1) * sizeof *out->inertia_history;
    double *history = realloc(out->inertia_history, bytes);
    if (!history)
        return error_memory(err, bytes, "the history of the inertia");
    out->inertia_history = history;
    return STATUS_OK;
}

/* Iterates until the centroids are final; *labels_current tells whether the labels are theirs. */
static enum status iterate(struct fit *fit, struct cluster_outcome *out, bool *labels_current,
                           struct error *err)
{
    const struct cluster_config *config = fit->config;
    void *method = NULL;
    enum status status = fit->method->open(&method, fit, out->iterations, err);
    *labels_current = false;
    for (uint32_t i = out->iterations;
         i < config->max_iter && !out->converged && status == STATUS_OK; i++) {
        const int64_t start = clock_now();
        struct method_step step = {0};
        status = extend_history(out, i, err);
        if (status == STATUS_OK)
            status = fit->method->iterate(&step, method, i, err);
        if (status != STATUS_OK)
            break;
        out->inertia_history[i] = step.inertia;
        out->iterations = i + 1;
        out->converged = step.converged;
        *labels_current = step.labels_current;
        if (config->progress && fit->comm->rank == 0)
            config->progress(config->progress_context, i + 1, step.inertia, step.moved, step.pruned,
                             clock_seconds_since(start));
        fit->checkpoint->made++;
        /* A device that fails here fails in what comes next, too. */
        struct error ignored = ERROR_INIT;
        if (checkpoint_due(fit->checkpoint) && fit_read_state(fit, &ignored) == STATUS_OK)
            checkpoint_save(fit->checkpoint);
    }
    fit->method->close(&method);
    return status;
}

/* Fills the outcome for the final centroids. */
static enum status finish(struct fit *fit, struct cluster_outcome *out, bool labels_current,
                          struct error *err)
{
    const uint32_t stride = fit->data->stride;
    /* The last assignment; a cluster that it leaves empty gets a row, whose distance falls to zero
     * and no other grows, so this ends. */
    while (!labels_current) {
        uint64_t moved;
        if (fit_assign(fit, false, &moved, err) != STATUS_OK)
            return err->status;
        labels_current = relocate_count_empty(fit) == 0;
        if (labels_current)
            break;
        if (fit_read_device(fit, true, err) != STATUS_OK)
            return err->status;
        memcpy(fit->saved, fit->centroids, bytes_of_centroids(fit));
        if (relocate_rows(fit, err) != STATUS_OK) {
            memcpy(fit->centroids, fit->saved, bytes_of_centroids(fit));
            return err->status;
        }
    }
    if (fit_read_device(fit, false, err) != STATUS_OK ||
        outcome_measure(out, fit->shard, fit->update->all.counts, err) != STATUS_OK)
        return err->status;
    out->pruned = fit->passes > 0 ? fit->pruned / fit->passes : 0;
    for (uint32_t c = 0; c < out->k; c++)
        memcpy(out->centroids + (size_t)c * out->dimension, fit->centroids + (size_t)c * stride,
               out->dimension * sizeof *out->centroids);
    return STATUS_OK;
}

enum status fit_run(struct fit *fit, struct cluster_outcome *out, struct error *err)
{
    bool labels_current;
    fit->measured = false;
    fit->labels = out->labels;
    if (iterate(fit, out, &labels_current, err) != STATUS_OK ||
        (!fit->method->labels_rows && fit_forget_labels(fit, err) != STATUS_OK))
        return err->status;
    return finish(fit, out, labels_current, err);
}

enum status fit_complete(struct fit *fit, struct cluster_outcome *out, struct error *err)
{
    const size_t stride = fit->data->stride, bytes = out->dimension * sizeof *out->centroids;
    fit->measured = false;
    fit->labels = out->labels;
    memset(fit->centroids, 0, out->k * stride * sizeof *fit->centroids);
    for (size_t c = 0; c < out->k; c++)
        memcpy(fit->centroids + c * stride, out->centroids + c * out->dimension, bytes);
    if (fit_forget_labels(fit, err) != STATUS_OK)
        return err->status;
    return finish(fit, out, false, err);
}

/* --- labels alone ---------------------------------------------------------------------------- */

static void round_slice(void *context, const struct fetch_slice *slice)
{
    const double *distances = slice->values;
    float *rounded = (float *)context + slice->offset / sizeof *distances;
    for (size_t i = 0; i < slice->bytes / sizeof *distances; i++)
        rounded[i] = (float)distances[i];
}

enum status fit_label(struct fit *fit, int32_t *labels, float *distances, struct error *err)
{
    struct data *data = fit->data;
    const struct cluster_config *config = fit->config;
    const uint32_t slices = fetch_takers(fit->lane);
    struct tile *tile;
    bool incremental;
    if (use_centroids(fit, &incremental, err) != STATUS_OK)
        return err->status;
    enum status status = data_begin(data, err);
    while (status == STATUS_OK && (status = data_next(data, &tile, err)) == STATUS_OK) {
        status = assign_tile(fit->assign, tile, false, err);
        if (status == STATUS_OK)
            status = assign_take_distances(fit->assign, tile, slices, round_slice,
                                           distances + tile->offset, err);
        if (status == STATUS_OK)
            status = fetch_copy(&data->fetch, "labels", tile->labels, tile->rows * sizeof *labels,
                                labels + tile->offset, err);
        /* Rank 0 tells for all. */
        const uint64_t own = data->share.rows, all = data->rows, done = tile->offset + tile->rows;
        if (status == STATUS_OK && config->phase && fit->comm->rank == 0)
            config->phase(config->progress_context, "rows labelled",
                          done == own ? all : (uint64_t)((double)done / (double)own * (double)all),
                          all);
    }
    return data_end(data, status);
}
