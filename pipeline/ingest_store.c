/* ingest_store.c: what the store thread does: hand finished pictures to the store and count them.
 */
#include "ingest.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"

/* With the lock: counts a picture that has reached the store. */
static void count(struct pipeline *pipeline, const struct picture *picture)
{
    struct ingest_report *report = pipeline->report;
    enum reason reason = picture->record.failure.reason;
    pipeline->progress.done++;
    pipeline->progress.bytes_done += picture->record.bytes;
    report->bytes_read += picture->bytes_read;
    report->by_reason[reason]++;
    if (reason == REASON_NONE) {
        report->images_ok++;
        report->images_resumed += picture->resumed;
        report->images_unchanged += picture->unchanged;
        report->pixels += picture->pixels;
    } else if (reason == REASON_NOT_AN_IMAGE) {
        report->files_not_images++;
    } else {
        report->images_failed++;
    }
    pipeline->progress.images = report->images_ok;
    pipeline->progress.failed = report->images_failed;
    pipeline->progress.skipped = report->files_not_images;
    pipeline->progress.unchanged = report->images_unchanged;
}

/* Says which file was the first failure of a strict run, and asks for the end. */
static void stop_if_strict(struct pipeline *pipeline, const struct store_record *record)
{
    enum reason reason = record->failure.reason;
    if (!pipeline->config->strict || reason == REASON_NONE || reason == REASON_NOT_AN_IMAGE)
        return;
    if (stop_requested(pipeline->stop) == STOP_NONE) {
        char path[256];
        log_message(LOG_ERROR, "%s: %s: %s; stopping because of --strict",
                    path_for_message(path, sizeof path, record->path), reason_name(reason),
                    record->failure.message);
    }
    stop_request(pipeline->stop, STOP_STRICT);
}

void *ingest_store_main(void *argument)
{
    struct pipeline *pipeline = argument;
    struct trace *trace = pipeline->config->trace;
    unsigned track = trace_track(trace, "host", "store");
    struct picture *picture;
    while (queue_receive(pipeline->finished, &picture) == QUEUE_OK) {
        struct error err = ERROR_INIT;
        int64_t start = clock_now();
        if (picture->record.failure.reason == REASON_NONE && picture->record.origin == 0)
            picture->record.counters = picture->counters;
        enum status status = STATUS_OK;
        if (pipeline->store)
            status = store_put(pipeline->store, &picture->record, &err);
        if (status == STATUS_OK)
            stop_if_strict(pipeline, &picture->record);
        pthread_mutex_lock(&pipeline->lock);
        if (status == STATUS_OK)
            count(pipeline, picture);
        pipeline->store_busy += (double)(clock_now() - start) * 1e-9;
        pthread_mutex_unlock(&pipeline->lock);
        trace_span(trace, track, "put", start, clock_now(), NULL);
        picture_free(picture);
        if (status != STATUS_OK) {
            ingest_fail(pipeline, &err);
            break;
        }
        pthread_mutex_lock(&pipeline->walk_lock);
        pthread_cond_broadcast(&pipeline->window_moved);
        pthread_mutex_unlock(&pipeline->walk_lock);
    }
    return NULL;
}
