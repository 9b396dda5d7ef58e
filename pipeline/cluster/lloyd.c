/* lloyd.c: Lloyd's iterations.
 *
 * An iteration assigns every row and then moves the centroids to the means. How far they move is
 * kept for the next assignment, which need not search rows that cannot have a new label. */
#include "cluster/lloyd.h"
#include "base/clock.h"
#include "cluster/canonical.h"
#include "cluster/minibatch.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status lloyd_open(struct lloyd *lloyd, struct assign *assign, struct update *update,
                       struct moves *moves, const struct cluster_config *config,
                       struct checkpoint *checkpoint, struct error *err)
{
    struct data *data = assign->data;
    *lloyd = (struct lloyd){.config = config,
                            .lane = assign->lane,
                            .data = data,
                            .assign = assign,
                            .update = update,
                            .moves = moves,
                            .checkpoint = checkpoint};
    size_t bytes = (size_t)config->k * data->stride * sizeof(float);
    lloyd->centroids = calloc(1, bytes);
    lloyd->previous = calloc(1, bytes);
    lloyd->drifts = calloc(config->k, sizeof *lloyd->drifts);
    lloyd->tile_labels = malloc(data->tile_rows * sizeof *lloyd->tile_labels);
    lloyd->tile_distances = malloc(data->tile_rows * sizeof *lloyd->tile_distances);
    if (lloyd->centroids && lloyd->previous && lloyd->drifts && lloyd->tile_labels &&
        lloyd->tile_distances)
        return STATUS_OK;
    return error_memory(err, bytes, "centroids");
}

void lloyd_close(struct lloyd *lloyd)
{
    free(lloyd->centroids);
    free(lloyd->previous);
    free(lloyd->drifts);
    free(lloyd->tile_labels);
    free(lloyd->tile_distances);
    *lloyd = (struct lloyd){0};
}

/* --- passes ---------------------------------------------------------------------------------- */

/* Makes the device work with lloyd->centroids; *incremental tells whether the tiles' labels help.
 */
static enum status use_centroids(struct lloyd *lloyd, bool *incremental, struct error *err)
{
    const double *drifts = lloyd->has_labels ? lloyd->drifts : NULL;
    const uint32_t k = lloyd->config->k;
    if (lloyd->away)
        return assign_use_centroids(lloyd->assign, incremental, k, drifts, err);
    return assign_centroids(lloyd->assign, incremental, lloyd->centroids, k, drifts, err);
}

/* Makes labels, sums and centroids of the host the newest ones. */
static enum status bring_home(struct lloyd *lloyd, int32_t *labels, struct error *err)
{
    if (!lloyd->away)
        return STATUS_OK;
    lloyd->away = false;
    return moves_fetch(lloyd->moves, labels, lloyd->centroids, err);
}

/* The labels of a tile are new: the sums follow. */
static enum status follow(struct lloyd *lloyd, struct tile *tile, int32_t *labels, uint64_t *moved,
                          struct error *err)
{
    if (lloyd->moves)
        return moves_tile(lloyd->moves, tile, err);
    uint64_t tile_moved = 0;
    enum status status = lane_read(lloyd->lane, "labels", tile->labels, 0,
                                   tile->rows * sizeof *labels, lloyd->tile_labels, err);
    if (status == STATUS_OK)
        status = update_tile(&tile_moved, lloyd->update, tile, labels, lloyd->tile_labels, err);
    /* The sums' commands must be over before the tile goes. */
    if (status == STATUS_OK && !lloyd->data->resident)
        status = update_wait(lloyd->update, err);
    if (status == STATUS_OK)
        memcpy(labels, lloyd->tile_labels, tile->rows * sizeof *labels);
    *moved += tile_moved;
    return status;
}

/* Assigns all rows; the sums follow. */
static enum status assign_pass(struct lloyd *lloyd, int32_t *labels, uint64_t *moved,
                               struct error *err)
{
    bool incremental;
    struct tile *tile;
    const uint64_t scored = lloyd->assign->scored;
    *moved = 0;
    enum status status = use_centroids(lloyd, &incremental, err);
    if (status == STATUS_OK)
        status = data_begin(lloyd->data, err);
    while (status == STATUS_OK && (status = data_next(lloyd->data, &tile, err)) == STATUS_OK) {
        status = assign_tile(lloyd->assign, tile, incremental, err);
        if (status == STATUS_OK)
            status = follow(lloyd, tile, labels + tile->first, moved, err);
        if (status == STATUS_OK)
            status = data_done(lloyd->data, tile, err);
    }
    data_end(lloyd->data);
    if (status != STATUS_END)
        return status;
    lloyd->has_labels = true;
    lloyd->passes++;
    lloyd->pruned_now = 1 - (double)(lloyd->assign->scored - scored) /
                                ((double)lloyd->data->rows * lloyd->config->k);
    lloyd->pruned += lloyd->pruned_now;
    memset(lloyd->drifts, 0, lloyd->config->k * sizeof *lloyd->drifts);
    lloyd->away = lloyd->moves;
    return lloyd->moves ? moves_read(moved, lloyd->moves, err) : update_read(lloyd->update, err);
}

/* The canonical distances of all rows to their centroids, n of them. */
static enum status distance_pass(struct lloyd *lloyd, double *distances, struct error *err)
{
    struct tile *tile;
    enum status status = data_begin(lloyd->data, err);
    while (status == STATUS_OK && (status = data_next(lloyd->data, &tile, err)) == STATUS_OK) {
        status = assign_tile_distances(lloyd->assign, tile, distances + tile->first, err);
        if (status == STATUS_OK)
            status = data_done(lloyd->data, tile, err);
    }
    data_end(lloyd->data);
    return status == STATUS_END ? STATUS_OK : status;
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
    struct tile *tile = data_tile_of(lloyd->data, row);
    const uint32_t stride = lloyd->data->stride, at = (uint32_t)(row - tile->first);
    const uint32_t from = (uint32_t)labels[row];
    const int32_t label = (int32_t)cluster;
    labels[row] = label;
    float *centroid = lloyd->centroids + (size_t)cluster * stride;
    lloyd->drifts[cluster] += sqrt(canonical_distance(values, centroid, stride));
    memcpy(centroid, values, stride * sizeof *values);
    enum status status =
        lane_write(lloyd->lane, "label", tile->labels, at * sizeof label, sizeof label, &label, err);
    if (status == STATUS_OK)
        status = assign_forget_row(lloyd->assign, tile, at, err);
    const float weight = tile->host_weights ? tile->host_weights[at] : 1;
    return status == STATUS_OK ? update_move_row(lloyd->update, values, weight, from, cluster, err)
                               : status;
}

/* Gives each empty cluster the row farthest from its centroid (ties to the lowest), rows of equal
 * values once, and none of weight 0. A row that is alone in its cluster is at distance zero unless
 * the centroid is not the mean yet; taking it would only empty another cluster, so it stays. */
static enum status relocate(struct lloyd *lloyd, int32_t *labels, struct error *err)
{
    const uint64_t n = lloyd->data->rows;
    const uint32_t stride = lloyd->data->stride, empty = count_empty(lloyd);
    const float *weights = lloyd->data->weights.of_row;
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
        status = data_rows(lloyd->data, value, &rows[i].row, 1, err);
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
    if (status == STATUS_OK && lloyd->moves)
        status = moves_store(lloyd->moves, labels, err);
    free(distances);
    free(rows);
    free(values);
    return status;
}

/* --- the state that is kept ------------------------------------------------------------------ */

enum status lloyd_gather(struct lloyd *lloyd, struct error *err)
{
    return lloyd->away ? moves_read_centroids(lloyd->moves, lloyd->centroids, err) : STATUS_OK;
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

double lloyd_move_centroids(struct lloyd *lloyd)
{
    const uint32_t stride = lloyd->data->stride;
    double shift = 0;
    update_centroids(lloyd->update, lloyd->centroids);
    for (uint32_t c = 0; c < lloyd->config->k; c++) {
        const float *now = lloyd->centroids + (size_t)c * stride;
        const float *before = lloyd->previous + (size_t)c * stride;
        if (memcmp(now, before, stride * sizeof *now) != 0) {
            const double square = canonical_distance(now, before, stride);
            lloyd->drifts[c] += sqrt(square);
            shift += square;
        }
    }
    return shift;
}

/* Moves the centroids to the means; *inertia is that about the old ones, *shift the sum of their
 * squared moves. */
static enum status update_pass(struct lloyd *lloyd, int32_t *labels, double *inertia, double *shift,
                               bool *relocated, struct error *err)
{
    const uint32_t k = lloyd->config->k, stride = lloyd->data->stride;
    enum status status = STATUS_OK;
    *relocated = count_empty(lloyd) > 0;
    if (lloyd->away && !*relocated) {
        status = moves_centroids(shift, lloyd->drifts, lloyd->moves, err);
        *inertia = update_inertia_of_parts(lloyd->update);
        return status;
    }
    status = bring_home(lloyd, labels, err);
    if (status != STATUS_OK)
        return status;
    *inertia = update_inertia(lloyd->update, lloyd->centroids);
    memcpy(lloyd->previous, lloyd->centroids, (size_t)k * stride * sizeof *lloyd->centroids);
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
            status = assign_pass(lloyd, out->labels, &moved, err);
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

struct nearest_row {
    double distance;
    int64_t row;
};

/* Keeps the three smallest by distance, then row. */
static void keep_nearest(struct nearest_row *three, double distance, int64_t row)
{
    int place = 3;
    while (place > 0 && (three[place - 1].row < 0 || distance < three[place - 1].distance ||
                         (distance == three[place - 1].distance && row < three[place - 1].row)))
        place--;
    if (place == 3)
        return;
    memmove(three + place + 1, three + place, (size_t)(2 - place) * sizeof *three);
    three[place] = (struct nearest_row){distance, row};
}

/* What is worked out of a tile's distances, in parts of whole blocks. */
struct measure_job {
    const struct tile *tile;
    const struct cluster_outcome *out;
    double *distances;           /* of a tile, with room for all_rows */
    double *sums;                /* of blocks */
    struct nearest_row *nearest; /* k x 3 for each part */
    uint32_t k, part_rows, all_rows;
};

static void measure_part(void *context, uint64_t part)
{
    const struct measure_job *job = context;
    struct nearest_row *nearest = job->nearest + part * job->k * 3;
    const uint64_t from = part * job->part_rows;
    for (uint64_t at = from; at < from + job->part_rows && at < job->tile->rows;
         at += KMEANS_BLOCK_ROWS) {
        double block[KMEANS_BLOCK_ROWS];
        const uint64_t left = job->tile->rows - at;
        const uint32_t rows = left < KMEANS_BLOCK_ROWS ? (uint32_t)left : KMEANS_BLOCK_ROWS;
        memcpy(block, job->distances + at, rows * sizeof *block);
        for (uint32_t i = 0; i < rows; i++) {
            const uint64_t row = job->tile->first + at + i;
            job->out->distances[row] = (float)block[i];
            keep_nearest(nearest + (size_t)job->out->labels[row] * 3, block[i], (int64_t)row);
            if (job->tile->host_weights)
                block[i] *= (double)job->tile->host_weights[at + i];
        }
        job->sums[at / KMEANS_BLOCK_ROWS] = canonical_block_sum(block, rows);
    }
}

/* The first touch of many pages takes longer than reading into them, unless threads share it. */
static void touch_part(void *context, uint64_t part)
{
    const struct measure_job *job = context;
    const uint64_t from = part * job->part_rows, rows = job->all_rows;
    const uint64_t to = from + job->part_rows < rows ? from + job->part_rows : rows;
    if (from < to)
        memset(job->distances + from, 0, (to - from) * sizeof *job->distances);
}

/* As many parts as threads, unless their tables would be large beside the rows. */
static uint32_t measure_parts(const struct lloyd *lloyd)
{
    const uint64_t most = lloyd->data->tile_rows / ((uint64_t)lloyd->config->k * 3) + 1;
    const unsigned threads = workers_count(lloyd->lane->workers);
    return most < threads ? (uint32_t)most : threads;
}

/* The sums count no rows of weight 0. */
static void count_labels(const struct lloyd *lloyd, struct cluster_outcome *out)
{
    memcpy(out->sizes, lloyd->update->counts, out->k * sizeof *out->sizes);
    if (!lloyd->data->weights.of_row)
        return;
    memset(out->sizes, 0, out->k * sizeof *out->sizes);
    for (uint64_t i = 0; i < out->rows; i++)
        out->sizes[out->labels[i]]++;
}

/* Distances, inertia (pairwise within blocks of rows, blocks in order), sizes and nearest rows. */
static enum status measure(struct lloyd *lloyd, struct cluster_outcome *out, struct error *err)
{
    const uint32_t k = lloyd->config->k, parts = measure_parts(lloyd);
    const size_t rows = (size_t)parts * k * 3;
    const uint32_t blocks = (lloyd->data->tile_rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    struct tile *tile;
    struct measure_job job = {.out = out,
                              .distances = lloyd->tile_distances,
                              .sums = malloc(blocks * sizeof *job.sums),
                              .nearest = malloc(rows * sizeof *job.nearest),
                              .k = k,
                              .part_rows = (blocks + parts - 1) / parts * KMEANS_BLOCK_ROWS,
                              .all_rows = lloyd->data->tile_rows};
    enum status status = STATUS_OK;
    if (!job.sums || !job.nearest)
        status = error_memory(err, rows * sizeof *job.nearest, "nearest rows");
    for (size_t i = 0; i < rows && status == STATUS_OK; i++)
        job.nearest[i] = (struct nearest_row){0, -1};
    out->inertia = 0;
    workers_run(lloyd->lane->workers, touch_part, &job, parts);
    if (status == STATUS_OK)
        status = data_begin(lloyd->data, err);
    while (status == STATUS_OK && (status = data_next(lloyd->data, &tile, err)) == STATUS_OK) {
        status = assign_tile_distances(lloyd->assign, tile, lloyd->tile_distances, err);
        if (status != STATUS_OK)
            break;
        job.tile = tile;
        workers_run(lloyd->lane->workers, measure_part, &job, parts);
        for (uint32_t i = 0; i < tile->rows; i += KMEANS_BLOCK_ROWS)
            out->inertia += job.sums[i / KMEANS_BLOCK_ROWS];
        status = data_done(lloyd->data, tile, err);
    }
    data_end(lloyd->data);
    for (uint32_t part = 1; part < parts && status == STATUS_END; part++)
        for (size_t i = 0; i < (size_t)k * 3; i++) {
            const struct nearest_row *other = &job.nearest[part * (size_t)k * 3 + i];
            if (other->row >= 0)
                keep_nearest(job.nearest + i / 3 * 3, other->distance, other->row);
        }
    for (size_t i = 0; i < (size_t)k * 3 && status == STATUS_END; i++)
        out->nearest[i] = job.nearest[i].row;
    out->inertia *= lloyd->data->weights.unit;
    count_labels(lloyd, out);
    free(job.sums);
    free(job.nearest);
    return status == STATUS_END ? STATUS_OK : status;
}

/* No row has a label. */
static enum status forget_labels(struct lloyd *lloyd, struct cluster_outcome *out,
                                 struct error *err)
{
    for (uint64_t i = 0; i < lloyd->data->rows; i++)
        out->labels[i] = -1;
    lloyd->has_labels = lloyd->away = false;
    lloyd->passes = lloyd->pruned = 0;
    memset(lloyd->drifts, 0, lloyd->config->k * sizeof *lloyd->drifts);
    enum status status = update_reset(lloyd->update, err);
    return status == STATUS_OK && lloyd->moves ? moves_reset(lloyd->moves, err) : status;
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
        status = assign_pass(lloyd, out->labels, &moved, err);
        settled = count_empty(lloyd) == 0;
        if (status == STATUS_OK && !settled)
            status = bring_home(lloyd, out->labels, err);
        if (status == STATUS_OK && !settled)
            status = relocate(lloyd, out->labels, err);
    }
    if (status == STATUS_OK)
        status = bring_home(lloyd, out->labels, err);
    if (status == STATUS_OK)
        status = measure(lloyd, out, err);
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
    memset(lloyd->centroids, 0, out->k * stride * sizeof *lloyd->centroids);
    for (size_t c = 0; c < out->k; c++)
        memcpy(lloyd->centroids + c * stride, out->centroids + c * out->dimension, bytes);
    enum status status = forget_labels(lloyd, out, err);
    return status == STATUS_OK ? finish(lloyd, out, false, err) : status;
}

enum status lloyd_label(struct lloyd *lloyd, struct cluster_outcome *out, struct error *err)
{
    bool incremental;
    struct tile *tile;
    enum status status = use_centroids(lloyd, &incremental, err);
    if (status == STATUS_OK)
        status = data_begin(lloyd->data, err);
    while (status == STATUS_OK && (status = data_next(lloyd->data, &tile, err)) == STATUS_OK) {
        double *distances = lloyd->tile_distances;
        status = assign_tile(lloyd->assign, tile, false, err);
        if (status == STATUS_OK)
            status = assign_tile_distances(lloyd->assign, tile, distances, err);
        if (status == STATUS_OK)
            status = lane_read(lloyd->lane, "labels", tile->labels, 0,
                               tile->rows * sizeof *out->labels, out->labels + tile->first, err);
        for (uint32_t i = 0; i < tile->rows && status == STATUS_OK; i++)
            out->distances[tile->first + i] = (float)distances[i];
        if (status == STATUS_OK && lloyd->config->phase)
            lloyd->config->phase(lloyd->config->progress_context, "rows labelled",
                                 tile->first + tile->rows, lloyd->data->rows);
        if (status == STATUS_OK)
            status = data_done(lloyd->data, tile, err);
    }
    data_end(lloyd->data);
    return status == STATUS_END ? STATUS_OK : status;
}
