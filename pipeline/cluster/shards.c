/* shards.c: dealing rows out to devices.
 *
 * A share is a range of whole blocks of rows and stays with its device: what is known of a row
 * (label, bounds, norm) is where the row is. Dealing them out anew by what each pass took was left
 * out: devices of one run are alike, or somebody asked for them by number. */
#include "cluster/shards.h"
#include "cluster/method.h"
#include "kmeans.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A source may be read from one thread at a time only, and each shard has a reader. */
struct source_lock {
    pthread_mutex_t mutex;
    const struct matrix_source *inner;
    struct matrix_source source;
};

static enum status read_locked(void *context, uint64_t first, uint64_t count, float *rows,
                               struct error *err)
{
    struct source_lock *lock = context;
    pthread_mutex_lock(&lock->mutex);
    enum status status = lock->inner->read(lock->inner->context, first, count, rows, err);
    pthread_mutex_unlock(&lock->mutex);
    return status;
}

static enum status open_lock(struct shards *shards, const struct matrix_source **source,
                             struct error *err)
{
    struct source_lock *lock = shards->lock = calloc(1, sizeof *lock);
    if (!lock)
        return error_memory(err, sizeof *lock, "reading rows");
    pthread_mutex_init(&lock->mutex, NULL);
    lock->inner = *source;
    lock->source = **source;
    lock->source.read = read_locked;
    lock->source.context = lock;
    *source = &lock->source;
    return STATUS_OK;
}

/* --- opening --------------------------------------------------------------------------------- */

static double speed_of(const struct lane *lane)
{
    return (double)lane->device->compute_units * lane->device->clock_mhz + 1;
}

static enum status open_lanes(struct shards *shards, const struct shard_devices *devices,
                              const struct cluster_config *config, struct error *err)
{
    const uint64_t blocks = (shards->rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    const uint32_t most = method_of(config)->one_device ? 1 : devices->count;
    const uint32_t count = blocks < most ? (uint32_t)blocks : most;
    shards->lanes = calloc(count, sizeof *shards->lanes);
    shards->shard = calloc(count, sizeof *shards->shard);
    if (!shards->lanes || !shards->shard)
        return error_memory(err, count * sizeof *shards->shard, "devices");
    enum status status = workers_open(&shards->workers, config->threads, err);
    if (status == STATUS_OK && count > 1)
        status = workers_open(&shards->team, count, err);
    for (; shards->count < count && status == STATUS_OK; shards->count++) {
        struct shard *shard = &shards->shard[shards->count];
        shard->lane = &shards->lanes[shards->count];
        status = lane_open(shard->lane, devices->contexts[shards->count], shards->workers,
                           config->stop, devices->choice, err);
        if (status != STATUS_OK)
            return shards_blame(shards, shard, err);
    }
    return status;
}

/* Reads the shares one after another, since statistics and digests go in the order of rows. */
static enum status open_data(struct shards *shards, const struct matrix_source *source,
                             const struct cluster_config *config, struct error *err)
{
    const uint64_t blocks = (shards->rows + KMEANS_BLOCK_ROWS - 1) / KMEANS_BLOCK_ROWS;
    double speed = 0, reached = 0;
    uint64_t begin = 0; /* block */
    for (uint32_t i = 0; i < shards->count; i++)
        speed += speed_of(shards->shard[i].lane);
    for (uint32_t i = 0; i < shards->count; i++) {
        struct shard *shard = &shards->shard[i];
        struct data_share share = {.first = begin * KMEANS_BLOCK_ROWS,
                                   .lead = i > 0 ? &shards->shard[0].data : NULL};
        reached += speed_of(shard->lane);
        /* Each has a block at least, and leaves one to each that follows. */
        const uint64_t most = blocks - (shards->count - 1 - i);
        uint64_t end = (uint64_t)(reached / speed * (double)blocks);
        end = end > begin ? end : begin + 1;
        end = end < most && i + 1 < shards->count ? end : most;
        const uint64_t last = end * KMEANS_BLOCK_ROWS;
        share.rows = (last < shards->rows ? last : shards->rows) - share.first;
        begin = end;
        struct cluster_config own = *config;
        own.memory =
            (uint64_t)((double)config->memory * ((double)share.rows / (double)shards->rows));
        enum status status = data_open(&shard->data, shard->lane, source, &own, &share, err);
        if (status != STATUS_OK)
            return shards_blame(shards, shard, err);
    }
    for (uint32_t i = 0; i < shards->count; i++)
        data_share_stats(&shards->shard[i].data);
    return STATUS_OK;
}

static enum status open_shard(struct shard *shard, const struct cluster_config *config,
                              struct error *err)
{
    const size_t rows = shard->data.tile_rows;
    enum status status = filter_open(&shard->filter, &shard->data, config->k, err);
    if (status == STATUS_OK)
        status = assign_open(&shard->assign, &shard->filter, err);
    if (status != STATUS_OK)
        return status;
    shard->tile_labels = malloc(rows * sizeof *shard->tile_labels);
    shard->tile_distances = malloc(rows * sizeof *shard->tile_distances);
    if (!shard->tile_labels || !shard->tile_distances)
        return error_memory(err, rows * sizeof *shard->tile_distances, "distances");
    return STATUS_OK;
}

/* One after another: a program that the first has built is in the cache for devices like it. */
enum status shards_open(struct shards *shards, const struct shard_devices *devices,
                        const struct matrix_source *source, const struct cluster_config *config,
                        struct error *err)
{
    *shards = (struct shards){.rows = source->rows};
    enum status status = open_lanes(shards, devices, config, err);
    if (status == STATUS_OK && shards->count > 1)
        status = open_lock(shards, &source, err);
    if (status == STATUS_OK)
        status = open_data(shards, source, config, err);
    for (uint32_t i = 0; i < shards->count && status == STATUS_OK; i++) {
        status = open_shard(&shards->shard[i], config, err);
        if (status != STATUS_OK)
            shards_blame(shards, &shards->shard[i], err);
    }
    return status;
}

enum status shards_open_updates(struct shards *shards, const struct cluster_config *config,
                                struct error *err)
{
    const uint64_t samples = method_samples(config);
    for (uint32_t i = 0; i < shards->count; i++) {
        struct shard *shard = &shards->shard[i];
        enum status status = update_open(&shard->update, &shard->data, config->k, samples, err);
        if (status == STATUS_OK)
            status = moves_open(&shard->moves, &shard->update, &shard->filter, err);
        if (status != STATUS_OK)
            return shards_blame(shards, shard, err);
    }
    return STATUS_OK;
}

void shards_close(struct shards *shards)
{
    shards_settle(shards);
    for (uint32_t i = shards->count; i-- > 0;) {
        struct shard *shard = &shards->shard[i];
        moves_close(&shard->moves);
        update_close(&shard->update);
        assign_close(&shard->assign);
        filter_close(&shard->filter);
        data_close(&shard->data);
        lane_close(shard->lane);
        free(shard->tile_labels);
        free(shard->tile_distances);
    }
    workers_close(&shards->team);
    workers_close(&shards->workers);
    if (shards->lock)
        pthread_mutex_destroy(&shards->lock->mutex);
    free(shards->lock);
    free(shards->lanes);
    free(shards->shard);
    *shards = (struct shards){0};
}

/* --- working --------------------------------------------------------------------------------- */

enum status shards_blame(struct shards *shards, const struct shard *shard, struct error *err)
{
    /* Those of the rows themselves, of memory or of a stop are nobody's. */
    if (strncmp(err->name, "CL_", 3) != 0)
        return err->status;
    shards->failed = shard->lane->ocl;
    if (shards->team) {
        char subject[200];
        snprintf(subject, sizeof subject, "device %u (%s)", shard->lane->device->index,
                 shard->lane->device->name);
        error_subject(err, subject);
    }
    return err->status;
}

struct team_job {
    struct shards *shards;
    enum status (*part)(void *context, struct shard *shard, struct error *err);
    void *context;
    struct error *errors; /* of each */
};

static void run_part(void *context, uint64_t i)
{
    const struct team_job *job = context;
    job->part(job->context, &job->shards->shard[i], &job->errors[i]);
}

enum status shards_run(struct shards *shards,
                       enum status (*part)(void *context, struct shard *shard, struct error *err),
                       void *context, struct error *err)
{
    if (shards->count == 1) {
        enum status status = part(context, &shards->shard[0], err);
        return status == STATUS_OK ? status : shards_blame(shards, &shards->shard[0], err);
    }
    struct error *errors = calloc(shards->count, sizeof *errors);
    if (!errors)
        return error_memory(err, shards->count * sizeof *errors, "devices");
    struct team_job job = {shards, part, context, errors};
    workers_run(shards->team, run_part, &job, shards->count);
    uint32_t worst = 0;
    for (uint32_t i = 1; i < shards->count; i++) {
        const enum status before = errors[worst].status, now = errors[i].status;
        if (now != STATUS_OK &&
            (before == STATUS_OK || (before == STATUS_INTERRUPTED && now != STATUS_INTERRUPTED)))
            worst = i;
    }
    enum status status = errors[worst].status;
    if (status != STATUS_OK) {
        *err = errors[worst];
        shards_blame(shards, &shards->shard[worst], err);
    }
    free(errors);
    return status;
}

void shards_settle(const struct shards *shards)
{
    for (uint32_t i = 0; i < shards->count; i++)
        lane_settle(shards->shard[i].lane);
}

struct shard *shards_of_row(const struct shards *shards, uint64_t row)
{
    uint32_t i = 0;
    while (row - shards->shard[i].data.share.first >= shards->shard[i].data.share.rows)
        i++;
    return &shards->shard[i];
}

enum status shards_rows(struct shards *shards, float *out, const uint64_t *rows, uint32_t count,
                        struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t from = 0, to; from < count && status == STATUS_OK; from = to) {
        struct shard *shard = shards_of_row(shards, rows[from]);
        for (to = from + 1; to < count && shards_of_row(shards, rows[to]) == shard; to++)
            ;
        status = data_rows(&shard->data, out + (size_t)from * shard->data.stride, rows + from,
                           to - from, err);
        if (status != STATUS_OK)
            shards_blame(shards, shard, err);
    }
    return status;
}

double shards_seconds_read(const struct shards *shards)
{
    double seconds = 0;
    for (uint32_t i = 0; i < shards->count; i++)
        seconds += shards->shard[i].data.seconds_read;
    return seconds;
}

double shards_seconds_build(const struct shards *shards)
{
    double seconds = 0;
    for (uint32_t i = 0; i < shards->count; i++)
        seconds += shards->shard[i].lane->seconds_build;
    return seconds;
}
