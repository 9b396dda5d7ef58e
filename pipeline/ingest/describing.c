/* describing.c: pictures from a callback through decode threads and devices into rows of values. */
#include "ingest/describing.h"

#include "base/clock.h"
#include "ingest/decoder.h"
#include "ingest/device_side.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_NS (100 * 1000000ll)

struct run {
    struct describing *describing;
    struct ingest_job job; /* its lock also guards: */
    uint64_t next;         /* picture to open */
    struct picture *again; /* to be decoded again */

    struct picture_sink sink;
    struct device_side device_side;
    struct decoders *decoders;
};

enum status describing_add(struct describing *describing, const char *spec, double weight,
                           struct error *err)
{
    struct feature_set *set = &describing->config.features;
    struct feature *feature = &set->feature[set->count];
    if (feature_set_add(set, spec, NORMALIZE_L1, err) != STATUS_OK ||
        feature_bind_model(feature, err) != STATUS_OK)
        return err->status;
    const unsigned i = describing->join.parts++;
    describing->join.columns[i] = feature->dimension;
    describing->join.weight[i] = weight;
    describing->join.roots[i] = feature->normalize == NORMALIZE_L1;
    describing->columns += feature->dimension;
    return STATUS_OK;
}

/* Opens the next picture for a decode thread, first those lost by a device that failed. */
static struct picture *take_picture(void *context, struct stage_times *times, bool wait)
{
    struct run *run = context;
    const struct describing *describing = run->describing;
    struct blob blob = BLOB_NOTHING;
    struct failure failure = {.reason = REASON_NONE};
    (void)times, (void)wait;
    if (stop_requested(run->job.stop) != STOP_NONE)
        return NULL;
    pthread_mutex_lock(&run->job.lock);
    struct picture *picture = run->again;
    const uint64_t i = picture ? picture->record.sequence : run->next;
    if (picture)
        run->again = picture->next;
    else if (i < describing->count)
        run->next++;
    pthread_mutex_unlock(&run->job.lock);
    if (i == describing->count)
        return NULL;
    const char *name = describing->open(describing->context, i, &blob, &failure);
    const struct walk_item item = {
        .sequence = i, .path = name, .path_length = (uint32_t)strlen(name)};
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
    picture->record.image.bytes = blob.bytes;
    return picture;
}

/* As float32, as when read from a file. */
static bool put_values(float *to, const struct feature *feature, const uint32_t *words)
{
    uint32_t *stored = malloc((size_t)feature_row_words(feature) * sizeof *stored);
    const bool made = stored && feature_store_values(stored, feature, words + feature->offset);
    for (uint32_t i = 0; made && feature->normalize == NORMALIZE_NONE && i < feature->dimension;
         i++)
        to[i] = (float)stored[i];
    if (made && feature->normalize != NORMALIZE_NONE)
        stored_decode(to, feature->store, feature->normalize == NORMALIZE_UNIT, stored,
                      feature->dimension);
    free(stored);
    return made;
}

static void send_finished(void *context, struct picture *picture)
{
    struct run *run = context;
    const struct describing *describing = run->describing;
    const struct feature_set *features = &describing->config.features;
    struct failure *failure = &picture->record.failure;
    const uint64_t i = picture->record.sequence;
    float *row = describing->values + i * describing->columns, *to = row;
    for (unsigned f = 0; failure->reason == REASON_NONE && f < features->count; f++) {
        const struct feature *feature = &features->feature[f];
        if (!put_values(to, feature, picture->counters))
            failure_set(failure, REASON_OUT_OF_MEMORY, "no memory for values");
        to += feature->dimension;
    }
    if (failure->reason == REASON_NONE)
        join_row(row, &describing->join);
    for (uint32_t j = 0; failure->reason != REASON_NONE && j < describing->columns; j++)
        row[j] = NAN;
    describing->done(describing->context, i, failure);
    picture_free(picture);
    pthread_mutex_lock(&run->job.lock);
    run->job.progress.done++;
    pthread_mutex_unlock(&run->job.lock);
}

static void send_again(void *context, struct picture *picture)
{
    struct run *run = context;
    pthread_mutex_lock(&run->job.lock);
    picture->next = run->again;
    run->again = picture;
    pthread_mutex_unlock(&run->job.lock);
}

static enum status open_all(struct run *run, struct error *err)
{
    const struct describing *describing = run->describing;
    const struct plan_config plan = {.features = &describing->config.features, .streams = true};
    struct ocl_selection devices = describing->devices;
    const enum status status = device_side_open(&run->device_side, &run->job, &devices, &plan, err);
    const struct decoders_config decoders = {.job = &run->job,
                                             .take = take_picture,
                                             .context = run,
                                             .coefficients = run->device_side.coefficients,
                                             .streams = run->device_side.streams,
                                             .open_files = 1};
    return status == STATUS_OK ? decoders_open(&run->decoders, &decoders, err) : status;
}

/* Waits until all pictures are done; those of a device that failed at the end are decoded here. */
static enum status finish(struct run *run, struct error *err)
{
    for (bool ended = false; !ended;) {
        ended = decoders_wait(run->decoders, clock_now() + PROGRESS_NS);
        ingest_job_show(&run->job, clock_now());
    }
    decoders_join(run->decoders);
    staging_settle(run->job.staging);
    while (run->again && stop_requested(run->job.stop) == STOP_NONE) {
        decoders_run(run->decoders);
        staging_settle(run->job.staging);
    }
    staging_drain(run->job.staging);
    ingest_job_show(&run->job, clock_now());
    if (run->job.error.status == STATUS_OK)
        return stop_check(run->job.stop, "describing images", err);
    *err = run->job.error;
    return err->status;
}

enum status describing_run(struct describing *describing, struct error *err)
{
    struct run run = {.describing = describing,
                      .sink = {.counters = describing->config.features.counters,
                               .finished = send_finished,
                               .again = send_again,
                               .context = &run}};
    ingest_job_init(&run.job, &describing->config, NULL, NULL);
    run.job.progress = (struct ingest_progress){.phase = "images", .total = describing->count};
    enum status status = open_all(&run, err);
    if (status == STATUS_OK)
        status = finish(&run, err);
    picture_free_list(run.again);
    decoders_close(&run.decoders);
    ingest_job_clear(&run.job);
    return status;
}
