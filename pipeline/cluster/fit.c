/* fit.c: Lloyd's iterations.
 *
 * An iteration assigns every row and then moves the centroids to the means. How far they move is
 * kept for the next assignment, which need not search rows that cannot have a new label. */
#include "cluster/fit.h"
#include "base/clock.h"
#include "cluster/canonical.h"
#include "cluster/outcome.h"
#include "cluster/shard_assign.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status fit_open(struct fit *fit, struct shards *shards, const struct cluster_config *config,
                     struct checkpoint *checkpoint, struct error *err)
{
    struct shard *first = &shards->shard[0];
    struct data *data = &first->data;
    *fit = (struct fit){.config = config,
                        .shards = shards,
                        .lane = first->lane,
                        .data = data,
                        .assign = &first->assign,
                        .update = &first->update,
                        .method = method_of(config),
                        .checkpoint = checkpoint};
    if (shards->count == 1 && first->moves.used)
        fit->moves = &first->moves;
    if (shards->count > 1 && checkpoint) {
        enum status status =
            update_open_totals(&fit->totals, &first->update, method_samples(config), err);
        if (status != STATUS_OK)
            return status;
        fit->update = &fit->totals;
    }
    size_t bytes = (size_t)config->k * data->stride * sizeof(float);
    fit->centroids = calloc(1, bytes);
    fit->previous = calloc(1, bytes);
    fit->drifts = calloc(config->k, sizeof *fit->drifts);
    if (fit->centroids && fit->previous && fit->drifts)
        return STATUS_OK;
    return error_memory(err, bytes, "centroids");
}

void fit_close(struct fit *fit)
{
    update_close(&fit->totals);
    free(fit->centroids);
    free(fit->previous);
    free(fit->drifts);
    *fit = (struct fit){0};
}

/* --- passes ---------------------------------------------------------------------------------- */

/* What a pass works with, of all rows. */
struct pass {
    struct fit *fit;
    bool move; /* on fit->moves: the centroids' move follows at once */
    int32_t *labels;
    double *distances;
    struct cluster_outcome *out;
    bool sums; /* are wanted on the host, too */
};

/* Makes a device work with fit->centroids; *incremental tells whether the tiles' labels help. */
static enum status use_centroids(struct fit *fit, struct shard *shard, bool *incremental,
                                 struct error *err)
{
    const double *drifts = fit->has_labels ? fit->drifts : NULL;
    const uint32_t k = fit->config->k;
    if (fit->away && fit->moves)
        return assign_use_centroids(&shard->assign, incremental, k, drifts,
                                    fit->moves->facts.buffer, err);
    return assign_centroids(&shard->assign, incremental, fit->centroids, k, drifts,
                            fit->measured ? fit->assign->filter : NULL, err);
}

static enum status bring_labels(void *context, struct shard *shard, struct error *err)
{
    const struct pass *pass = context;
    if (!shard->moves.used)
        return STATUS_OK;
    enum status status = moves_fetch(&shard->moves, pass->labels,
                                     pass->fit->moves ? pass->fit->centroids : NULL, err);
    return status == STATUS_OK && pass->sums && pass->fit->moves ? update_read(&shard->update, err)
                                                                 : status;
}

/* Makes labels and centroids of the host the newest ones, and sums where they are wanted. */
static enum status bring_home(struct fit *fit, bool sums, struct error *err)
{
    struct pass pass = {.fit = fit, .labels = fit->labels, .sums = sums};
    if (!fit->away)
        return STATUS_OK;
    fit->away = false;
    return shards_run(fit->shards, bring_labels, &pass, err);
}

static enum status assign_share(void *context, struct shard *shard, struct error *err)
{
    const struct pass *pass = context;
    bool incremental;
    enum status status = use_centroids(pass->fit, shard, &incremental, err);
    if (status == STATUS_OK)
        status = shard_assign(shard, pass->labels, incremental, pass->move, err);
    return status == STATUS_OK && !pass->fit->moves ? update_read(&shard->update, err) : status;
}

/* Rows times centroids that they were scored with, so far. */
static uint64_t count_scored(const struct fit *fit)
{
    uint64_t scored = 0;
    for (uint32_t i = 0; i < fit->shards->count; i++)
        scored += fit->shards->shard[i].assign.scored;
    return scored;
}

struct tally {
    struct fit *fit;
    bool inertia; /* about fit->centroids */
};

static void tally_cluster(void *context, uint64_t cluster)
{
    const struct tally *tally = context;
    struct fit *fit = tally->fit;
    if (fit->update == &fit->totals)
        for (uint32_t i = 0; i < fit->shards->count; i++)
            update_add(fit->update, &fit->shards->shard[i].update, cluster, i == 0);
    if (tally->inertia)
        update_inertia_part(fit->update, fit->centroids, cluster);
}

/* The sums of all shares, and the clusters' parts of the inertia, from the host's sums. */
static void add_up(struct fit *fit, bool inertia)
{
    struct tally tally = {fit, inertia};
    if (inertia || fit->update == &fit->totals)
        workers_run(fit->lane->workers, tally_cluster, &tally, fit->config->k);
}

/* Assigns all rows; the sums follow. move: update_pass comes next. */
enum status fit_assign(struct fit *fit, bool move, uint64_t *moved, struct error *err)
{
    struct pass pass = {.fit = fit, .move = move && fit->moves, .labels = fit->labels};
    const uint64_t scored = count_scored(fit);
    enum status status = shards_run(fit->shards, assign_share, &pass, err);
    if (status != STATUS_OK)
        return status;
    fit->has_labels = true;
    fit->measured = false;
    fit->passes++;
    fit->pruned_now =
        1 - (double)(count_scored(fit) - scored) / ((double)fit->data->rows * fit->config->k);
    fit->pruned += fit->pruned_now;
    memset(fit->drifts, 0, fit->config->k * sizeof *fit->drifts);
    *moved = 0;
    fit->away = false;
    for (uint32_t i = 0; i < fit->shards->count; i++) {
        *moved += fit->shards->shard[i].moved;
        fit->away = fit->away || fit->shards->shard[i].moves.used;
    }
    if (!fit->moves)
        add_up(fit, move);
    return STATUS_OK;
}

static enum status measure_share(void *context, struct shard *shard, struct error *err)
{
    const struct pass *pass = context;
    struct tile *tile;
    enum status status = data_begin_at_either_end(&shard->data, err);
    while (status == STATUS_OK && (status = data_next(&shard->data, &tile, err)) == STATUS_OK) {
        status = assign_tile_distances(&shard->assign, tile, pass->distances + tile->first, err);
        if (status == STATUS_OK)
            status = data_done(&shard->data, tile, err);
    }
    data_end(&shard->data);
    return status == STATUS_END ? STATUS_OK : status;
}

/* The canonical distances of all rows to their centroids, n of them. */
static enum status distance_pass(struct fit *fit, double *distances, struct error *err)
{
    struct pass pass = {.fit = fit, .distances = distances};
    return shards_run(fit->shards, measure_share, &pass, err);
}

/* --- empty clusters -------------------------------------------------------------------------- */

struct far_row {
    double distance;
    uint64_t row;
};

static int by_distance(const void *a, const void *b)
{
    const struct far_row *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance > y->distance ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static uint32_t count_empty(const struct fit *fit)
{
    uint32_t empty = 0;
    for (uint32_t c = 0; c < fit->config->k; c++)
        empty += fit->update->counts[c] == 0;
    return empty;
}

/* Gives one row to an empty cluster. */
static enum status give_row(struct fit *fit, int32_t *labels, uint64_t row, const float *values,
                            uint32_t cluster, struct error *err)
{
    struct shard *shard = shards_of_row(fit->shards, row);
    struct tile *tile = data_tile_of(&shard->data, row);
    const uint32_t stride = fit->data->stride, at = (uint32_t)(row - tile->first);
    const uint32_t from = (uint32_t)labels[row];
    const int32_t label = (int32_t)cluster;
    labels[row] = label;
    float *centroid = fit->centroids + (size_t)cluster * stride;
    fit->drifts[cluster] += sqrt(canonical_distance(values, centroid, stride));
    memcpy(centroid, values, stride * sizeof *values);
    enum status status = lane_write(shard->lane, "label", tile->labels, at * sizeof label,
                                    sizeof label, &label, err);
    if (status == STATUS_OK)
        status = assign_forget_row(&shard->assign, tile, at, err);
    const float weight = tile->host_weights ? tile->host_weights[at] : 1;
    if (status == STATUS_OK)
        status = update_move_row(&shard->update, values, weight, from, cluster, err);
    if (status != STATUS_OK)
        return shards_blame(fit->shards, shard, err);
    return fit->update == &fit->totals
               ? update_move_row(fit->update, values, weight, from, cluster, err)
               : STATUS_OK;
}

static enum status store_labels(void *context, struct shard *shard, struct error *err)
{
    const struct pass *pass = context;
    return shard->moves.used ? moves_store(&shard->moves, pass->labels, err) : STATUS_OK;
}

/* Gives each empty cluster the row farthest from its centroid (ties to the lowest), rows of equal
 * values once, and none of weight 0. A row that is alone in its cluster is at distance zero unless
 * the centroid is not the mean yet; taking it would only empty another cluster, so it stays. */
static enum status relocate(struct fit *fit, struct error *err)
{
    int32_t *labels = fit->labels;
    const uint64_t n = fit->data->rows;
    const uint32_t stride = fit->data->stride, empty = count_empty(fit);
    const size_t bytes = (size_t)fit->config->k * stride * sizeof *fit->centroids;
    const float *weights = fit->data->weights.of_row;
    memcpy(fit->previous, fit->centroids, bytes);
    double *distances = malloc(n * sizeof *distances);
    struct far_row *rows = malloc(n * sizeof *rows);
    float *values = malloc((size_t)empty * stride * sizeof *values);
    enum status status = STATUS_OK;
    if (!distances || !rows || !values)
        status = error_memory(err, n * sizeof *rows, "relocating empty clusters");
    if (status == STATUS_OK)
        status = distance_pass(fit, distances, err);
    for (uint64_t i = 0; i < n && status == STATUS_OK; i++)
        rows[i] = (struct far_row){distances[i], i};
    if (status == STATUS_OK)
        qsort(rows, n, sizeof *rows, by_distance);
    uint32_t given = 0, cluster = 0;
    for (uint64_t i = 0; i < n && given < empty && status == STATUS_OK; i++) {
        if (rows[i].distance == 0) /* every row lies on its centroid */
            break;
        if (fit->update->counts[labels[rows[i].row]] == 1)
            continue;
        if (weights && weights[rows[i].row] == 0)
            continue;
        float *value = values + (size_t)given * stride;
        status = shards_rows(fit->shards, value, &rows[i].row, 1, err);
        bool again = false;
        for (uint32_t g = 0; g < given && !again; g++)
            again = canonical_distance(value, values + (size_t)g * stride, stride) == 0;
        if (again || status != STATUS_OK)
            continue;
        while (fit->update->counts[cluster] > 0)
            cluster++;
        status = give_row(fit, labels, rows[i].row, value, cluster, err);
        given++;
    }
    if (status == STATUS_OK && given == 0)
        status =
            error_set(err, STATUS_FAILED,
                      "k is %u and larger than the number of distinct rows; choose a smaller k",
                      fit->config->k);
    struct pass pass = {.fit = fit, .labels = labels};
    if (status == STATUS_OK)
        status = shards_run(fit->shards, store_labels, &pass, err);
    if (status != STATUS_OK) /* a state to go on from */
        memcpy(fit->centroids, fit->previous, bytes);
    free(distances);
    free(rows);
    free(values);
    return status;
}

/* --- the state that is kept ------------------------------------------------------------------ */

enum status fit_gather(struct fit *fit, struct error *err)
{
    return fit->away && fit->moves ? moves_read_centroids(fit->moves, fit->centroids, err)
                                   : STATUS_OK;
}

static void keep_state(struct fit *fit)
{
    struct error err = ERROR_INIT;
    fit->checkpoint->made++;
    if (!checkpoint_due(fit->checkpoint))
        return;
    /* A device that fails here fails in what comes next, too. */
    if (fit_gather(fit, &err) == STATUS_OK)
        checkpoint_save(fit->checkpoint);
}

/* --- iterations ------------------------------------------------------------------------------ */

static void move_cluster(void *context, uint64_t cluster)
{
    const struct fit *fit = context;
    const uint32_t stride = fit->data->stride;
    float *now = fit->centroids + cluster * stride, *before = fit->previous + cluster * stride;
    memcpy(before, now, stride * sizeof *now);
    update_centroid(fit->update, fit->centroids, cluster);
    filter_measure(fit->assign->filter, fit->centroids, cluster);
    const bool same = memcmp(now, before, stride * sizeof *now) == 0;
    const double square = same ? 0 : canonical_distance(now, before, stride);
    fit->drifts[cluster] += sqrt(square);
    fit->update->parts[cluster] = square;
}

double fit_move_centroids(struct fit *fit)
{
    double shift = 0;
    workers_run(fit->lane->workers, move_cluster, fit, fit->config->k);
    fit->measured = true;
    for (uint32_t c = 0; c < fit->config->k; c++)
        shift += fit->update->parts[c];
    return shift;
}

/* Moves the centroids to the means; *inertia is that about the old ones, *shift the sum of their
 * squared moves. */
enum status fit_update(struct fit *fit, double *inertia, double *shift, bool *relocated,
                       struct error *err)
{
    enum status status = STATUS_OK;
    *relocated = count_empty(fit) > 0;
    if (fit->away && fit->moves && !*relocated) {
        moves_facts(shift, fit->assign->prune.planned ? NULL : fit->drifts, fit->moves);
        *inertia = update_inertia(fit->update);
        return status;
    }
    if (fit->moves || *relocated)
        status = bring_home(fit, true, err);
    if (status != STATUS_OK)
        return status;
    if (fit->moves)
        add_up(fit, true);
    *inertia = update_inertia(fit->update);
    if (*relocated)
        status = relocate(fit, err);
    if (status != STATUS_OK)
        return status;
    *shift = fit_move_centroids(fit);
    return STATUS_OK;
}

double fit_tolerance(const struct fit *fit)
{
    const struct data *data = fit->data;
    double variance = 0;
    for (uint32_t j = 0; j < data->dimension; j++)
        variance += column_stats_scatter(&data->stats, j) / (double)data->rows;
    return fit->config->tol * (variance / data->dimension);
}

/* The room doubles. */
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

/* --- the outcome ----------------------------------------------------------------------------- */

static enum status forget_share(void *context, struct shard *shard, struct error *err)
{
    const struct pass *pass = context;
    const struct data_share *share = &shard->data.share;
    enum status status = update_reset(&shard->update, err);
    if (status == STATUS_OK && shard->moves.used)
        return moves_reset(&shard->moves, err);
    for (uint64_t i = 0; i < share->rows; i++)
        pass->labels[share->first + i] = -1;
    return status;
}

/* No row has a label. Where the device keeps them, the host's are written before they are read. */
enum status fit_forget_labels(struct fit *fit, struct error *err)
{
    struct pass pass = {.fit = fit, .labels = fit->labels};
    fit->has_labels = fit->away = false;
    fit->passes = fit->pruned = 0;
    memset(fit->drifts, 0, fit->config->k * sizeof *fit->drifts);
    return shards_run(fit->shards, forget_share, &pass, err);
}

/* Fills the outcome for the final centroids; settled: the labels are theirs. */
static enum status finish(struct fit *fit, struct cluster_outcome *out, bool settled,
                          struct error *err)
{
    const uint32_t stride = fit->data->stride;
    enum status status = STATUS_OK;
    /* The last assignment; a cluster that it leaves empty gets a row, whose distance falls to zero
     * and no other grows, so this ends. */
    while (status == STATUS_OK && !settled) {
        uint64_t moved;
        status = fit_assign(fit, false, &moved, err);
        settled = count_empty(fit) == 0;
        if (status == STATUS_OK && !settled)
            status = bring_home(fit, true, err);
        if (status == STATUS_OK && !settled)
            status = relocate(fit, err);
    }
    if (status == STATUS_OK)
        status = bring_home(fit, false, err);
    if (status == STATUS_OK)
        status = outcome_measure(out, fit->shards, fit->update->counts, err);
    out->pruned = fit->passes > 0 ? fit->pruned / fit->passes : 0;
    for (uint32_t c = 0; c < out->k && status == STATUS_OK; c++)
        memcpy(out->centroids + (size_t)c * out->dimension, fit->centroids + (size_t)c * stride,
               out->dimension * sizeof *out->centroids);
    return status;
}

/* Iterates until the centroids are final; *settled tells whether the labels are theirs already. */
static enum status iterate(struct fit *fit, struct cluster_outcome *out, bool *settled,
                           struct error *err)
{
    const struct cluster_config *config = fit->config;
    void *method = NULL;
    enum status status = fit->method->open(&method, fit, out->iterations, err);
    *settled = false;
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
        *settled = step.labels_current;
        if (config->progress)
            config->progress(config->progress_context, i + 1, step.inertia, step.moved, step.pruned,
                             clock_seconds_since(start));
        keep_state(fit);
    }
    fit->method->close(&method);
    return status;
}

enum status fit_run(struct fit *fit, struct cluster_outcome *out, struct error *err)
{
    bool settled;
    fit->measured = false;
    fit->labels = out->labels;
    enum status status = iterate(fit, out, &settled, err);
    if (status == STATUS_OK && !fit->method->labels_rows)
        status = fit_forget_labels(fit, err);
    return status == STATUS_OK ? finish(fit, out, settled, err) : status;
}

enum status fit_complete(struct fit *fit, struct cluster_outcome *out, struct error *err)
{
    const size_t stride = fit->data->stride, bytes = out->dimension * sizeof *out->centroids;
    fit->measured = false;
    fit->labels = out->labels;
    memset(fit->centroids, 0, out->k * stride * sizeof *fit->centroids);
    for (size_t c = 0; c < out->k; c++)
        memcpy(fit->centroids + c * stride, out->centroids + c * out->dimension, bytes);
    enum status status = fit_forget_labels(fit, err);
    return status == STATUS_OK ? finish(fit, out, false, err) : status;
}

static void round_slice(void *context, const struct fetch_slice *slice)
{
    const double *distances = slice->values;
    float *rounded = (float *)context + slice->offset / sizeof *distances;
    for (size_t i = 0; i < slice->bytes / sizeof *distances; i++)
        rounded[i] = (float)distances[i];
}

static enum status label_share(void *context, struct shard *shard, struct error *err)
{
    const struct pass *pass = context;
    const struct cluster_config *config = pass->fit->config;
    const struct data_share *share = &shard->data.share;
    struct cluster_outcome *out = pass->out;
    const uint32_t slices = fetch_takers(shard->lane);
    struct tile *tile;
    bool incremental;
    enum status status = use_centroids(pass->fit, shard, &incremental, err);
    if (status == STATUS_OK)
        status = data_begin(&shard->data, err);
    while (status == STATUS_OK && (status = data_next(&shard->data, &tile, err)) == STATUS_OK) {
        status = assign_tile(&shard->assign, tile, false, err);
        if (status == STATUS_OK)
            status = assign_take_distances(&shard->assign, tile, slices, round_slice,
                                           out->distances + tile->first, err);
        if (status == STATUS_OK)
            status = fetch_copy(&shard->data.fetch, "labels", tile->labels,
                                tile->rows * sizeof *out->labels, out->labels + tile->first, err);
        /* One of them tells, for all. */
        const uint64_t done = tile->first + tile->rows, rows = shard->data.rows;
        if (status == STATUS_OK && config->phase && share->first == 0)
            config->phase(config->progress_context, "rows labelled",
                          done == share->rows
                              ? rows
                              : (uint64_t)((double)done / (double)share->rows * (double)rows),
                          rows);
        if (status == STATUS_OK)
            status = data_done(&shard->data, tile, err);
    }
    data_end(&shard->data);
    return status == STATUS_END ? STATUS_OK : status;
}

enum status fit_label(struct fit *fit, struct cluster_outcome *out, struct error *err)
{
    struct pass pass = {.fit = fit, .out = out};
    return shards_run(fit->shards, label_share, &pass, err);
}
