/* recorder.c: the store threads pass finished pictures to the store, which computes values from
 * their counters (for Fisher vectors that takes as long as a GPU needs for everything else), encode
 * thumbnails from devices, and count pictures.
 *
 * A device delivers hundreds of pictures at once. To save wake-ups, a thread takes several and
 * wakes the next one only if there are more; `struct queue` does not do that. */
#include "ingest/recorder.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/path.h"
#include "decode/thumbnail.h"
#include "features/code.h"

#include <assert.h>
#include <stdlib.h>

/* Limit of the queue, at which senders block; also the most that a thread takes at a time. */
#define WAITING_MAX 256u
#define TAKEN_MOST  16u
/* After a failed picture, a thread sleeps this long to collect more: failures arrive faster than a
 * thread wakes up. */
#define MOMENT_NS 50000
/* Decode threads per store thread; the most store threads. */
#define DECODERS_EACH 2u
#define THREADS_MOST  16u

struct recorder {
    struct ingest_job *job;
    struct store *store;
    struct readers *readers;
    struct ingest_report *report;
    uint32_t thumbnail_size; /* of device-made ones; 0: none */
    pthread_t thread[THREADS_MOST];
    unsigned wanted, threads; /* threads: actually started */
    pthread_mutex_t lock;     /* guards the report, and: */
    double busy;              /* of the busiest thread */

    pthread_mutex_t waiting_lock; /* guards the following */
    pthread_cond_t more, room;
    struct picture *first, *last; /* the queue, linked by `next` */
    unsigned waiting, idle;       /* idle: waiting threads that have not been woken yet */
    bool finished, aborted;
};

/* Counts a picture that has reached the store. With the lock. */
static void count_picture(struct recorder *recorder, const struct picture *picture)
{
    struct ingest_report *report = recorder->report;
    struct ingest_progress *progress = &recorder->job->progress;
    enum reason reason = picture->record.failure.reason;
    report->bytes_read += picture->bytes_read;
    report->by_reason[reason]++;
    report->jpeg_handed_back += picture->handed_back;
    report->files_compared += picture->compared;
    report->files_differ += picture->differs;
    if (reason == REASON_NONE) {
        report->images_ok++;
        report->images_resumed += picture->resumed;
        report->images_unchanged += picture->unchanged;
        report->pixels += picture->pixels;
        report->jpeg[picture->way]++;
        report->jpeg_progressive += picture->progressive;
    }
    pthread_mutex_lock(&recorder->job->lock);
    progress->done++;
    progress->bytes_done += picture->record.image.bytes;
    progress->images = report->images_ok;
    progress->failed = failures_counted(report->by_reason);
    pthread_mutex_unlock(&recorder->job->lock);
}

/* Reports the first failure of a strict run and requests a stop. With the lock. */
static void stop_if_strict(struct recorder *recorder, const struct store_record *record)
{
    struct stop *stop = recorder->job->stop;
    enum reason reason = record->failure.reason;
    if (!recorder->job->config->strict || reason == REASON_NONE || reason == REASON_NOT_AN_IMAGE)
        return;
    if (stop_requested(stop) == STOP_NONE) {
        log_message(LOG_ERROR, "%s: %s: %s; stopping at the first failure", PATH_TEXT(record->path),
                    reason_name(reason), record->failure.message);
    }
    stop_request(stop, STOP_STRICT);
}

/* Encodes the thumbnail pixels from a device as JPEG. If there is no memory, there is no
 * thumbnail. */
static void encode_thumbnail(struct picture *picture, struct thumbnail_maker *maker)
{
    struct store_record *record = &picture->record;
    uint32_t width, height;
    if (!picture->pixels_of_thumbnail || picture->thumbnail)
        return;
    picture_thumbnail_size(&width, &height, picture);
    record->thumbnail = picture->thumbnail =
        thumbnail_encode(maker, &record->thumbnail_length, picture->pixels_of_thumbnail, width,
                         height, record->image.orientation);
    record->thumbnail_size = picture->thumbnail ? (uint16_t)picture->sink->thumbnail_size : 0;
}

static enum status record_picture(struct recorder *recorder, struct picture *picture,
                                  struct thumbnail_maker *maker, struct error *err)
{
    struct store_record *record = &picture->record;
    encode_thumbnail(picture, maker);
    if (record->failure.reason == REASON_NONE && picture->counters) {
        assert(picture->counted);
        code_finish(record->image.code, picture->counters + picture->sink->code);
        record->image.has_code = true;
    }
    if (record->failure.reason == REASON_NONE && record->origin == 0)
        record->counters = picture->counters;
    if (recorder->store && store_put(recorder->store, &picture->record, err) != STATUS_OK)
        return STATUS_FAILED;
    pthread_mutex_lock(&recorder->lock);
    stop_if_strict(recorder, &picture->record);
    count_picture(recorder, picture);
    pthread_mutex_unlock(&recorder->lock);
    return STATUS_OK;
}

/* Wakes one idle thread, if any. With the queue's lock. */
static void call_thread(struct recorder *recorder)
{
    if (recorder->idle == 0)
        return;
    recorder->idle--;
    pthread_cond_signal(&recorder->more);
}

/* The next pictures as a list; NULL at the end. */
static struct picture *take_some(struct recorder *recorder)
{
    struct picture *taken = NULL, **last = &taken;
    pthread_mutex_lock(&recorder->waiting_lock);
    while (recorder->waiting == 0 && !recorder->finished && !recorder->aborted) {
        recorder->idle++;
        pthread_cond_wait(&recorder->more, &recorder->waiting_lock);
        if (recorder->waiting > 0 && recorder->waiting < TAKEN_MOST && !recorder->finished &&
            recorder->first->record.failure.reason != REASON_NONE) {
            pthread_mutex_unlock(&recorder->waiting_lock);
            nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
            pthread_mutex_lock(&recorder->waiting_lock);
        }
    }
    for (unsigned i = 0; i < TAKEN_MOST && recorder->waiting > 0 && !recorder->aborted; i++) {
        struct picture *picture = recorder->first;
        recorder->first = picture->next;
        recorder->waiting--;
        *last = picture;
        last = &picture->next;
    }
    *last = NULL;
    if (taken && recorder->waiting > 0)
        call_thread(recorder);
    if (recorder->waiting <= WAITING_MAX / 2)
        pthread_cond_broadcast(&recorder->room);
    pthread_mutex_unlock(&recorder->waiting_lock);
    return taken;
}

static void *recorder_main(void *argument)
{
    struct recorder *recorder = argument;
    struct trace *trace = recorder->job->config->trace;
    unsigned track = trace_track(trace, "host", "store");
    struct thumbnail_maker *maker =
        recorder->thumbnail_size > 0 ? thumbnail_maker_new(recorder->thumbnail_size, false) : NULL;
    struct picture *list;
    double busy = 0;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && (list = take_some(recorder))) {
        struct error err = ERROR_INIT;
        const int64_t start = clock_now();
        while (list && status == STATUS_OK) {
            struct picture *picture = list;
            list = picture->next;
            status = record_picture(recorder, picture, maker, &err);
            picture_free(picture);
        }
        const int64_t end = clock_now();
        busy += (double)(end - start) * 1e-9;
        trace_span(trace, track, "put", start, end, NULL);
        picture_free_list(list);
        if (status == STATUS_OK)
            readers_wake(recorder->readers);
        else
            ingest_job_fail(recorder->job, &err);
    }
    pthread_mutex_lock(&recorder->lock);
    recorder->busy = busy > recorder->busy ? busy : recorder->busy;
    pthread_mutex_unlock(&recorder->lock);
    thumbnail_maker_free(maker);
    return NULL;
}

enum status recorder_open(struct recorder **out, struct ingest_job *job, struct store *store,
                          struct readers *readers, struct ingest_report *report,
                          uint32_t thumbnail_size, struct error *err)
{
    *out = NULL;
    struct recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        return error_memory(err, sizeof *recorder, "the store threads");
    pthread_mutex_init(&recorder->lock, NULL);
    lock_init_short(&recorder->waiting_lock);
    pthread_cond_init(&recorder->more, NULL);
    pthread_cond_init(&recorder->room, NULL);
    recorder->job = job;
    recorder->store = store;
    recorder->readers = readers;
    recorder->report = report;
    recorder->thumbnail_size = thumbnail_size;
    recorder->wanted = (job->config->threads + DECODERS_EACH - 1) / DECODERS_EACH;
    if (recorder->wanted > THREADS_MOST)
        recorder->wanted = THREADS_MOST;
    int code = 0;
    while (code == 0 && recorder->threads < recorder->wanted) {
        code = pthread_create(&recorder->thread[recorder->threads], NULL, recorder_main, recorder);
        recorder->threads += code == 0;
    }
    if (recorder->threads == 0) { /* one thread suffices */
        recorder_close(&recorder);
        return error_errno(err, STATUS_FAILED, code, "pthread_create", "cannot start a thread");
    }
    *out = recorder;
    return STATUS_OK;
}

void recorder_put(struct recorder *recorder, struct picture *picture)
{
    picture->next = NULL;
    pthread_mutex_lock(&recorder->waiting_lock);
    while (recorder->waiting >= WAITING_MAX && !recorder->aborted)
        pthread_cond_wait(&recorder->room, &recorder->waiting_lock);
    const bool taken = !recorder->aborted;
    if (taken) {
        *(recorder->waiting > 0 ? &recorder->last->next : &recorder->first) = picture;
        recorder->last = picture;
        if (recorder->waiting++ % TAKEN_MOST == 0)
            call_thread(recorder);
    }
    pthread_mutex_unlock(&recorder->waiting_lock);
    if (!taken)
        picture_free(picture);
}

static void end(struct recorder *recorder, bool *how)
{
    pthread_mutex_lock(&recorder->waiting_lock);
    *how = true;
    pthread_cond_broadcast(&recorder->more);
    pthread_cond_broadcast(&recorder->room);
    pthread_mutex_unlock(&recorder->waiting_lock);
}

void recorder_abort(struct recorder *recorder)
{
    end(recorder, &recorder->aborted);
}

double recorder_finish(struct recorder *recorder)
{
    end(recorder, &recorder->finished);
    for (unsigned i = 0; i < recorder->threads; i++)
        pthread_join(recorder->thread[i], NULL);
    return recorder->busy;
}

void recorder_close(struct recorder **out)
{
    struct recorder *recorder = *out;
    if (!recorder)
        return;
    if (recorder->waiting > 0)
        picture_free_list(recorder->first);
    pthread_mutex_destroy(&recorder->lock);
    pthread_mutex_destroy(&recorder->waiting_lock);
    pthread_cond_destroy(&recorder->more);
    pthread_cond_destroy(&recorder->room);
    free(recorder);
    *out = NULL;
}
