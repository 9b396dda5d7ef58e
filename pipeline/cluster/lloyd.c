/* lloyd.c: Lloyd's iterations.
 *
 * An iteration assigns every row and then moves the centroids to the means. How far they move is
 * kept for the next assignment, which need not search rows that cannot have a new label. */
#include "cluster/lloyd.h"
#include "base/clock.h"
#include "cluster/canonical.h"
#include "cluster/minibatch.h"
#include "cluster/outcome.h"
#include "cluster/shard_assign.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status lloyd_open(struct lloyd *lloyd, struct shards *shards,
                       const struct cluster_config *config, struct checkpoint *checkpoint,
                       struct error *err)
{
    struct shard *first = &shards->shard[0];
    struct data *data = &first->data;
    *lloyd = (struct lloyd){.config = config,
                            .shards = shards,
                            .lane = first->lane,
                            .data = data,
                            .assign = &first->assign,
                            .update = &first->update,
                            .checkpoint = checkpoint};
    if (shards->count == 1 && first->moves.used)
        lloyd->moves = &first->moves;
    if (shards->count > 1 && checkpoint) {
        const uint64_t samples = (uint64_t)config->mini_batch * config->max_iter;
        enum status status = update_open_totals(&lloyd->totals, &first->update, samples, err);
        if (status != STATUS_OK)
            return status;
        lloyd->update = &lloyd->totals;
    }
    size_t bytes = (size_t)config->k * data->stride * sizeof(float);
    lloyd->centroids = calloc(1, bytes);
    lloyd->previous = calloc(1, bytes);
    lloyd->drifts = calloc(config->k, sizeof *lloyd->drifts);
    if (lloyd->centroids && lloyd->previous && lloyd->drifts)
        return STATUS_OK;
    return error_memory(err, bytes, "centroids");
}

void lloyd_close(struct lloyd *lloyd)
{
    update_close(&lloyd->totals);
    free(lloyd->centroids);
    free(lloyd->previous);
    free(lloyd->drifts);
    *lloyd = (struct lloyd){0};
}

/* --- passes ---------------------------------------------------------------------------------- */

/* What a pass works with, of all rows. */
struct pass {
    struct lloyd *lloyd;
    bool move; /* on lloyd->moves: the centroids' move follows at once */
    int32_t *labels;
    double *distances;
    struct cluster_outcome *out;
    bool sums; /* are wanted on the host, too */
};

/* Makes a device work with lloyd->centroids; *incremental tells whether the tiles' labels help. */
static enum status use_centroids(struct lloyd *lloyd, struct shard *shard, bool *incremental,
                                 struct error *err)
{
    const double *drifts = lloyd->has_labels ? lloyd->drifts : NULL;
    const uint32_t k = lloyd->config->k;
    if (lloyd->away && lloyd->moves)
        return assign_use_centroids(&shard->assign, incremental, k, drifts,
                                    lloyd->moves->facts.buffer, err);
    return assign_centroids(&shard->assign, incremental, lloyd->centroids, k, drifts,
                            lloyd->measured ? lloyd->assign->filter : NULL, err);
}

static enum status bring_labels(void *context, struct shard *shard, struct error *err)
{
    const struct pass *pass = context;
    if (!shard->moves.used)
        return STATUS_OK;
    enum status status = moves_fetch(&shard->moves, pass->labels,
                                     pass->lloyd->moves ? pass->lloyd->centroids : NULL, err);
    return status == STATUS_OK && pass->sums && pass->lloyd->moves
               ? update_read(&shard->update, err)
               : status;
}

/* Makes labels and centroids of the host the newest ones, and sums where they are wanted. */
static enum status bring_home(struct lloyd *lloyd, int32_t *labels, bool sums, struct error *err)
{
    struct pass pass = {.lloyd = lloyd, .labels = labels, .sums = sums};
    if (!lloyd->away)
        return STATUS_OK;
    lloyd->away = false;
    return shards_run(lloyd->shards, bring_labels, &pass, err);
}

static enum status assign_share(void *context, struct shard *shard, struct error *err)
{
    const struct pass *pass = context;
    bool incremental;
    enum status status = use_centroids(pass->lloyd, shard, &incremental, err);
    if (status == STATUS_OK)
        status = shard_assign(shard, pass->labels, incremental, pass->move, err);
    return status == STATUS_OK && !pass->lloyd->moves ? update_read(&shard->update, err) : status;
}

/* Rows times centroids that they were scored with, so far. */
static uint64_t count_scored(const struct lloyd *lloyd)
{
    uint64_t scored = 0;
    for (uint32_t i = 0; i < lloyd->shards->count; i++)
        scored += lloyd->shards->shard[i].assign.scored;
    return scored;
}

struct tally {
    struct lloyd *lloyd;
    bool inertia; /* about lloyd->centroids */
};

static void tally_cluster(void *context, uint64_t cluster)
{
    const struct tally *tally = context;
    struct lloyd *lloyd = tally->lloyd;
    if (lloyd->update == &lloyd->totals)
        for (uint32_t i = 0; i < lloyd->shards->count; i++)
            update_add(lloyd->update, &lloyd->shards->shard[i].update, cluster, i == 0);
    if (tally->inertia)
        update_inertia_part(lloyd->update, lloyd->centroids, cluster);
}

/* The sums of all shares, and the clusters' parts of the inertia, from the host's sums. */
static void add_up(struct lloyd *lloyd, bool inertia)
{
    struct tally tally = {lloyd, inertia};
    if (inertia || lloyd->update == &lloyd->totals)
        workers_run(lloyd->lane->workers, tally_cluster, &tally, lloyd->config->k);
}

/* Assigns all rows; the sums follow. move: update_pass comes next. */
static enum status assign_pass(struct lloyd *lloyd, int32_t *labels, bool move, uint64_t *moved,
                               struct error *err)
{
    struct pass pass = {.lloyd = lloyd, .move = move && lloyd->moves, .labels = labels};
    const uint64_t scored = count_scored(lloyd);
    enum status status = shards_run(lloyd->shards, assign_share, &pass, err);
    if (status != STATUS_OK)
        return status;
    lloyd->has_labels = true;
    lloyd->measured = false;
    lloyd->passes++;
    lloyd->pruned_now =
        1 - (double)(count_scored(lloyd) - scored) / ((double)lloyd->data->rows * lloyd->config->k);
    lloyd->pruned += lloyd->pruned_now;
    memset(lloyd->drifts, 0, lloyd->config->k * sizeof *lloyd->drifts);
    *moved = 0;
    lloyd->away = false;
    for (uint32_t i = 0; i < lloyd->shards->count; i++) {
        *moved += lloyd->shards->shard[i].moved;
        lloyd->away = lloyd->away || lloyd->shards->shard[i].moves.used;
    }
    if (!lloyd->moves)
        add_up(lloyd, move);
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
static enum status distance_pass(struct lloyd *lloyd, double *distances, struct error *err)
{
    struct pass pass = {.lloyd = lloyd, .distances = distances};
    return shards_run(lloyd->shards, measure_share, &pass, err);
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

static uint32_t count_empty(const struct lloyd *lloyd)
{
    uint32_t empty = 0;
    for (uint32_t c = 0; c < lloyd->config->k; c++)
        empty += lloyd->update->counts[c] == 0;
    return empty;
}

/* Gives one row to an empty cluster. */
static enum status give_row(struct lloyd *lloyd, int32_t *labels, uint64_t row, const float *values,
                            uint32_t cluster, struct error *err)
{
    struct shard *shard = shards_of_row(lloyd->shards, row);
    struct tile *tile = data_tile_of(&shard->data, row);
    const uint32_t stride = lloyd->data->stride, at = (uint32_t)(row - tile->first);
    const uint32_t from = (uint32_t)labels[row];
    const int32_t label = (int32_t)cluster;
    labels[row] = label;
    float *centroid = lloyd->centroids + (size_t)cluster * stride;
    lloyd->drifts[cluster] += sqrt(canonical_distance(values, centroid, stride));
    memcpy(centroid, values, stride * sizeof *values);
    enum status status = lane_write(shard->lane, "label", tile->labels, at * sizeof label,
                                    sizeof label, &label, err);
    if (status == STATUS_OK)
        status = assign_forget_row(&shard->assign, tile, at, err);
    const float weight = tile->host_weights ? tile->host_weights[at] : 1;
    if (status == STATUS_OK)
        status = update_move_row(&shard->update, values, weight, from, cluster, err);
    if (status != STATUS_OK)
        return shards_blame(lloyd->shards, shard, err);
    return lloyd->update == &lloyd->totals
               ? update_move_row(lloyd->update, values, weight, from, cluster, err)
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
static enum status relocate(struct lloyd *lloyd, int32_t *labels, struct error *err)
{
    const uint64_t n = lloyd->data->rows;
    const uint32_t stride = lloyd->data->stride, empty = count_empty(lloyd);
    const size_t bytes = (size_t)lloyd->config->k * stride * sizeof *lloyd->centroids;
    const float *weights = lloyd->data->weights.of_row;
    memcpy(lloyd->previous, lloyd->centroids, bytes);
    double *distances = malloc(n * sizeof *distances);
    struct far_row *rows = malloc(n * sizeof *rows);
    float *values = malloc((size_t)empty * stride * sizeof *values);
    enum status status = STATUS_OK;
    if (!distances || !rows || !values)
        status = error_memory(err, n * sizeof *rows, "relocating empty clusters");
    if (status == STATUS_OK)
        status = distance_pass(lloyd, distances, err);
    for (uint64_t i = 0; i < n && status == STATUS_OK; i++)
        rows[i] = (struct far_row){distances[i], i};
    if (status == STATUS_OK)
        qsort(rows, n, sizeof *rows, by_distance);
    uint32_t given = 0, cluster = 0;
    for (uint64_t i = 0; i < n && given < empty && status == STATUS_OK; i++) {
        if (rows[i].distance == 0) /* every row lies on its centroid */
            break;
        if (lloyd->update->counts[labels[rows[i].row]] == 1)
            continue;
        if (weights && weights[rows[i].row] == 0)
            continue;
        float *value = values + (size_t)given * stride;
        status = shards_rows(lloyd->shards, value, &rows[i].row, 1, err);
        bool again = false;
        for (uint32_t g = 0; g < given && !again; g++)
            again = canonical_distance(value, values + (size_t)g * stride, stride) == 0;
        if (again || status != STATUS_OK)
            continue;
        while (lloyd->update->counts[cluster] > 0)
            cluster++;
        status = give_row(lloyd, labels, rows[i].row, value, cluster, err);
        given++;
    }
    if (status == STATUS_OK && given == 0)
        status =
            error_set(err, STATUS_FAILED,
                      "k is %u and larger than the number of distinct rows; choose a smaller k",
                      lloyd->config->k);
    struct pass pass = {.lloyd = lloyd, .labels = labels};
    if (status == STATUS_OK)
        status = shards_run(lloyd->shards, store_labels, &pass, err);
    if (status != STATUS_OK) /* a state to go on from */
        memcpy(lloyd->centroids, lloyd->previous, bytes);
    free(distances);
    free(rows);
    free(values);
    return status;
}

/* --- the state that is kept ------------------------------------------------------------------ */

enum status lloyd_gather(struct lloyd *lloyd, struct error *err)
{
    return lloyd->away && lloyd->moves ? moves_read_centroids(lloyd->moves, lloyd->centroids, err)
                                       : STATUS_OK;
}

void lloyd_iterated(struct lloyd *lloyd)
{
    struct error err = ERROR_INIT;
    lloyd->checkpoint->made++;
    if (!checkpoint_due(lloyd->checkpoint))
        return;
    /* A device that fails here fails in what comes next, too. */
    if (lloyd_gather(lloyd, &err) == STATUS_OK)
        checkpoint_save(lloyd->checkpoint);
}

/* --- iterations ------------------------------------------------------------------------------ */

static void move_cluster(void *context, uint64_t cluster)
{
    const struct lloyd *lloyd = context;
    const uint32_t stride = lloyd->data->stride;
    float *now = lloyd->centroids + cluster * stride, *before = lloyd->previous + cluster * stride;
    memcpy(before, now, stride * sizeof *now);
    update_centroid(lloyd->update, lloyd->centroids, cluster);
    filter_measure(lloyd->assign->filter, lloyd->centroids, cluster);
    const bool same = memcmp(now, before, stride * sizeof *now) == 0;
    const double square = same ? 0 : canonical_distance(now, before, stride);
    lloyd->drifts[cluster] += sqrt(square);
    lloyd->update->parts[cluster] = square;
}

double lloyd_move_centroids(struct lloyd *lloyd)
{
    double shift = 0;
    workers_run(lloyd->lane->workers, move_cluster, lloyd, lloyd->config->k);
    lloyd->measured = true;
    for (uint32_t c = 0; c < lloyd->config->k; c++)
        shift += lloyd->update->parts[c];
    return shift;
}

/* Moves the centroids to the means; *inertia is that about the old ones, *shift the sum of their
 * squared moves. */
static enum status update_pass(struct lloyd *lloyd, int32_t *labels, double *inertia, double *shift,
                               bool *relocated, struct error *err)
{
    enum status status = STATUS_OK;
    *relocated = count_empty(lloyd) > 0;
    if (lloyd->away && lloyd->moves && !*relocated) {
        moves_facts(shift, lloyd->assign->prune.planned ? NULL : lloyd->drifts, lloyd->moves);
        *inertia = update_inertia(lloyd->update);
        return status;
    }
    if (lloyd->moves || *relocated)
        status = bring_home(lloyd, labels, true, err);
    if (status != STATUS_OK)
        return status;
    if (lloyd->moves)
        add_up(lloyd, true);
    *inertia = update_inertia(lloyd->update);
    if (*relocated)
        status = relocate(lloyd, labels, err);
    if (status != STATUS_OK)
        return status;
    *shift = lloyd_move_centroids(lloyd);
    return STATUS_OK;
}

double lloyd_tolerance(const struct lloyd *lloyd)
{
    const struct data *data = lloyd->data;
    double variance = 0;
    for (uint32_t j = 0; j < data->dimension; j++)
        variance += column_stats_scatter(&data->stats, j) / (double)data->rows;
    return lloyd->config->tol * (variance / data->dimension);
}

/* The room doubles. */
enum status lloyd_extend_history(struct cluster_outcome *out, uint32_t i, struct error *err)
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

/* Runs until the centroids are final; *settled tells whether the labels are theirs already. */
static enum status iterate(struct lloyd *lloyd, struct cluster_outcome *out, bool *settled,
                           struct error *err)
{
    const struct cluster_config *config = lloyd->config;
    const double tol = lloyd_tolerance(lloyd);
    *settled = false;
    enum status status = STATUS_OK;
    for (uint32_t i = out->iterations; i < config->max_iter && !out->converged; i++) {
        const int64_t start = clock_now();
        uint64_t moved = 0;
        double shift = 0;
        bool relocated = false;
        status = lloyd_extend_history(out, i, err);
        if (status == STATUS_OK)
            status = assign_pass(lloyd, out->labels, true, &moved, err);
        if (status == STATUS_OK)
            status =
                update_pass(lloyd, out->labels, &out->inertia_history[i], &shift, &relocated, err);
        if (status != STATUS_OK)
            return status;
        out->iterations = i + 1;
        /* Equal labels give equal sums: nothing can change any more, and the shift is 0. So whether
         * rows moved is no part of the state that a run goes on from. */
        *settled = moved == 0 && !relocated;
        out->converged = *settled || (!relocated && shift <= tol);
        if (config->progress)
            config->progress(config->progress_context, i + 1, out->inertia_history[i], moved,
                             lloyd->pruned_now, (double)(clock_now() - start) * 1e-9);
        lloyd_iterated(lloyd);
    }
    return status;
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
static enum status forget_labels(struct lloyd *lloyd, struct cluster_outcome *out,
                                 struct error *err)
{
    struct pass pass = {.lloyd = lloyd, .labels = out->labels};
    lloyd->has_labels = lloyd->away = false;
    lloyd->passes = lloyd->pruned = 0;
    memset(lloyd->drifts, 0, lloyd->config->k * sizeof *lloyd->drifts);
    return shards_run(lloyd->shards, forget_share, &pass, err);
}

/* Fills the outcome for the final centroids; settled: the labels are theirs. */
static enum status finish(struct lloyd *lloyd, struct cluster_outcome *out, bool settled,
                          struct error *err)
{
    const uint32_t stride = lloyd->data->stride;
    enum status status = STATUS_OK;
    /* The last assignment; a cluster that it leaves empty gets a row, whose distance falls to zero
     * and no other grows, so this ends. */
    while (status == STATUS_OK && !settled) {
        uint64_t moved;
        status = assign_pass(lloyd, out->labels, false, &moved, err);
        settled = count_empty(lloyd) == 0;
        if (status == STATUS_OK && !settled)
            status = bring_home(lloyd, out->labels, true, err);
        if (status == STATUS_OK && !settled)
            status = relocate(lloyd, out->labels, err);
    }
    if (status == STATUS_OK)
        status = bring_home(lloyd, out->labels, false, err);
    if (status == STATUS_OK)
        status = outcome_measure(out, lloyd->shards, lloyd->update->counts, err);
    out->pruned = lloyd->passes > 0 ? lloyd->pruned / lloyd->passes : 0;
    for (uint32_t c = 0; c < out->k && status == STATUS_OK; c++)
        memcpy(out->centroids + (size_t)c * out->dimension, lloyd->centroids + (size_t)c * stride,
               out->dimension * sizeof *out->centroids);
    return status;
}

enum status lloyd_run(struct lloyd *lloyd, struct cluster_outcome *out, struct error *err)
{
    bool settled = false;
    enum status status = STATUS_OK;
    lloyd->measured = false;
    if (lloyd->config->mini_batch > 0)
        status = minibatch_iterate(lloyd, out, err);
    if (status == STATUS_OK)
        status = forget_labels(lloyd, out, err);
    if (status == STATUS_OK && lloyd->config->mini_batch == 0)
        status = iterate(lloyd, out, &settled, err);
    return status == STATUS_OK ? finish(lloyd, out, settled, err) : status;
}

enum status lloyd_complete(struct lloyd *lloyd, struct cluster_outcome *out, struct error *err)
{
    const size_t stride = lloyd->data->stride, bytes = out->dimension * sizeof *out->centroids;
    lloyd->measured = false;
    memset(lloyd->centroids, 0, out->k * stride * sizeof *lloyd->centroids);
    for (size_t c = 0; c < out->k; c++)
        memcpy(lloyd->centroids + c * stride, out->centroids + c * out->dimension, bytes);
    enum status status = forget_labels(lloyd, out, err);
    return status == STATUS_OK ? finish(lloyd, out, false, err) : status;
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
    const struct cluster_config *config = pass->lloyd->config;
    const struct data_share *share = &shard->data.share;
    struct cluster_outcome *out = pass->out;
    const uint32_t slices = fetch_takers(shard->lane);
    struct tile *tile;
    bool incremental;
    enum status status = use_centroids(pass->lloyd, shard, &incremental, err);
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

enum status lloyd_label(struct lloyd *lloyd, struct cluster_outcome *out, struct error *err)
{
    struct pass pass = {.lloyd = lloyd, .out = out};
    return shards_run(lloyd->shards, label_share, &pass, err);
}
