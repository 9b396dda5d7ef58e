/* values_job.c: decode threads and staging, between two callbacks. */
#include "ingest/values_job.h"

#include "base/budget.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "ingest/bounds.h"
#include "ingest/decoder.h"
#include "ingest/lanes.h"

#include <stdlib.h>
#include <string.h>

#define PROGRESS_NS (100 * 1000000ll)

struct run {
    struct values_job *values;
    struct ingest_job job;
    struct picture_sink sink;
    struct lanes lanes;
    struct budget *budget;
    struct decoders *decoders;
    pthread_mutex_t lock; /* guards the following: a device may fail while it is being opened */
    struct staging *staging;
    uint64_t next;         /* next picture to open */
    struct picture *again; /* to be decoded again */
};

static void wake_all(void *context)
{
    struct run *run = context;
    pthread_mutex_lock(&run->lock);
    if (run->staging)
        staging_abort(run->staging);
    if (run->budget)
        budget_abort(run->budget);
    pthread_mutex_unlock(&run->lock);
}

static void lane_failed(void *context, const struct error *err, unsigned alive)
{
    struct run *run = context;
    if (alive == 0)
        ingest_job_fail(&run->job, err);
}

static void send_finished(void *context, struct picture *picture)
{
    struct run *run = context;
    const bool good = picture->record.failure.reason == REASON_NONE;
    run->values->take(run->values->context, picture->record.sequence,
                      good ? picture->counters : NULL, &picture->record.failure);
    picture_free(picture);
    pthread_mutex_lock(&run->job.lock);
    run->job.progress.done++;
    pthread_mutex_unlock(&run->job.lock);
}

static void send_again(void *context, struct picture *picture)
{
    struct run *run = context;
    pthread_mutex_lock(&run->lock);
    picture->next = run->again;
    run->again = picture;
    pthread_mutex_unlock(&run->lock);
}

static struct picture *take_picture(void *context, struct picture_waits *waits, bool wait)
{
    struct run *run = context;
    const struct values_job *values = run->values;
    (void)waits, (void)wait;
    if (stop_requested(run->job.stop) != STOP_NONE)
        return NULL;
    pthread_mutex_lock(&run->lock);
    struct picture *picture = run->again;
    const uint64_t i = picture ? picture->record.sequence : run->next;
    if (picture)
        run->again = picture->next;
    else
        run->next += i < values->count;
    pthread_mutex_unlock(&run->lock);
    if (i >= values->count)
        return NULL;
    struct blob blob = BLOB_NOTHING;
    struct failure failure = {.reason = REASON_NONE};
    const char *path = "";
    values->open(values->context, i, &blob, &path, &failure);
    const struct walk_item item = {
        .sequence = i, .path = path, .path_length = (uint32_t)strlen(path), .bytes = blob.bytes};
    if (!picture)
        picture = picture_new(&run->sink, &item);
    if (!picture) {
        struct error err = ERROR_INIT;
        blob_close(&blob);
        error_memory(&err, sizeof *picture, "a picture");
        ingest_job_fail(&run->job, &err);
        return NULL;
    }
    picture->blob = blob;
    picture->record.failure = failure;
    return picture;
}

static enum status open_all(struct run *run, struct error *err)
{
    struct values_job *values = run->values;
    const struct plan_config plan = {.features = &values->config.features, .streams = true};
    const struct staging_config use = {
        .deliver = picture_deliver, .failed = lane_failed, .lost = picture_lost, .context = run};
    struct staging *staging = NULL;
    enum status status =
        lanes_open(&run->lanes, &staging, &values->config, &values->devices, &plan, &use, err);
    pthread_mutex_lock(&run->lock);
    run->staging = staging;
    if (status == STATUS_OK)
        status = budget_open(&run->budget, bounds_codecs(run->lanes.memory), err);
    pthread_mutex_unlock(&run->lock);
    const struct decoders_config decoders = {.job = &run->job,
                                             .take = take_picture,
                                             .context = run,
                                             .staging = staging,
                                             .budget = run->budget,
                                             .coefficients = run->lanes.coefficients,
                                             .streams = run->lanes.streams,
                                             .open_files = 1};
    return status == STATUS_OK ? decoders_open(&run->decoders, &decoders, err) : status;
}

/* Waits until all opened pictures are done; those of a device that failed at the end are decoded
 * here. */
static void finish(struct run *run)
{
    for (bool ended = false; !ended;) {
        ended = decoders_wait(run->decoders, clock_now() + PROGRESS_NS);
        ingest_job_show(&run->job, clock_now());
    }
    decoders_join(run->decoders);
    staging_settle(run->staging);
    while (run->again && stop_requested(run->job.stop) == STOP_NONE) {
        decoders_run(run->decoders);
        staging_settle(run->staging);
    }
    staging_drain(run->staging);
    ingest_job_show(&run->job, clock_now());
}

enum status values_job_run(struct values_job *values, struct error *err)
{
    struct ingest_config *config = &values->config;
    struct stop own_stop = {0};
    struct run run = {.values = values};
    config->memory = max_u64(config->memory, INGEST_MEMORY_MIN);
    config->memory_streams = max_u64(config->memory_streams, config->memory);
    run.sink = (struct picture_sink){.counters = config->features.counters,
                                     .finished = send_finished,
                                     .again = send_again,
                                     .context = &run};
    pthread_mutex_init(&run.lock, NULL);
    ingest_job_init(&run.job, config, config->stop ? config->stop : &own_stop, wake_all, &run);
    run.job.progress = (struct ingest_progress){.phase = "images", .total = values->count};
    enum status status = open_all(&run, err);
    if (status == STATUS_OK)
        finish(&run);
    staging_close(&run.staging);
    if (status == STATUS_OK && run.job.error.status != STATUS_OK)
        *err = run.job.error, status = err->status;
    else if (status == STATUS_OK)
        status = stop_check(run.job.stop, "describing images", err);
    for (struct picture *picture; (picture = run.again);) {
        run.again = picture->next;
        picture_free(picture);
    }
    decoders_close(&run.decoders);
    budget_close(&run.budget);
    ingest_job_clear(&run.job);
    pthread_mutex_destroy(&run.lock);
    return status;
}
