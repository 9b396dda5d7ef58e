/* levels.c: runs fits one after another, each stored in the checkpoint once it is finished.
 *
 * A resumed job makes the same calls: fits in the checkpoint need only one assignment. All ranks make
 * the calls; the first gets labels and centroids, the others only centroids. The rows of a level stay
 * on the devices for all its rounds if there is room for those of a round beside them. */
#include "kmeans/levels.h"
#include "base/clock.h"
#include "base/held.h"
#include "base/labelled.h"
#include "base/minmax.h"
#include "base/workers.h"
#include "kmeans/checkpoint.h"
#include "kmeans/cluster.h"
#include "kmeans/engine.h"
#include "kmeans/label_rows.h"
#include "kmeans/run.h"
#include "kmeans/seed.h"
#include "matrix/projected.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Parts of a split for each thread before ranks exchange what they found. */
#define GROUP_EACH 4u
/* Rows that a thread reads at a time, one by one, to resample. */
#define LISTED_PIECE 16u
/* Bytes of a centroid's value on a device: float32 twice, panels, float16 twice, and a sum. */
#define OF_CENTROID 24ull

/* Rows to fit: on the devices of all ranks, or of the first one alone if the rows are too few or the
 * method uses one device. */
struct loaded {
    struct engine *engine; /* NULL: there are none, or another rank has them */
    struct rank rank;
    struct comm alone;
    bool open;
};

struct levels {
    const struct rank *rank;
    struct comm *comm;
    const struct cluster_levels_config *wanted;
    struct cluster_config config;
    struct checkpoint_fits *fits; /* rank 0's; those of others are empty */
    uint32_t at;                  /* fits so far, of which the checkpoint may have more */
    struct loaded loaded;         /* the rows of a level */
    double seconds[3];            /* read, init, iterate: of all fits */
};

static bool is_first(const struct levels *levels)
{
    return levels->comm->rank == 0;
}

/* --- rows on devices ------------------------------------------------------------------------- */

static enum status loaded_open(struct loaded *loaded, struct levels *levels,
                               const struct matrix_source *rows,
                               const struct cluster_config *config, struct error *err)
{
    const uint64_t chunk = rows->rows > 0 ? column_stats_chunk(rows->rows) : 1;
    const bool all =
        !method_of(config)->one_device && (rows->rows + chunk - 1) / chunk >= levels->comm->size;
    *loaded = (struct loaded){.alone = {.size = 1}, .open = true};
    loaded->rank = (struct rank){all ? levels->comm : &loaded->alone, levels->rank->lane, rows};
    if (!all && !is_first(levels))
        return STATUS_OK;
    if (!(loaded->engine = calloc(1, sizeof *loaded->engine)))
        return error_memory(err, sizeof *loaded->engine, "rows");
    const enum status status = engine_open(loaded->engine, &loaded->rank, config, err);
    levels->seconds[0] += loaded->engine->shard.data.seconds_read;
    if (status == STATUS_INTERRUPTED && is_first(levels) && levels->fits->count > 0)
        checkpoint_save_fits(config->checkpoint, err);
    return status;
}

static void loaded_close(struct loaded *loaded)
{
    if (loaded->engine)
        engine_close(loaded->engine);
    free(loaded->engine);
    *loaded = (struct loaded){0};
}

/* One fit, whose centroids all ranks get; known: see cluster_fit. */
static enum status loaded_fit(struct loaded *loaded, struct levels *levels,
                              struct cluster_outcome *out, struct cluster_outcome *known,
                              const struct cluster_config *config, struct error *err)
{
    const uint32_t dimension = loaded->rank.source->dimension;
    const size_t bytes = (size_t)config->k * dimension * sizeof *out->centroids;
    enum status status = STATUS_OK;
    *out = (struct cluster_outcome){0};
    if (loaded->engine)
        status = cluster_fit(out, loaded->engine, &loaded->rank, known, err);
    if (status == STATUS_INTERRUPTED && known && is_first(levels))
        checkpoint_save_fits(config->checkpoint, err);
    if (status != STATUS_OK)
        return status;
    if (!is_first(levels) && cluster_outcome_open(out, config->k, dimension, 0, err) != STATUS_OK)
        return err->status;
    levels->seconds[1] += out->seconds_init;
    levels->seconds[2] += out->seconds_iterate;
    return comm_broadcast(levels->comm, out->centroids, bytes, 0, err);
}

/* The same for the rows of a level, which it loads if necessary. */
static enum status fit_level(struct levels *levels, struct cluster_outcome *out,
                             const struct matrix_source *rows, struct cluster_outcome *known,
                             const struct cluster_config *config, struct error *err)
{
    enum status status = STATUS_OK;
    if (!levels->loaded.open)
        status = loaded_open(&levels->loaded, levels, rows, config, err);
    return status == STATUS_OK ? loaded_fit(&levels->loaded, levels, out, known, config, err)
                               : status;
}

/* Frees the loaded rows unless so many more, with k centroids, fit beside them on each rank. */
static enum status make_room(struct levels *levels, uint64_t rows, uint32_t k, struct error *err)
{
    int64_t votes = 1;
    if (levels->loaded.engine) {
        const struct data *data = &levels->loaded.engine->shard.data;
        /* Both need centroids, panels of them, and sums. */
        votes = data_has_room(data, rows, 2 * OF_CENTROID * k * data->stride);
    }
    const enum status status = comm_sum(levels->comm, &votes, &votes, 1, err);
    if (votes < levels->comm->size)
        loaded_close(&levels->loaded);
    return status;
}

/* --- fits that are kept ---------------------------------------------------------------------- */

static enum status keep(struct levels *levels, const struct cluster_outcome *out, uint32_t round,
                        struct error *err)
{
    if (!is_first(levels))
        return STATUS_OK;
    const enum status status = checkpoint_add_fit(levels->fits, out, round, round > 0, err);
    if (status == STATUS_OK)
        checkpoint_save_fits(levels->config.checkpoint, err);
    return status;
}

/* One fit; *round: how often it was resampled already. */
static enum status fit(struct levels *levels, struct cluster_outcome *out, uint32_t *round,
                       const struct matrix_source *rows, const struct cluster_config *config,
                       struct error *err)
{
    const uint32_t at = levels->at++, dimension = rows->dimension;
    const bool has = at < levels->fits->count;
    uint32_t about[2] = {has, has ? levels->fits->round[at] : 0};
    struct cluster_outcome known = {0};
    enum status status = comm_broadcast(levels->comm, about, sizeof about, 0, err);
    *round = about[1];
    if (status == STATUS_OK && !about[0]) {
        status = fit_level(levels, out, rows, NULL, config, err);
        return status == STATUS_OK ? keep(levels, out, 0, err) : status;
    }
    if (status == STATUS_OK)
        status = has ? cluster_outcome_copy(&known, &levels->fits->fit[at], err)
                     : cluster_outcome_open(&known, config->k, dimension, 0, err);
    if (status == STATUS_OK)
        status = comm_broadcast(levels->comm, known.centroids,
                                (size_t)config->k * dimension * sizeof *known.centroids, 0, err);
    if (status == STATUS_OK)
        status = fit_level(levels, out, rows, &known, config, err);
    cluster_outcome_clear(&known);
    return status;
}

/* --- resampling ------------------------------------------------------------------------------ */

/* Finds the rows nearest to each centroid, `each` clusters at a time. */
struct choice {
    uint64_t *sizes, rows;
    int64_t *nearest;
    const int32_t *labels;
    const float *distances;
    uint32_t n, k, each;
};

static void choose_part(void *context, uint64_t part)
{
    const struct choice *choice = context;
    const uint32_t first = (uint32_t)part * choice->each;
    labelled_count(choice->sizes + first, choice->nearest + (size_t)first * choice->n, choice->n,
                   choice->labels, choice->distances, choice->rows, first,
                   min_u32(choice->k - first, choice->each));
}

/* The numbers of the rows nearest to each centroid, ascending, for all ranks. */
static enum status choose_rows(uint64_t **rows, uint64_t *count, const struct levels *levels,
                               const struct cluster_outcome *out,
                               const struct cluster_config *config, uint64_t all, struct error *err)
{
    const uint32_t n = (uint32_t)min_u64(levels->wanted->nearest, all);
    const size_t most = (size_t)config->k * n, bytes = most * sizeof **rows;
    SCOPED_HELD held = {0};
    uint64_t *chosen = *rows = malloc(bytes);
    int64_t *nearest = held_array(&held, most, sizeof *nearest);
    uint64_t *sizes = held_array(&held, config->k, sizeof *sizes);
    int32_t *labels = held_array(&held, all, sizeof *labels);
    enum status status = chosen ? held_check(&held, "the nearest rows", err)
                                : error_memory(err, bytes, "the nearest rows");
    *count = 0;
    if (status == STATUS_OK && is_first(levels)) {
        const uint32_t each = (config->k + config->threads - 1) / config->threads;
        struct choice choice = {sizes, all, nearest, labels, out->distances, n, config->k, each};
        for (uint64_t i = 0; i < all; i++)
            labels[i] = config->weights && config->weights[i] == 0 ? -1 : out->labels[i];
        workers_run(levels->rank->lane->workers, choose_part, &choice,
                    (config->k + each - 1) / each);
        memset(labels, 0, all * sizeof *labels);
        for (size_t i = 0; i < most; i++)
            if (nearest[i] >= 0)
                labels[nearest[i]] = 1;
        for (uint64_t i = 0; i < all; i++)
            if (labels[i])
                chosen[(*count)++] = i;
    }
    if (status == STATUS_OK)
        status = comm_broadcast(levels->comm, count, sizeof *count, 0, err);
    if (status == STATUS_OK)
        status = comm_broadcast(levels->comm, chosen, *count * sizeof *chosen, 0, err);
    return status;
}

/* The weights of listed rows, if rows have weights (else `all` is NULL). */
static enum status weights_of_rows(float **weights, const float *all, const uint64_t *row,
                                   uint64_t count, struct error *err)
{
    *weights = all ? malloc((size_t)count * sizeof **weights) : NULL;
    if (all && !*weights)
        return error_memory(err, (size_t)count * sizeof **weights, "weights");
    for (uint64_t i = 0; all && i < count; i++)
        (*weights)[i] = all[row[i]];
    return STATUS_OK;
}

/* Iterations and histories of rounds follow each other. */
static enum status prepend_history(struct cluster_outcome *found,
                                   const struct cluster_outcome *before, struct error *err)
{
    const size_t all = (size_t)before->iterations + found->iterations;
    double *history = realloc(found->inertia_history, (all + 1) * sizeof *history);
    if (!history)
        return error_memory(err, (all + 1) * sizeof *history, "the inertia of iterations");
    memmove(history + before->iterations, history, found->iterations * sizeof *history);
    if (before->iterations > 0)
        memcpy(history, before->inertia_history, before->iterations * sizeof *history);
    found->inertia_history = history;
    found->iterations = (uint32_t)all;
    return STATUS_OK;
}

static enum status resample(struct levels *levels, struct cluster_outcome *out, uint32_t round,
                            const struct matrix_source *all, const struct cluster_config *config,
                            struct error *err)
{
    struct cluster_config of_few = *config, of_all = *config;
    struct cluster_outcome found = {0};
    struct matrix_source rows;
    struct loaded few = {0};
    uint64_t *row = NULL, count;
    float *weights = NULL;
    enum status status = choose_rows(&row, &count, levels, out, config, all->rows, err);
    if (status == STATUS_OK)
        status = weights_of_rows(&weights, config->weights, row, count, err);
    of_few.weights = weights;
    of_few.init = INIT_KMEANSPP;
    of_few.seed = config->seed + round;
    of_few.reading = of_all.reading = NULL;
    struct matrix_list list = {all, row};
    matrix_list_source(&rows, &list, count);
    rows.piece = LISTED_PIECE;
    if (status == STATUS_OK)
        status = make_room(levels, count, config->k, err);
    if (status == STATUS_OK)
        status = loaded_open(&few, levels, &rows, &of_few, err);
    if (status == STATUS_OK)
        status = loaded_fit(&few, levels, &found, NULL, &of_few, err);
    loaded_close(&few);
    if (status == STATUS_OK && is_first(levels))
        status = prepend_history(&found, out, err);
    if (status == STATUS_OK) {
        cluster_outcome_clear(out);
        status = fit_level(levels, out, all, &found, &of_all, err);
    }
    if (status == STATUS_OK)
        status = keep(levels, out, round, err);
    cluster_outcome_clear(&found);
    free(weights);
    free(row);
    return status;
}

/* --- levels ---------------------------------------------------------------------------------- */

/* The options of a level: those of the rows, adapted to centroids above the first. */
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
    loaded_close(&levels->loaded);
    return status;
}

/* --- dividing clusters ------------------------------------------------------------------------- */

/* The clusters that are divided: several at a time, each by one thread. */
struct split {
    struct levels *levels;
    const struct matrix_source *rows;
    uint64_t *row, *begin; /* rows of each part, ascending; where those of part i begin */
    uint32_t parts;
    struct cluster_outcome *found; /* of each part; k is 0 if it has no rows */
    uint32_t first, end;           /* those in memory: */
    uint32_t group;                /* the first of those that are being divided */
    float *values;
    uint64_t *place, placed; /* place of a part's rows in memory; number of rows there */
    uint32_t *seeds;         /* for the parts that are seeded: */
    uint32_t *seeded;     /* a part has seeds[(seeded[part] - 1) * split...] of its rows; 0: none */
    pthread_mutex_t lock; /* guards the following */
    uint32_t done, kept;
    bool *ended;
    uint64_t memory; /* of this rank */
    struct cluster_devices devices;
    struct error error; /* the first */
    struct held held;   /* the arrays of list_parts */
};

/* Lists the rows of each part, for all processes. */
static enum status list_parts(struct split *split, const struct cluster_outcome *coarse,
                              struct error *err)
{
    const struct levels *levels = split->levels;
    const float *weights = levels->config.weights;
    const uint64_t rows = split->rows->rows;
    uint64_t at = 0;
    split->row = held_array(&split->held, rows, sizeof *split->row);
    split->begin = held_array(&split->held, split->parts + 2ull, sizeof *split->begin);
    split->found = held_array(&split->held, split->parts, sizeof *split->found);
    split->ended = held_array(&split->held, split->parts, sizeof *split->ended);
    split->place = held_array(&split->held, split->parts, sizeof *split->place);
    split->seeded = held_array(&split->held, split->parts, sizeof *split->seeded);
    if (held_check(&split->held, "the rows of clusters", err) != STATUS_OK)
        return err->status;
    if (is_first(levels)) {
        uint64_t *place =
            split->begin + 1; /* counts, then the next place of each part, then ends */
        for (uint64_t i = 0; i < rows; i++)
            place[coarse->labels[i] + 1] += !weights || weights[i] > 0;
        for (uint32_t i = 0; i < split->parts; i++)
            at = place[i] += at;
        for (uint64_t i = 0; i < rows; i++)
            if (!weights || weights[i] > 0)
                split->row[place[coarse->labels[i]]++] = i;
    }
    const size_t bytes = (split->parts + 1) * sizeof *split->begin;
    const enum status status = comm_broadcast(levels->comm, split->begin, bytes, 0, err);
    return status == STATUS_OK
               ? comm_broadcast(levels->comm, split->row,
                                split->begin[split->parts] * sizeof *split->row, 0, err)
               : status;
}

static uint64_t rows_of_part(const struct split *split, uint32_t part)
{
    return split->begin[part + 1] - split->begin[part];
}

/* If there are several processes, each has its share of the parts. */
static bool is_own(const struct split *split, uint32_t part)
{
    return part % split->levels->comm->size == split->levels->comm->rank;
}

/* Whether a part is to be clustered by this process and is not done yet. */
static bool is_due(const struct split *split, uint32_t part)
{
    return !split->ended[part] && is_own(split, part) && rows_of_part(split, part) > 0;
}

static struct cluster_config config_of_part(const struct split *split, uint64_t rows)
{
    struct cluster_config config = split->levels->config;
    config.k = (uint32_t)min_u64(split->levels->wanted->split, rows);
    config.memory = split->memory;
    config.init = INIT_KMEANSPP;
    config.checkpoint = NULL;
    config.processes = NULL;
    config.reading = NULL;
    config.iteration = NULL;
    config.watch.show = NULL;
    return config;
}

/* Chooses the seeds of those parts in memory for which one work-group of the device can. */
static enum status seed_parts(struct split *split, struct error *err)
{
    const uint32_t k = split->levels->wanted->split, most = split->end - split->first;
    const struct cluster_config config = config_of_part(split, split->placed);
    SCOPED_HELD held = {0};
    struct seed_set *set = held_array(&held, most, sizeof *set);
    bool *done = held_array(&held, most, sizeof *done);
    struct matrix_memory memory = {.values = split->values, .dimension = split->rows->dimension};
    struct matrix_source rows;
    uint32_t count = 0;
    free(split->seeds);
    split->seeds = NULL;
    enum status status = held_check(&held, "parts", err);
    for (uint32_t part = split->first; part < split->end && status == STATUS_OK; part++)
        if (is_due(split, part) && rows_of_part(split, part) >= k &&
            rows_of_part(split, part) <= SEED_SET_ROWS) {
            set[count] = (struct seed_set){split->place[part], rows_of_part(split, part)};
            split->seeded[part] = ++count;
        }
    const bool some = count > 1 && !config.weights && config.n_init == 1 && k > 1;
    const size_t bytes = (size_t)count * k * sizeof *split->seeds;
    matrix_memory_source(&rows, &memory, split->placed);
    if (some && !(split->seeds = malloc(bytes)))
        status = error_memory(err, bytes, "seeds");
    if (some && status == STATUS_OK)
        status = seed_sets(split->seeds, done, set, count, &split->devices, &rows, &config, err);
    for (uint32_t part = split->first; part < split->end && count > 0; part++)
        if (split->seeded[part] > 0 && !done[split->seeded[part] - 1])
            split->seeded[part] = 0;
    return status;
}

/* Sends one rank's result to all. */
static enum status share_part(struct split *split, uint32_t part, uint32_t root, struct error *err)
{
    struct comm *comm = split->levels->comm;
    struct cluster_outcome *found = &split->found[part];
    uint32_t about[3] = {found->k, found->iterations, found->converged};
    if (comm->size == 1)
        return STATUS_OK;
    enum status status = comm_broadcast(comm, about, sizeof about, root, err);
    if (status != STATUS_OK)
        return status;
    const size_t values = (size_t)about[0] * split->rows->dimension;
    if (comm->rank != root) {
        cluster_outcome_clear(found);
        status = cluster_outcome_open(found, about[0], split->rows->dimension, about[1], err);
        if (status != STATUS_OK)
            return status;
        found->converged = about[2];
    }
    status = comm_broadcast(comm, found->centroids, values * sizeof(float), root, err);
    return status == STATUS_OK
               ? comm_broadcast(comm, found->inertia_history, about[1] * sizeof(double), root, err)
               : status;
}

/* Whether a fit has failed because a part has fewer distinct rows than k; if so, sets k to their
 * number. */
static bool has_fewer(struct cluster_config *config, enum status status, struct error *err)
{
    if (status != STATUS_FAILED || err->cause != CAUSE_DISTINCT)
        return false;
    config->k = (uint32_t)err->native;
    *err = (struct error)ERROR_INIT;
    return true;
}

/* Divides a part whose rows are in memory, with one thread. */
static enum status fit_part(struct split *split, uint32_t part, const float *values,
                            struct error *err)
{
    const uint64_t count = rows_of_part(split, part);
    const size_t each = split->rows->dimension;
    struct matrix_memory memory = {.values = values, .dimension = split->rows->dimension};
    struct matrix_source rows;
    struct cluster_config config = config_of_part(split, count);
    float *weights, *seeds = NULL;
    if (weights_of_rows(&weights, config.weights, split->row + split->begin[part], count, err) !=
        STATUS_OK)
        return err->status;
    matrix_memory_source(&rows, &memory, count);
    config.weights = weights;
    config.memory /= config.threads;
    config.threads = 1;
    if (split->seeded[part] > 0 && (seeds = malloc(config.k * each * sizeof *seeds))) {
        for (uint32_t c = 0; c < config.k; c++)
            memcpy(seeds + c * each,
                   values + split->seeds[(split->seeded[part] - 1ull) * config.k + c] * each,
                   each * sizeof *seeds);
        config.init = INIT_GIVEN;
        config.initial = seeds;
    }
    enum status status;
    do
        status = cluster_run(&split->found[part], &split->devices, &rows, &config, err);
    while (has_fewer(&config, status, err));
    free(weights);
    free(seeds);
    return status;
}

/* Divides a part that does not fit into memory, with all ranks. */
static enum status fit_large(struct split *split, uint32_t part, struct error *err)
{
    struct levels *levels = split->levels;
    const uint64_t count = rows_of_part(split, part);
    const double seconds = levels->seconds[0]; /* reading counts as part of dividing */
    struct matrix_list list = {split->rows, split->row + split->begin[part]};
    struct matrix_source rows;
    struct cluster_config config = config_of_part(split, count);
    float *weights;
    enum status status = weights_of_rows(&weights, config.weights, list.row, count, err);
    matrix_list_source(&rows, &list, count);
    config.weights = weights;
    config.memory = levels->config.memory;
    if (status == STATUS_OK) {
        do {
            struct loaded loaded;
            status = loaded_open(&loaded, levels, &rows, &config, err);
            if (status == STATUS_OK && loaded.engine)
                status = cluster_fit(&split->found[part], loaded.engine, &loaded.rank, NULL, err);
            loaded_close(&loaded);
        } while (has_fewer(&config, status, err));
    }
    levels->seconds[0] = seconds;
    free(weights);
    return status == STATUS_OK ? share_part(split, part, 0, err) : status;
}

/* Adds the results of the next parts to the checkpoint, in order. */
static enum status keep_parts(struct split *split, struct error *err)
{
    struct levels *levels = split->levels;
    enum status status = STATUS_OK;
    for (; split->kept < split->end && split->ended[split->kept] && status == STATUS_OK;
         split->kept++) {
        if (levels->at++ < levels->fits->count)
            continue;
        levels->fits->made += split->found[split->kept].iterations;
        status = keep(levels, &split->found[split->kept], 0, err);
    }
    return status;
}

static void divide_part(void *context, uint64_t i)
{
    struct split *split = context;
    const struct levels *levels = split->levels;
    const struct cluster_config *config = &levels->config;
    const uint32_t part = split->group + (uint32_t)i;
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&split->lock);
    enum status status = split->error.status;
    pthread_mutex_unlock(&split->lock);
    if (status == STATUS_OK && is_due(split, part))
        status = fit_part(split, part, split->values + split->place[part] * split->rows->dimension,
                          &err);
    pthread_mutex_lock(&split->lock);
    split->done += !split->ended[part];
    split->ended[part] |= status == STATUS_OK;
    if (status == STATUS_OK && levels->comm->size == 1)
        status = keep_parts(split, &err);
    if (status != STATUS_OK && split->error.status == STATUS_OK)
        split->error = err;
    if (is_first(levels))
        watch_show(&config->watch, "clusters divided", split->done, split->parts);
    pthread_mutex_unlock(&split->lock);
}

/* The number of rows read at a time: blocks for all threads, in at most a quarter of the memory. */
static uint64_t rows_of_block(const struct matrix_source *rows, uint64_t memory)
{
    const uint64_t most = memory / 4 / (rows->dimension * sizeof(float));
    return max_u64(1, min_u64(16 * matrix_rows_at_once(rows), most));
}

/* Reads the rows of the parts from `first` on as far as memory allows, at least one part. */
static enum status read_parts(struct split *split, struct workers *workers, struct error *err)
{
    const struct matrix_source *rows = split->rows;
    const uint64_t start = split->begin[split->first], step = rows_of_block(rows, split->memory);
    const uint32_t dimension = rows->dimension;
    const struct transform as_is = {METRIC_EUCLIDEAN, dimension, dimension, "row"};
    const size_t each = dimension * sizeof(float);
    for (split->end = split->first + 1; split->end < split->parts; split->end++)
        if ((split->begin[split->end + 1] - start) * each > split->memory)
            break;
    split->placed = 0;
    for (uint32_t part = split->first; part < split->end; part++) {
        split->place[part] = split->placed;
        split->placed += is_due(split, part) ? rows_of_part(split, part) : 0;
    }
    const uint64_t count = split->placed;
    int64_t *to = malloc((size_t)rows->rows * sizeof *to);
    float *read = malloc(min_u64(step, rows->rows) * each);
    free(split->values);
    split->values = malloc((size_t)count * each + 1);
    enum status status = to && read && split->values
                             ? STATUS_OK
                             : error_memory(err, count * each, "rows of clusters");
    if (status == STATUS_OK)
        memset(to, -1, (size_t)rows->rows * sizeof *to);
    for (uint32_t part = split->first; part < split->end && status == STATUS_OK; part++)
        for (uint64_t i = 0; i < rows_of_part(split, part) && is_due(split, part); i++)
            to[split->row[split->begin[part] + i]] = (int64_t)(split->place[part] + i);
    for (uint64_t first = 0; first < rows->rows && count > 0 && status == STATUS_OK;
         first += step) {
        const uint64_t some = min_u64(step, rows->rows - first);
        status = watch_check(&split->levels->config.watch, "reading rows of clusters", err);
        if (status == STATUS_OK)
            status = transform_read(&as_is, rows, workers, read, first, some, err);
        for (uint64_t i = 0; i < some && status == STATUS_OK; i++)
            if (to[first + i] >= 0)
                memcpy(split->values + (size_t)to[first + i] * dimension,
                       read + (size_t)i * dimension, each);
    }
    free(to);
    free(read);
    return status;
}

/* Divides the parts of a group; all ranks get the results, and the first rank keeps them. */
static enum status divide_group(struct split *split, struct workers *workers, uint32_t end,
                                struct error *err)
{
    workers_run(workers, divide_part, split, end - split->group);
    enum status status = split->error.status;
    if (status != STATUS_OK)
        *err = split->error;
    for (uint32_t part = split->group; part < end && status == STATUS_OK; part++)
        status = share_part(split, part, part % split->levels->comm->size, err);
    split->group = end;
    return status == STATUS_OK ? keep_parts(split, err) : status;
}

/* Divides the parts from `first` on whose rows are in memory together. */
static enum status divide_some(struct split *split, struct workers *workers, struct error *err)
{
    const struct levels *levels = split->levels;
    const size_t each = split->rows->dimension * sizeof(float);
    const bool large = rows_of_part(split, split->first) * each > split->memory;
    bool all = true;
    split->end = split->first + 1;
    enum status status = large ? STATUS_OK : read_parts(split, workers, err);
    for (uint32_t part = split->first; part < split->end; part++)
        all = all && split->ended[part];
    if (status == STATUS_OK && large && !all) {
        status = fit_large(split, split->first, err);
        split->done++;
        split->ended[split->first] = status == STATUS_OK;
    } else if (status == STATUS_OK && !all) {
        /* With several ranks, only results that all have exchanged are kept. */
        const uint32_t size = (uint32_t)levels->comm->size,
                       group = size > 1 ? GROUP_EACH * levels->config.threads * size : split->parts;
        status = seed_parts(split, err);
        for (split->group = split->first; split->group < split->end && status == STATUS_OK;)
            status = divide_group(split, workers, min_u32(split->end, split->group + group), err);
    }
    if (status == STATUS_OK)
        status = keep_parts(split, err);
    split->first = split->end;
    return status;
}

/* Takes the parts that the checkpoint has. */
static enum status take_parts(struct split *split, struct error *err)
{
    struct levels *levels = split->levels;
    const struct checkpoint_fits *fits = levels->fits;
    uint32_t taken = fits->count > levels->at ? min_u32(fits->count - levels->at, split->parts) : 0;
    enum status status = comm_broadcast(levels->comm, &taken, sizeof taken, 0, err);
    for (uint32_t i = 0; i < taken && status == STATUS_OK; i++) {
        split->ended[i] = true;
        if (is_first(levels))
            status = cluster_outcome_copy(&split->found[i], &fits->fit[levels->at + i], err);
        if (status == STATUS_OK)
            status = share_part(split, i, 0, err);
        split->done++;
    }
    return status;
}

/* Joins all parts in one outcome without labels; *parents: of its clusters. */
static enum status join_parts(struct cluster_outcome *out, int32_t **parents,
                              const struct split *split, struct error *err)
{
    const uint32_t dimension = split->rows->dimension;
    uint32_t k = 0, iterations = 0, at = 0;
    for (uint32_t i = 0; i < split->parts; i++) {
        k += split->found[i].k;
        iterations = max_u32(iterations, split->found[i].iterations);
    }
    *parents = malloc(k * sizeof **parents);
    if (cluster_outcome_open(out, k, dimension, iterations, err) != STATUS_OK || !*parents)
        return error_memory(err, (size_t)k * dimension * sizeof *out->centroids, "centroids");
    out->converged = true;
    for (uint32_t i = 0; i < split->parts; i++) {
        const struct cluster_outcome *found = &split->found[i];
        if (found->k == 0)
            continue;
        memcpy(out->centroids + (size_t)at * dimension, found->centroids,
               (size_t)found->k * dimension * sizeof *out->centroids);
        for (uint32_t c = 0; c < found->k; c++)
            (*parents)[at++] = (int32_t)i;
        for (uint32_t j = 0; j < out->iterations && found->iterations > 0; j++)
            out->inertia_history[j] += found->inertia_history[min_u32(j, found->iterations - 1)];
        out->converged = out->converged && found->converged;
    }
    return STATUS_OK;
}

static enum status divide_all(struct split *split, struct error *err)
{
    struct workers *workers = split->levels->rank->lane->workers;
    enum status status = take_parts(split, err);
    split->levels->fits->pending = false; /* parts save no state of their own */
    while (status == STATUS_OK && split->first < split->parts)
        status = divide_some(split, workers, err);
    if (status == STATUS_INTERRUPTED && is_first(split->levels))
        checkpoint_save_fits(split->levels->config.checkpoint, err);
    return status;
}

static void forget_parts(struct split *split)
{
    for (uint32_t i = 0; i < split->parts && split->found; i++)
        cluster_outcome_clear(&split->found[i]);
    free(split->values);
    free(split->seeds);
}

/* Level 2 is the clustering of the rows, and level 1 is made by dividing its clusters. */
static enum status make_split(struct levels *levels, struct cluster_level *level,
                              const struct matrix_source *rows, struct error *err)
{
    struct cluster_config config = levels->config;
    struct cluster_outcome *coarse = &level[1].outcome, known = {0};
    struct split split = {.levels = levels,
                          .rows = rows,
                          .parts = levels->wanted->k[1],
                          .memory = config.memory / (levels->comm->apart ? 1 : levels->comm->size),
                          .devices = {&levels->rank->lane->ocl, 1},
                          .error = ERROR_INIT};
    int32_t *parents = NULL;
    uint32_t round;
    config.k = split.parts;
    pthread_mutex_init(&split.lock, NULL);
    enum status status = fit(levels, coarse, &round, rows, &config, err);
    loaded_close(&levels->loaded);
    const int64_t start = clock_now();
    if (status == STATUS_OK)
        status = list_parts(&split, coarse, err);
    if (status == STATUS_OK)
        status = divide_all(&split, err);
    if (status == STATUS_OK)
        status = join_parts(&known, &parents, &split, err);
    forget_parts(&split);
    levels->seconds[2] += clock_seconds_since(start);
    config.k = known.k;
    config.reading = NULL;
    if (status == STATUS_OK)
        status = fit_level(levels, &level[0].outcome, rows, &known, &config, err);
    loaded_close(&levels->loaded);
    free(coarse->labels);
    coarse->labels = parents;
    cluster_outcome_clear(&known);
    held_free(&split.held);
    pthread_mutex_destroy(&split.lock);
    return status;
}

static enum status make_levels(struct levels *levels, struct cluster_level *level,
                               const struct matrix_source *rows, struct error *err)
{
    if (levels->wanted->split > 0)
        return make_split(levels, level, rows, err);
    enum status status = make_level(levels, &level[0], 0, rows, err);
    for (uint32_t i = 1; i < levels->wanted->count && status == STATUS_OK; i++) {
        struct matrix_memory below = {.values = level[i - 1].outcome.centroids,
                                      .dimension = rows->dimension};
        struct matrix_source centroids;
        matrix_memory_source(&centroids, &below, level[i - 1].outcome.k);
        status = make_level(levels, &level[i], i, &centroids, err);
    }
    return status;
}

/* --- of all rows ----------------------------------------------------------------------------- */

/* The labels of a level's k-means become the parents of the level below; the labels of rows follow
 * from them. */
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

/* Computes distances from the centroids of all levels except the first, in one pass over the
 * rows. */
static enum status measure(struct cluster_level *level, uint32_t count,
                           const struct matrix_source *source, const struct cluster_config *config,
                           struct error *err)
{
    const char *metric = metric_names[config->metric];
    const uint64_t step = rows_of_block(source, config->memory);
    const uint32_t dimension = source->dimension;
    const size_t bytes = (size_t)min_u64(step, source->rows) * dimension * sizeof(float);
    const struct transform as_is = {METRIC_EUCLIDEAN, dimension, dimension, "row"};
    struct workers *workers = NULL;
    float *rows = malloc(bytes);
    enum status status =
        rows ? workers_open(&workers, config->threads, err) : error_memory(err, bytes, "rows");
    for (uint64_t first = 0; first < source->rows && status == STATUS_OK; first += step) {
        const uint64_t some = min_u64(step, source->rows - first);
        status = transform_read(&as_is, source, workers, rows, first, some, err);
        for (uint32_t i = 1; i < count && status == STATUS_OK; i++) {
            struct cluster_outcome *out = &level[i].outcome;
            status = label_rows(out->labels + first, out->distances + first, rows, some,
                                out->dimension, out->centroids, out->k, metric, config->threads,
                                config->watch.stop, err);
        }
        if (status == STATUS_OK)
            watch_show(&config->watch, "rows labelled", first + some, source->rows);
    }
    workers_close(&workers);
    free(rows);
    for (uint32_t i = 1; i < count && status == STATUS_OK; i++) {
        struct cluster_outcome *out = &level[i].outcome;
        labelled_count(out->sizes, out->nearest, 3, out->labels, out->distances, out->rows, 0,
                       out->k);
        out->inertia = labelled_inertia(out->labels, out->distances, config->weights, out->rows);
    }
    return status;
}

enum status cluster_levels_spread(struct cluster_level *level, uint32_t count,
                                  const struct matrix_source *source,
                                  const struct cluster_config *config, struct error *err)
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
    level->outcome.seconds_build = levels->rank->lane->seconds_build;
    level->outcome.seconds_init = levels->seconds[1];
    level->outcome.seconds_iterate = levels->seconds[2];
    level->outcome.iterations_resumed =
        max_u64(level->outcome.iterations_resumed, levels->fits->resumed);
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

struct levels_job {
    struct cluster_level *level; /* rank 0's */
    const struct cluster_config *config;
    const struct cluster_levels_config *wanted;
    struct checkpoint_fits fits; /* rank 0's; survive if the job starts again without a device */
    bool taken;
};

static enum status levels_main(void *context, const struct rank *rank, struct error *err)
{
    struct levels_job *job = context;
    struct cluster_level own[CLUSTER_LEVELS] = {0};
    struct checkpoint_fits none = {0};
    const bool first = rank->comm->rank == 0;
    struct cluster_level *level = first ? job->level : own;
    struct levels levels = {.rank = rank,
                            .comm = rank->comm,
                            .wanted = job->wanted,
                            .config = *job->config,
                            .fits = first ? &job->fits : &none};
    enum status status = STATUS_OK;
    if (first)
        cluster_levels_clear(level, job->wanted->count);
    if (first && !job->taken) {
        status = checkpoint_take_fits(&job->fits, job->config->checkpoint, err);
        job->taken = true;
    }
    if (status == STATUS_OK)
        status = make_levels(&levels, level, rank->source, err);
    if (status == STATUS_OK && first)
        status = spread(&levels, level, rank->source, err);
    loaded_close(&levels.loaded);
    cluster_levels_clear(own, job->wanted->count);
    return status;
}

enum status cluster_levels_run(struct cluster_level *level, const struct cluster_devices *devices,
                               const struct matrix_source *source,
                               const struct cluster_config *config,
                               const struct cluster_levels_config *wanted, struct error *err)
{
    struct cluster_config own = *config;
    struct levels_job levels = {.level = level, .config = &own, .wanted = wanted};
    const struct run_job job = {.source = source,
                                .config = &own,
                                .main = levels_main,
                                .context = &levels,
                                .all_ranks = wanted->split > 0};
    struct checkpoint_config checkpoint;
    if (wanted->count == 1 && wanted->rounds == 0)
        return cluster_run(&level->outcome, devices, source, config, err);
    if (config->checkpoint) {
        checkpoint = *config->checkpoint;
        checkpoint.fits = &levels.fits;
        own.checkpoint = &checkpoint;
    }
    const enum status status = cluster_run_ranks(&job, devices, err);
    checkpoint_clear_fits(&levels.fits);
    return status;
}
