/* recorder.c: what the store threads do: hand finished pictures to the store, which makes values of
 * their words - for Fisher vectors that takes as long as a GPU needs for all the rest - and count them. */
#include "ingest/recorder.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/queue.h"

#include <stdlib.h>

#define WAITING_MAX 256
/* One for so many decode threads; at most. */
#define DECODERS_EACH 4u
#define THREADS_MOST  8u

struct recorder {
    struct ingest_job *job;
    struct store *store;
    struct readers *readers;
    struct ingest_report *report;
    struct queue *queue; /* of struct picture * */
    pthread_t thread[THREADS_MOST];
    unsigned threads;
    pthread_mutex_t lock; /* guards the report, and: */
    double busy;          /* of the thread that was busy for longest */
};

/* Counts a picture that has reached the store. With the lock. */
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

/* Says which file was the first failure of a strict run, and asks for the end. With the lock. */
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
    pthread_mutex_lock(&recorder->lock);
    stop_if_strict(recorder, &picture->record);
    count_picture(recorder, picture);
    pthread_mutex_unlock(&recorder->lock);
    return STATUS_OK;
}

static void *recorder_main(void *argument)
{
    struct recorder *recorder = argument;
    struct trace *trace = recorder->job->config->trace;
    unsigned track = trace_track(trace, "host", "store");
    struct picture *picture;
    double busy = 0;
    while (queue_receive(recorder->queue, &picture) == QUEUE_OK) {
        struct error err = ERROR_INIT;
        int64_t start = clock_now();
        enum status status = record_picture(recorder, picture, &err);
        picture_free(picture);
        busy += clock_seconds_since(start);
        trace_span(trace, track, "put", start, clock_now(), NULL);
        if (status != STATUS_OK) {
            ingest_job_fail(recorder->job, &err);
            break;
        }
        readers_wake(recorder->readers);
    }
    pthread_mutex_lock(&recorder->lock);
    recorder->busy = busy > recorder->busy ? busy : recorder->busy;
    pthread_mutex_unlock(&recorder->lock);
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
        return error_memory(err, sizeof *recorder, "the store threads");
    pthread_mutex_init(&recorder->lock, NULL);
    recorder->job = job;
    recorder->store = store;
    recorder->readers = readers;
    recorder->report = report;
    enum status status = queue_open(&recorder->queue, WAITING_MAX, sizeof(struct picture *),
                                    drop_picture, NULL, err);
    if (status != STATUS_OK)
        goto out;
    const unsigned wanted = (job->config->threads + DECODERS_EACH - 1) / DECODERS_EACH;
    int code = 0;
    while (code == 0 && recorder->threads < THREADS_MOST && recorder->threads < wanted) {
        code = pthread_create(&recorder->thread[recorder->threads], NULL, recorder_main, recorder);
        recorder->threads += code == 0;
    }
    if (recorder->threads == 0) { /* one will do */
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
    for (unsigned i = 0; i < recorder->threads; i++)
        pthread_join(recorder->thread[i], NULL);
    return recorder->busy;
}

void recorder_close(struct recorder **out)
{
    struct recorder *recorder = *out;
    if (!recorder)
        return;
    queue_close(&recorder->queue);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
    *out = NULL;
}
