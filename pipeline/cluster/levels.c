/* levels.c: fits one after the other, each kept in the checkpoint once it is done.
 *
 * A job that is resumed makes the same calls: what the checkpoint has is completed by one assignment instead
 * of found. All processes make them; the first has labels, the others centroids alone. */
#include "cluster/levels.h"
#include "base/compare.h"
#include "base/labelled.h"
#include "base/minmax.h"
#include "cluster/checkpoint.h"
#include "cluster/cluster.h"
#include "cluster/label_rows.h"
#include "cluster/processes.h"
#include "matrix/projected.h"
#include <stdlib.h>
#include <string.h>

struct levels {
    const struct cluster_devices *devices;
    const struct cluster_levels_config *wanted;
    struct cluster_config config;
    struct checkpoint_config checkpoint;
    struct checkpoint_fits fits;
    uint32_t at; /* fits so far, of which the checkpoint may have more */
    struct comm *comm;
    double seconds[4]; /* read, build, init, iterate: of all fits */
};

static bool is_first(const struct levels *levels)
{
    return levels->comm->rank == 0;
}

/* Gives all processes the centroids, and adds up the seconds. */
static enum status share(struct levels *levels, struct cluster_outcome *out, uint32_t k,
                         uint32_t dimension, struct error *err)
{
    const size_t bytes = (size_t)k * dimension * sizeof *out->centroids;
    if (!is_first(levels)) {
        out->k = k;
        out->dimension = dimension;
        if (!(out->centroids = malloc(bytes)))
            return error_memory(err, bytes, "centroids");
    }
    levels->seconds[0] += out->seconds_read;
    levels->seconds[1] += out->seconds_build;
    levels->seconds[2] += out->seconds_init;
    levels->seconds[3] += out->seconds_iterate;
    return comm_broadcast(levels->comm, out->centroids, bytes, 0, err);
}

static enum status find(struct levels *levels, struct cluster_outcome *out,
                        const struct matrix_source *rows, const struct cluster_config *config,
                        struct error *err)
{
    const enum status status = cluster_run(out, levels->devices, rows, config, err);
    return status == STATUS_OK ? share(levels, out, config->k, rows->dimension, err) : status;
}

static enum status complete(struct levels *levels, struct cluster_outcome *out,
                            const struct matrix_source *rows, const struct cluster_outcome *known,
                            const struct cluster_config *config, struct error *err)
{
    const enum status status = cluster_complete(out, levels->devices, rows, known, config, err);
    if (status == STATUS_INTERRUPTED && is_first(levels))
        checkpoint_save_fits(config->checkpoint, err);
    return status == STATUS_OK ? share(levels, out, config->k, rows->dimension, err) : status;
}

static enum status keep(struct levels *levels, const struct cluster_outcome *out, uint32_t round,
                        struct error *err)
{
    if (levels->wanted->count == 1 && levels->wanted->rounds == 0)
        return STATUS_OK;
    enum status status = checkpoint_add_fit(&levels->fits, out, round, round > 0, err);
    if (status == STATUS_OK && is_first(levels))
        checkpoint_save_fits(levels->config.checkpoint, err);
    return status;
}

/* One fit; *round: how often it was resampled already. */
static enum status fit(struct levels *levels, struct cluster_outcome *out, uint32_t *round,
                       const struct matrix_source *rows, const struct cluster_config *config,
                       struct error *err)
{
    const uint32_t at = levels->at++;
    *round = 0;
    if (at < levels->fits.count) {
        *round = levels->fits.round[at];
        return complete(levels, out, rows, &levels->fits.fit[at], config, err);
    }
    const enum status status = find(levels, out, rows, config, err);
    return status == STATUS_OK ? keep(levels, out, 0, err) : status;
}

/* --- resampling ------------------------------------------------------------------------------ */

/* The numbers of the rows nearest to each centroid, ascending, for all processes. */
static enum status choose_rows(uint64_t **rows, uint64_t *count, const struct levels *levels,
                               const struct cluster_outcome *out, const struct cluster_config *config,
                               uint64_t all, struct error *err)
{
    const uint32_t n = (uint32_t)min_u64(levels->wanted->nearest, all);
    const size_t bytes = (size_t)config->k * n * sizeof **rows;
    int64_t *nearest = malloc(bytes);
    uint64_t *sizes = malloc(config->k * sizeof *sizes);
    int32_t *labels = malloc((size_t)all * sizeof *labels);
    enum status status =
        nearest && sizes && labels ? STATUS_OK : error_memory(err, bytes, "the nearest rows");
    *count = 0;
    if (status == STATUS_OK && is_first(levels)) {
        for (uint64_t i = 0; i < all; i++)
            labels[i] = config->weights && config->weights[i] == 0 ? -1 : out->labels[i];
        labelled_count(sizes, nearest, n, labels, out->distances, all, config->k);
        for (size_t i = 0; i < (size_t)config->k * n; i++)
            if (nearest[i] >= 0)
                nearest[(*count)++] = nearest[i];
        qsort(nearest, *count, sizeof *nearest, compare_u64);
    }
    if (status == STATUS_OK)
        status = comm_broadcast(levels->comm, count, sizeof *count, 0, err);
    if (status == STATUS_OK)
        status = comm_broadcast(levels->comm, nearest, *count * sizeof *nearest, 0, err);
    free(sizes);
    free(labels);
    *rows = (uint64_t *)nearest;
    return status;
}

/* Iterations and histories of rounds follow each other. */
static enum status prepend_history(struct cluster_outcome *found, const struct cluster_outcome *before,
                                   struct error *err)
{
    const size_t all = (size_t)before->iterations + found->iterations;
    double *history = malloc((all + 1) * sizeof *history);
    if (!history)
        return error_memory(err, (all + 1) * sizeof *history, "the inertia of iterations");
    if (before->iterations > 0)
        memcpy(history, before->inertia_history, before->iterations * sizeof *history);
    if (found->iterations > 0)
        memcpy(history + before->iterations, found->inertia_history, found->iterations * sizeof *history);
    free(found->inertia_history);
    found->inertia_history = history;
    found->iterations = (uint32_t)all;
    return STATUS_OK;
}

static enum status resample(struct levels *levels, struct cluster_outcome *out, uint32_t round,
                            const struct matrix_source *all, const struct cluster_config *config,
                            struct error *err)
{
    struct cluster_config of_few = *config;
    struct cluster_outcome found = {0};
    struct matrix_source rows;
    uint64_t *row = NULL, count;
    float *weights = NULL;
    enum status status = choose_rows(&row, &count, levels, out, config, all->rows, err);
    if (status == STATUS_OK && config->weights && !(weights = malloc(count * sizeof *weights)))
        status = error_memory(err, count * sizeof *weights, "weights");
    for (uint64_t i = 0; weights && i < count; i++)
        weights[i] = config->weights[row[i]];
    of_few.weights = weights;
    of_few.init = INIT_KMEANSPP;
    of_few.seed = config->seed + round;
    of_few.reading = NULL;
    struct matrix_list list = {all, row};
    matrix_list_source(&rows, &list, count);
    if (status == STATUS_OK)
        status = find(levels, &found, &rows, &of_few, err);
    if (status == STATUS_OK && is_first(levels))
        status = prepend_history(&found, out, err);
    if (status == STATUS_OK) {
        cluster_outcome_clear(out);
        status = complete(levels, out, all, &found, config, err);
    }
    if (status == STATUS_OK)
        status = keep(levels, out, round, err);
    cluster_outcome_clear(&found);
    free(weights);
    free(row);
    return status;
}

/* --- levels ---------------------------------------------------------------------------------- */

/* What clusters of centroids are like those of rows. */
static struct cluster_config config_above(const struct levels *levels, uint32_t level)
{
    struct cluster_config config = levels->config;
    config.k = levels->wanted->k[level];
    if (level == 0)
        return config;
    config.metric = config.metric == METRIC_COSINE ? METRIC_COSINE : METRIC_EUCLIDEAN;
    config.init = config.init == INIT_GIVEN ? INIT_KMEANSPP : config.init;
    config.weights = NULL;
    config.reading = NULL;
    return config;
}

static enum status make_level(struct levels *levels, struct cluster_level *level, uint32_t number,
                              const struct matrix_source *rows, struct error *err)
{
    const struct cluster_config config = config_above(levels, number);
    uint32_t round;
    enum status status = fit(levels, &level->outcome, &round, rows, &config, err);
    while (round < levels->wanted->rounds && status == STATUS_OK)
        status = resample(levels, &level->outcome, ++round, rows, &config, err);
    return status;
}

static enum status make_levels(struct levels *levels, struct cluster_level *level,
                               const struct matrix_source *rows, struct error *err)
{
    enum status status = make_level(levels, &level[0], 0, rows, err);
    for (uint32_t i = 1; i < levels->wanted->count && status == STATUS_OK; i++) {
        struct matrix_memory below = {level[i - 1].outcome.centroids, rows->dimension};
        struct matrix_source centroids;
        matrix_memory_source(&centroids, &below, level[i - 1].outcome.k);
        status = make_level(levels, &level[i], i, &centroids, err);
    }
    return status;
}

/* --- of all rows ----------------------------------------------------------------------------- */

/* The labels of what a level clusters become the parents below, and those of rows follow. */
static enum status label_rows_of(struct cluster_level *below, struct cluster_outcome *out,
                                 uint64_t rows, struct error *err)
{
    below->parents = out->labels;
    out->labels = malloc((size_t)rows * sizeof *out->labels);
    float *distances = realloc(out->distances, (size_t)rows * sizeof *distances);
    out->distances = distances ? distances : out->distances;
    if (!out->labels || !distances)
        return error_memory(err, (size_t)rows * 8, "labels");
    out->rows = rows;
    for (uint64_t i = 0; i < rows; i++)
        out->labels[i] = below->parents[below->outcome.labels[i]];
    return STATUS_OK;
}

/* Distances from the centroids of all levels but the first: one pass over the rows. */
static enum status measure(struct cluster_level *level, uint32_t count, const struct matrix_source *source,
                           const struct cluster_config *config, struct error *err)
{
    const char *metric = projection_space_name((enum projection_space)config->metric);
    const uint64_t step = 4 * matrix_rows_at_once(source);
    const size_t bytes = (size_t)min_u64(step, source->rows) * source->dimension * sizeof(float);
    float *rows = malloc(bytes);
    enum status status = rows ? STATUS_OK : error_memory(err, bytes, "rows");
    for (uint64_t first = 0; first < source->rows && status == STATUS_OK; first += step) {
        const uint64_t some = min_u64(step, source->rows - first);
        status = matrix_read(source, first, some, rows, err);
        for (uint32_t i = 1; i < count && status == STATUS_OK; i++) {
            struct cluster_outcome *out = &level[i].outcome;
            status = label_rows(out->labels + first, out->distances + first, rows, some, out->dimension,
                                out->centroids, out->k, metric, config->threads,
                                config->stop, err);
        }
        if (status == STATUS_OK && config->phase)
            config->phase(config->progress_context, "rows labelled", first + some, source->rows);
    }
    free(rows);
    for (uint32_t i = 1; i < count && status == STATUS_OK; i++) {
        struct cluster_outcome *out = &level[i].outcome;
        labelled_count(out->sizes, out->nearest, 3, out->labels, out->distances, out->rows, out->k);
        out->inertia = labelled_inertia(out->labels, out->distances, config->weights, out->rows);
    }
    return status;
}

enum status cluster_levels_spread(struct cluster_level *level, uint32_t count,
                                  const struct matrix_source *source, const struct cluster_config *config,
                                  struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 1; i < count && status == STATUS_OK; i++)
        status = label_rows_of(&level[i - 1], &level[i].outcome, source->rows, err);
    return status == STATUS_OK && count > 1 ? measure(level, count, source, config, err) : status;
}

static enum status spread(struct levels *levels, struct cluster_level *level,
                          const struct matrix_source *source, struct error *err)
{
    const enum status status =
        cluster_levels_spread(level, levels->wanted->count, source, &levels->config, err);
    if (status == STATUS_INTERRUPTED)
        checkpoint_save_fits(levels->config.checkpoint, err);
    level->outcome.seconds_read = levels->seconds[0];
    level->outcome.seconds_build = levels->seconds[1];
    level->outcome.seconds_init = levels->seconds[2];
    level->outcome.seconds_iterate = levels->seconds[3];
    level->outcome.iterations_resumed = max_u64(level->outcome.iterations_resumed, levels->fits.resumed);
    return status;
}

void cluster_levels_clear(struct cluster_level *levels, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cluster_outcome_clear(&levels[i].outcome);
        free(levels[i].parents);
        levels[i].parents = NULL;
    }
}

enum status cluster_levels_run(struct cluster_level *level, const struct cluster_devices *devices,
                               const struct matrix_source *source, const struct cluster_config *config,
                               const struct cluster_levels_config *wanted, struct error *err)
{
    struct comm alone = {.size = 1}, *comm = processes_comm(config->processes);
    struct levels levels = {
        .devices = devices, .wanted = wanted, .config = *config, .comm = comm ? comm : &alone};
    const bool several = wanted->count > 1 || wanted->rounds > 0;
    enum status status = STATUS_OK;
    if (several && config->checkpoint) {
        levels.checkpoint = *config->checkpoint;
        levels.config.checkpoint = &levels.checkpoint;
        status = checkpoint_take_fits(&levels.fits, config->checkpoint, levels.comm, err);
        levels.checkpoint.fits = &levels.fits;
    }
    if (status == STATUS_OK)
        status = make_levels(&levels, level, source, err);
    if (status == STATUS_OK && is_first(&levels))
        status = spread(&levels, level, source, err);
    checkpoint_clear_fits(&levels.fits);
    return status;
}
