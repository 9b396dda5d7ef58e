/* fit.c: passes over the rows and the computations from their sums, for all methods.
 *
 * fit_assign
 *     use_centroids            centroids, and how far each moved: which rows need a search (prune.h)
 *     assign_rows
 *       assign_tile            labels (assign.h)                              } each tile
 *       update_tile |          sums of the rows that changed, on the host     }
 *       device_update_tile     or on the device                               }
 *       device_update_centroids  on the device: centroids to the means, plan of the next pass; enqueued
 *                              behind the only tile of the only rank, so that there is one wait
 *       mailbox_read           the wait: counts, moves, plan
 *     update_add_counts        several ranks: counts of all, then
 *     device_update_meet       sums of all, and centroids move on each; or update_add_sums
 *   fit_update                 inertia and shift; centroids to the means if on the host; empty clusters
 *                              get rows (relocate.c) */
#include "kmeans/fit.h"
#include "base/array.h"
#include "base/clock.h"
#include "kmeans/canonical.h"
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
    if (fit->comm->size > 1 ? shard->device_update.meets : shard->device_update.used)
        fit->device_update = &shard->device_update;
    const size_t k = config->k, values = k * data->stride;
    const struct lane_wanted wanted[] = {HOST(fit->centroids, values), HOST(fit->previous, values),
                                         HOST(fit->saved, values), HOST(fit->move, k),
                                         HOST(fit->shifts, k)};
    return lane_hold(&shard->held, fit->lane, wanted, COUNT_OF(wanted), "centroids", err);
}

static size_t bytes_of_centroids(const struct fit *fit)
{
    return (size_t)fit->config->k * fit->data->stride * sizeof *fit->centroids;
}

/* --- the device and the host ----------------------------------------------------------------- */

/* Makes the device use fit->centroids; *incremental: the tiles' labels can be used. */
static enum status use_centroids(struct fit *fit, bool *incremental, struct error *err)
{
    const double *shifts = fit->has_labels ? fit->shifts : NULL;
    const uint32_t k = fit->config->k;
    if (fit->host_stale && fit->device_update)
        return assign_use_centroids(fit->assign, incremental, k, shifts,
                                    fit->device_update->moves.buffer, err);
    return assign_centroids(fit->assign, incremental, fit->centroids, k, shifts, err);
}

/* Copies the sums of all ranks to the host. */
static enum status read_sums(struct fit *fit, struct error *err)
{
    struct device_update *device = &fit->shard->device_update;
    if (device->used && device_update_read(device, err) != STATUS_OK)
        return err->status;
    return update_add_sums(fit->update, err);
}

/* Updates labels and centroids on the host and, if requested, sums. */
static enum status read_device(struct fit *fit, bool sums, struct error *err)
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

/* --- sums on the host ------------------------------------------------------------------------ */

/* A tile has new labels: updates sums, counts and the host's labels. */
static enum status sum_on_host(struct shard *shard, struct tile *tile, int32_t *labels,
                               struct error *err)
{
    uint64_t moved = 0;
    if (fetch_copy(&shard->data.fetch, "labels", tile->labels, tile->rows * sizeof *labels,
                   shard->tile_labels, err) != STATUS_OK ||
        update_tile(&moved, &shard->update, tile, labels, shard->tile_labels, err) != STATUS_OK)
        return err->status;
    memcpy(labels, shard->tile_labels, tile->rows * sizeof *labels);
    shard->moved += moved;
    return STATUS_OK;
}

/* --- sums on the device ---------------------------------------------------------------------- */

/* If centroids are to move, enqueues that; reads the pass's results from the mailbox. left: the
 * commands do nothing if there are such rows; NULL: there are none. */
static enum status follow_and_read(struct shard *shard, bool move, const struct device_count *left,
                                   struct error *err)
{
    enum status status = STATUS_OK;
    if (move && shard->device_update.meets)
        status = device_update_send(&shard->device_update, err);
    else if (move)
        status =
            device_update_centroids(&shard->device_update, &shard->assign.prune, false, left, err);
    if (status != STATUS_OK)
        return status;
    /* Shortens the wait at the next pass. */
    if (counters_zero_next(&shard->assign.counters, err) != STATUS_OK)
        return err->status;
    return mailbox_read(&shard->filter.mailbox, err);
}

/* The only tile: labels, sums and the move are enqueued at once. If the device leaves rows without
 * a label, sums and move do nothing, and are repeated after these are labelled. */
static enum status assign_only_tile(struct shard *shard, struct tile *tile, bool incremental,
                                    bool move, struct error *err)
{
    struct assign *assign = &shard->assign;
    struct device_update *update = &shard->device_update;
    bool any_left = false;
    if (assign_begin_tile(assign, tile, incremental, err) != STATUS_OK)
        return err->status;
    const struct device_count left = assign_rows_left(assign);
    if (device_update_tile(update, tile, &left, err) != STATUS_OK ||
        follow_and_read(shard, move, &left, err) != STATUS_OK ||
        assign_end_tile(&any_left, assign, tile, incremental, err) != STATUS_OK)
        return err->status;
    if (!any_left)
        return STATUS_OK;
    if (device_update_tile(update, tile, NULL, err) != STATUS_OK)
        return err->status;
    return follow_and_read(shard, move, NULL, err);
}

/* Labels the tiles and updates the sums. */
static enum status assign_tiles(struct shard *shard, int32_t *labels, bool incremental,
                                struct error *err)
{
    struct tile *tile;
    enum status status = data_begin(&shard->data, err);
    while (status == STATUS_OK && (status = data_next(&shard->data, &tile, err)) == STATUS_OK) {
        status = assign_tile(&shard->assign, tile, incremental, err);
        if (status == STATUS_OK)
            status = shard->device_update.used
                         ? device_update_tile(&shard->device_update, tile, NULL, err)
                         : sum_on_host(shard, tile, labels + tile->offset, err);
    }
    return data_end(&shard->data, status);
}

/* Assigns the rank's rows to the current centroids; shard->moved is the number that changed their
 * label. labels: of these rows, if the host keeps the sums. move: if the device keeps them,
 * centroids move to the means and the next pass is planned; if ranks meet, their sums are only
 * sent. A stop is checked before the centroids move, never afterwards, when the iteration
 * counts. */
static enum status assign_rows(struct shard *shard, int32_t *labels, bool incremental, bool move,
                               struct error *err)
{
    const bool on_device = shard->device_update.used;
    shard->moved = 0;
    if (lane_check_stop(shard->lane, err) != STATUS_OK)
        return err->status;
    if (on_device && shard->data.tile_count == 1 && shard->assign.assigner->in_one_wait) {
        if (assign_only_tile(shard, &shard->data.tiles[0], incremental, move, err) != STATUS_OK)
            return err->status;
    } else if (assign_tiles(shard, labels, incremental, err) != STATUS_OK ||
               (on_device && follow_and_read(shard, move, NULL, err) != STATUS_OK)) {
        return err->status;
    }
    if (on_device)
        device_update_count(&shard->moved, &shard->device_update);
    return STATUS_OK;
}

/* --- passes ---------------------------------------------------------------------------------- */

enum status fit_assign(struct fit *fit, bool move, uint64_t *moved, struct error *err)
{
    struct shard *shard = fit->shard;
    const uint64_t scored = fit->assign->scored;
    bool incremental;
    enum { MOVED, SCORED };
    if (use_centroids(fit, &incremental, err) != STATUS_OK ||
        assign_rows(shard, fit->labels, incremental, move && fit->device_update, err) != STATUS_OK)
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
    fit->passes++;
    fit->pruned_now = 1 - (double)tallies[SCORED] / ((double)fit->data->rows * fit->config->k);
    fit->pruned += fit->pruned_now;
    memset(fit->shifts, 0, fit->config->k * sizeof *fit->shifts);
    fit->host_stale = shard->device_update.used;
    if (fit->comm->size == 1 || !move || !fit->device_update || relocate_count_empty(fit) > 0)
        return STATUS_OK;
    fit->moving = true;
    return device_update_meet(&shard->device_update, &shard->assign.prune, err);
}

enum status fit_forget_labels(struct fit *fit, struct error *err)
{
    struct shard *shard = fit->shard;
    fit->has_labels = fit->host_stale = false;
    fit->passes = fit->pruned = 0;
    memset(fit->shifts, 0, fit->config->k * sizeof *fit->shifts);
    update_reset(&shard->update, !shard->device_update.used);
    /* If the device keeps the labels, the host's are written before they are read. */
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
    const bool same = memcmp(now, before, stride * sizeof *now) == 0;
    move->shift = same ? 0 : canonical_distance(now, before, stride);
}

/* Applies fit->move after all centroids have moved; returns the sum of the squared moves. shifts:
 * also adds to them. */
static double follow_moves(struct fit *fit, bool shifts)
{
    const uint32_t k = fit->config->k;
    double sum = 0;
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
    return STATUS_OK;
}

static double inertia_of_moves(const struct fit *fit)
{
    double total = update_scatter(fit->update);
    for (uint32_t c = 0; c < fit->config->k; c++)
        total += fit->move[c].inertia;
    return total > 0 ? total * fit->data->weights.unit : 0;
}

/* Moves the centroids on the host. The inertia is that of the clusters before any gets a row. */
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
        status = relocate_rows(fit, true, err);
    }
    if (status == STATUS_OK)
        status = fit_move_centroids(fit, shift, !empty, err);
    if (status == STATUS_OK && !empty)
        *inertia = inertia_of_moves(fit);
    if (status != STATUS_OK && can_fail) /* restores a state to resume from */
        memcpy(fit->centroids, fit->saved, bytes_of_centroids(fit));
    return status;
}

/* Gives rows to empty clusters while the device keeps sums and centroids. place: the rows become
 * the centroids, and no others move; else all move to the means. */
static enum status relocate_on_device(struct fit *fit, bool place, struct error *err)
{
    struct device_update *device = fit->device_update;
    if (device_update_fetch(device, fit->labels, NULL, err) != STATUS_OK ||
        relocate_rows(fit, place, err) != STATUS_OK ||
        device_update_again(device, place ? NULL : &fit->assign->prune, err) != STATUS_OK)
        return err->status;
    fit->moving = false;
    if (place)
        filter_take_measures(&fit->shard->filter, fit->move, fit->config->k);
    return update_add_counts(fit->update, err);
}

enum status fit_update(struct fit *fit, double *inertia, double *shift, bool *relocated,
                       struct error *err)
{
    const size_t moves = fit->config->k * sizeof *fit->move;
    *relocated = relocate_count_empty(fit) > 0;
    if (fit->host_stale && fit->device_update && (!*relocated || fit->comm->size == 1)) {
        memcpy(fit->move, fit->device_update->moves.host, moves);
        *inertia = inertia_of_moves(fit);
        if (*relocated && relocate_on_device(fit, false, err) != STATUS_OK)
            return err->status;
        memcpy(fit->move, fit->device_update->moves.host, moves);
        filter_take_measures(&fit->shard->filter, fit->move, fit->config->k);
        *shift = follow_moves(fit, !fit->assign->prune.plan_ready);
        fit->moving = false;
        return STATUS_OK;
    }
    if ((fit->device_update || *relocated) && read_device(fit, true, err) != STATUS_OK)
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

/* Iterates until the centroids are final; *labels_current: the labels match them. */
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
        status = array_grow(&out->inertia_history, i, sizeof *out->inertia_history,
                            "the history of the inertia", err);
        if (status == STATUS_OK)
            status = fit->method->iterate(&step, method, i, err);
        if (status != STATUS_OK)
            break;
        out->inertia_history[i] = step.inertia;
        out->iterations = i + 1;
        out->converged = step.converged;
        *labels_current = step.labels_current;
        if (config->iteration && fit->comm->rank == 0)
            config->iteration(config->watch.context, i + 1, step.inertia, step.moved, step.pruned,
                              clock_seconds_since(start));
        fit->checkpoint->made++;
        /* A device that fails here will fail in the next step, too. */
        struct error ignored = ERROR_INIT;
        if (checkpoint_due(fit->checkpoint) && fit_read_state(fit, &ignored) == STATUS_OK)
            checkpoint_save(fit->checkpoint);
    }
    fit->method->close(&method);
    return status;
}

struct final_centroids {
    const float *values;
    size_t stride;
    struct cluster_outcome *out;
};

static void copy_centroid(void *context, uint64_t c)
{
    const struct final_centroids *final = context;
    const size_t dimension = final->out->dimension;
    memcpy(final->out->centroids + c * dimension, final->values + c * final->stride,
           dimension * sizeof *final->values);
}

/* Completes the outcome for the final centroids. */
static enum status finish(struct fit *fit, struct cluster_outcome *out, bool labels_current,
                          struct error *err)
{
    /* The last assignment. A cluster that it leaves empty gets a row, whose distance falls to zero
     * while no other grows, so this terminates. */
    while (!labels_current) {
        uint64_t moved;
        if (fit_assign(fit, false, &moved, err) != STATUS_OK)
            return err->status;
        labels_current = relocate_count_empty(fit) == 0;
        if (labels_current)
            break;
        if (fit->host_stale && fit->assign->device_centroids && fit->comm->size == 1) {
            if (relocate_on_device(fit, true, err) != STATUS_OK)
                return err->status;
            continue;
        }
        if (read_device(fit, true, err) != STATUS_OK)
            return err->status;
        memcpy(fit->saved, fit->centroids, bytes_of_centroids(fit));
        if (relocate_rows(fit, true, err) != STATUS_OK) {
            memcpy(fit->centroids, fit->saved, bytes_of_centroids(fit));
            return err->status;
        }
    }
    if (read_device(fit, false, err) != STATUS_OK ||
        outcome_measure(out, fit->shard, fit->update->all.counts, err) != STATUS_OK)
        return err->status;
    out->pruned = fit->passes > 0 ? fit->pruned / fit->passes : 0;
    struct final_centroids final = {fit->centroids, fit->data->stride, out};
    workers_run(fit->lane->workers, copy_centroid, &final, out->k);
    return STATUS_OK;
}

enum status fit_run(struct fit *fit, struct cluster_outcome *out, struct error *err)
{
    bool labels_current;
    fit->labels = out->labels;
    if (iterate(fit, out, &labels_current, err) != STATUS_OK ||
        (!fit->method->labels_rows && fit_forget_labels(fit, err) != STATUS_OK))
        return err->status;
    return finish(fit, out, labels_current, err);
}

/* Takes the centroids of an outcome, to which no row is assigned yet. */
static enum status take_centroids(struct fit *fit, struct cluster_outcome *out, struct error *err)
{
    data_pad(fit->data, fit->centroids, out->centroids, out->k);
    fit->labels = out->labels;
    return fit_forget_labels(fit, err);
}

enum status fit_complete(struct fit *fit, struct cluster_outcome *out, struct error *err)
{
    return take_centroids(fit, out, err) == STATUS_OK ? finish(fit, out, false, err) : err->status;
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
    uint64_t done = 0;
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
        /* Rank 0 reports for all. */
        const uint64_t own = data->share.rows, all = data->rows;
        done += tile->rows;
        if (status == STATUS_OK && fit->comm->rank == 0)
            watch_show(&config->watch, "rows labelled",
                       done == own ? all : (uint64_t)((double)done / (double)own * (double)all),
                       all);
    }
    return data_end(data, status);
}

enum status fit_round(struct fit *fit, struct cluster_outcome *out, struct error *err)
{
    for (size_t i = 0; i < (size_t)out->k * out->dimension; i++)
        out->centroids[i] = floorf(out->centroids[i] + 0.5f);
    return take_centroids(fit, out, err) == STATUS_OK
               ? fit_label(fit, out->labels, out->distances, err)
               : err->status;
}
