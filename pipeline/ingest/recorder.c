/* recorder.c: what the store thread does: hand finished pictures to the store and count them. */
#include "ingest/recorder.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/queue.h"

#include <stdlib.h>

#define WAITING_MAX 256

struct recorder {
    struct ingest_job *job;
    struct store *store;
    struct readers *readers;
    struct ingest_report *report;
    struct queue *queue; /* of struct picture * */
    pthread_t thread;
    double busy;
};

/* Counts a picture that has reached the store. */
static void count_picture(struct recorder *recorder, const struct picture *picture)
{
    struct ingest_report *report = recorder->report;
    struct ingest_progress *progress = &recorder->job->progress;
    enum reason reason = picture->record.failure.reason;
    report->bytes_read += picture->bytes_read;
    report->by_reason[reason]++;
    report->jpeg_handed_back += picture->host_only;
    if (reason == REASON_NONE) {
        report->images_ok++;
        report->images_resumed += picture->resumed;
        report->images_unchanged += picture->unchanged;
        report->pixels += picture->pixels;
        report->jpeg[picture->way]++;
    } else if (reason == REASON_NOT_AN_IMAGE) {
        report->files_not_images++;
    } else {
        report->images_failed++;
    }
    pthread_mutex_lock(&recorder->job->lock);
    progress->done++;
    progress->bytes_done += picture->record.bytes;
    progress->images = report->images_ok;
    progress->failed = report->images_failed;
    progress->skipped = report->files_not_images;
    progress->unchanged = report->images_unchanged;
    pthread_mutex_unlock(&recorder->job->lock);
}

/* Says which file was the first failure of a strict run, and asks for the end. */
static void stop_if_strict(struct recorder *recorder, const struct store_record *record)
{
    struct stop *stop = recorder->job->stop;
    enum reason reason = record->failure.reason;
    if (!recorder->job->config->strict || reason == REASON_NONE || reason == REASON_NOT_AN_IMAGE)
        return;
    if (stop_requested(stop) == STOP_NONE) {
        char path[256];
        log_message(LOG_ERROR, "%s: %s: %s; stopping at the first failure",
                    path_for_message(path, sizeof path, record->path), reason_name(reason),
                    record->failure.message);
    }
    stop_request(stop, STOP_STRICT);
}

static enum status record_picture(struct recorder *recorder, struct picture *picture,
                                  struct error *err)
{
    if (picture->record.failure.reason == REASON_NONE && picture->record.origin == 0)
        picture->record.counters = picture->counters;
    if (recorder->store && store_put(recorder->store, &picture->record, err) != STATUS_OK)
        return STATUS_FAILED;
    stop_if_strict(recorder, &picture->record);
    count_picture(recorder, picture);
    return STATUS_OK;
}

static void *recorder_main(void *argument)
{
    struct recorder *recorder = argument;
    struct trace *trace = recorder->job->config->trace;
    unsigned track = trace_track(trace, "host", "store");
    struct picture *picture;
    while (queue_receive(recorder->queue, &picture) == QUEUE_OK) {
        struct error err = ERROR_INIT;
        int64_t start = clock_now();
        enum status status = record_picture(recorder, picture, &err);
        picture_free(picture);
        recorder->busy += clock_seconds_since(start);
        trace_span(trace, track, "put", start, clock_now(), NULL);
        if (status != STATUS_OK) {
            ingest_job_fail(recorder->job, &err);
            break;
        }
        readers_wake(recorder->readers);
    }
    return NULL;
}

static void drop_picture(void *item, void *context)
{
    (void)context;
    picture_free(*(struct picture **)item);
}

enum status recorder_open(struct recorder **out, struct ingest_job *job, struct store *store,
                          struct readers *readers, struct ingest_report *report, struct error *err)
{
    *out = NULL;
    struct recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        return error_memory(err, sizeof *recorder, "the store thread");
    recorder->job = job;
    recorder->store = store;
    recorder->readers = readers;
    recorder->report = report;
    enum status status = queue_open(&recorder->queue, WAITING_MAX, sizeof(struct picture *),
                                    drop_picture, NULL, err);
    if (status != STATUS_OK)
        goto out;
    int code = pthread_create(&recorder->thread, NULL, recorder_main, recorder);
    if (code != 0) {
        status = error_errno(err, STATUS_FAILED, code, "pthread_create", "cannot start a thread");
        goto out;
    }
    *out = recorder;
    return STATUS_OK;
out:
    recorder_close(&recorder);
    return status;
}

void recorder_put(struct recorder *recorder, struct picture *picture)
{
    if (queue_send(recorder->queue, &picture) != QUEUE_OK)
        picture_free(picture);
}

void recorder_abort(struct recorder *recorder)
{
    queue_abort(recorder->queue);
}

double recorder_finish(struct recorder *recorder)
{
    queue_finish(recorder->queue);
    pthread_join(recorder->thread, NULL);
    return recorder->busy;
}

void recorder_close(struct recorder **out)
{
    struct recorder *recorder = *out;
    if (!recorder)
        return;
    queue_close(&recorder->queue);
    free(recorder);
    *out = NULL;
}
