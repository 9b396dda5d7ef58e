/* journal.c: a window of records that wait for earlier ones, then the log and the order.
 *
 *   journal_put: encode (any thread) ─> waiting, until its turn ─> log (appender's thread)
 *                                                              └─> order: 8 bytes, where it lies
 *
 * Why nothing sealed is ever lost: there is one log, and it only grows. A resumed run reads it,
 * cuts off at most a frame that is not whole, and appends behind it; what it takes over from
 * earlier it does not write again, it only notes in the order - a file without a name, made anew by
 * each run - where it lies. So a whole frame is never written over or moved, whatever is killed
 * when and how often; the log is removed only after the finished file has been renamed into place.
 * Items of a log that the walk does not ask for any more are never referred to. */
#include "log/journal.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
#include "log/appender.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORDER_BLOCK 4096

/* A record that waits for those before it: a frame, or where it lies already. */
struct waiting {
    bool there;
    struct records_frame frame;
    uint64_t origin;
};

struct journal {
    const struct workdir *workdir;
    uint32_t counters;
    char *path, *signature;
    int log, order;
    uint64_t start; /* of the frames of the log that was there */
    struct stretches earlier;
    struct appender *appender;
    bool holds_work;

    _Atomic uint64_t next; /* sequence of the next record to be logged */
    pthread_mutex_t lock;  /* guards what follows */
    struct waiting *ring;  /* of a power of two; the record `sequence` is at sequence % size */
    uint64_t ring_size;
    uint64_t order_buffer[ORDER_BLOCK];
    unsigned order_filled;
    struct journal_tally tally;
    struct error error; /* the first; every later put fails with it */
};

/* --- opening --------------------------------------------------------------------------------- */

enum status journal_open(struct journal **out, const struct workdir *workdir, uint32_t counters,
                         struct error *err)
{
    *out = NULL;
    enum status status = STATUS_FAILED;
    const int directory = workdir_descriptor(workdir);
    struct journal *journal = calloc(1, sizeof *journal);
    if (!journal)
        return error_memory(err, sizeof *journal, "the log");
    journal->workdir = workdir;
    journal->counters = counters;
    journal->log = journal->order = -1;
    pthread_mutex_init(&journal->lock, NULL);
    if (asprintf(&journal->path, "%s/records", workdir_path(workdir)) < 0) {
        journal->path = NULL;
        error_memory(err, strlen(workdir_path(workdir)), "a file name");
        goto out;
    }
    journal->log = openat(directory, WORKDIR_LOG, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    journal->order =
        openat(directory, "order", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (journal->log < 0 || journal->order < 0) {
        char shown[256];
        error_errno(err, STATUS_FAILED, errno, "openat", "cannot write in %s",
                    path_for_message(shown, sizeof shown, workdir_path(workdir)));
        goto out;
    }
    unlinkat(directory, "order", 0);
    /* Until it is known what the log holds. */
    journal->holds_work = lseek(journal->log, 0, SEEK_END) > 0;
    *out = journal;
    journal = NULL;
    status = STATUS_OK;
out:
    journal_close(&journal);
    return status;
}

enum status journal_read_signature(const char **signature, struct journal *journal,
                                   struct error *err)
{
    *signature = NULL;
    enum status status =
        records_read_header(&journal->signature, &journal->start, journal->log, journal->path, err);
    if (status == STATUS_OK)
        *signature = journal->signature;
    return status == STATUS_END ? STATUS_OK : status;
}

/* Cuts the log back to `size`, where it is to go on. */
static enum status cut_log(struct journal *journal, uint64_t size, struct error *err)
{
    if (workdir_check(journal->workdir, err))
        return STATUS_FAILED;
    if (ftruncate(journal->log, (off_t)size) == 0 &&
        lseek(journal->log, (off_t)size, SEEK_SET) == (off_t)size)
        return STATUS_OK;
    char shown[256];
    return error_errno(err, STATUS_FAILED, errno, "ftruncate", "cannot write %s",
                       path_for_message(shown, sizeof shown, journal->path));
}

enum status journal_begin(struct journal *journal, const char *signature, bool resume,
                          struct stop *stop, struct error *err)
{
    struct records_frame mark = {0};
    uint64_t offset;
    char shown[256];
    struct stretches *earlier = &journal->earlier;
    enum status status = STATUS_FAILED;
    if (resume) {
        status = stretches_scan(earlier, journal->log, journal->path, journal->counters,
                                journal->start, stop, err);
        if (status)
            return status;
        if (earlier->damaged > 0)
            log_message(LOG_NOTICE,
                        "%s: %llu bytes in the middle are damaged; what they held is done again",
                        path_for_message(shown, sizeof shown, journal->path),
                        (unsigned long long)earlier->damaged);
        status = cut_log(journal, earlier->end, err);
    } else if (!cut_log(journal, 0, err) &&
               !records_write_header(journal->log, signature, journal->path, err)) {
        off_t at = lseek(journal->log, 0, SEEK_CUR);
        earlier->end = at > 0 ? (uint64_t)at : 0;
        status = workdir_sync(journal->workdir, err);
    }
    journal->holds_work = earlier->records > 0;
    if (status)
        return status;
    if (appender_open(&journal->appender, journal->log, journal->earlier.end, journal->workdir,
                      journal->path, err) ||
        records_encode_start(&mark, err) ||
        appender_add(journal->appender, mark.data, mark.size, &offset, err))
        status = STATUS_FAILED;
    free(mark.data);
    return status;
}

const struct stretches *journal_earlier(const struct journal *journal)
{
    return &journal->earlier;
}

int journal_log(const struct journal *journal)
{
    return journal->log;
}

const char *journal_path(const struct journal *journal)
{
    return journal->path;
}

bool journal_holds_work(const struct journal *journal)
{
    return journal->holds_work;
}

void journal_close(struct journal **journal)
{
    if (!journal || !*journal)
        return;
    struct journal *j = *journal;
    *journal = NULL;
    appender_close(&j->appender);
    stretches_clear(&j->earlier);
    for (uint64_t i = 0; i < j->ring_size; i++)
        free(j->ring[i].frame.data);
    free(j->ring);
    if (j->log >= 0)
        close(j->log);
    if (j->order >= 0)
        close(j->order);
    pthread_mutex_destroy(&j->lock);
    free(j->signature);
    free(j->path);
    free(j);
}

/* --- putting --------------------------------------------------------------------------------- */

/* Makes place for `sequence` among the waiting. */
static enum status grow_ring(struct journal *journal, uint64_t sequence, struct error *err)
{
    uint64_t next = atomic_load_explicit(&journal->next, memory_order_relaxed);
    uint64_t size = journal->ring_size ? journal->ring_size : 256;
    assert(sequence >= next);
    while (sequence - next >= size)
        size *= 2;
    if (size == journal->ring_size)
        return STATUS_OK;
    struct waiting *ring = calloc(size, sizeof *ring);
    if (!ring)
        return error_memory(err, size * sizeof *ring, "records out of order");
    for (uint64_t i = 0; i < journal->ring_size; i++)
        ring[(next + i) % size] = journal->ring[(next + i) % journal->ring_size];
    free(journal->ring);
    journal->ring = ring;
    journal->ring_size = size;
    return STATUS_OK;
}

static enum status flush_order(struct journal *journal, struct error *err)
{
    size_t bytes = journal->order_filled * sizeof journal->order_buffer[0];
    journal->order_filled = 0;
    return write_all(journal->order, journal->order_buffer, bytes, journal->path, err);
}

static enum status log_frame(struct journal *journal, const struct records_frame *frame,
                             uint64_t *location, struct error *err)
{
    uint64_t offset;
    journal->holds_work = true;
    enum status status = appender_add(journal->appender, frame->data, frame->size, &offset, err);
    if (status == STATUS_OK)
        *location = location_of(LOCATION_LOG, offset);
    return status;
}

/* Logs every waiting record whose turn it is. */
static enum status log_waiting(struct journal *journal, struct error *err)
{
    uint64_t next = atomic_load_explicit(&journal->next, memory_order_relaxed);
    struct waiting *waiting;
    while ((waiting = &journal->ring[next % journal->ring_size])->there) {
        uint64_t location = waiting->origin;
        enum status status =
            location ? STATUS_OK : log_frame(journal, &waiting->frame, &location, err);
        free(waiting->frame.data);
        *waiting = (struct waiting){.there = false};
        journal->order_buffer[journal->order_filled++] = location;
        if (!status && journal->order_filled == ORDER_BLOCK)
            status = flush_order(journal, err);
        atomic_store_explicit(&journal->next, ++next, memory_order_release);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static void count_record(struct journal_tally *tally, const struct store_record *record)
{
    bool image = record->failure.reason == REASON_NONE;
    tally->by_reason[record->failure.reason]++;
    tally->bytes += record->bytes;
    if (image) {
        tally->pixels += (uint64_t)record->width * record->height;
        tally->codes += record->has_code;
        tally->thumbnail_bytes += record->thumbnail_length;
    }
    if (!utf8_valid(record->path, record->path_length)) {
        struct raw_paths_tally *raw = image ? &tally->raw_images : &tally->raw_failures;
        raw->rows++;
        raw->bytes += record->path_length;
    }
}

enum status journal_put(struct journal *journal, const struct store_record *record,
                        const void *values, struct error *err)
{
    struct waiting waiting = {.there = true, .origin = record->origin};
    struct error error = ERROR_INIT;
    enum status status = STATUS_OK;
    if (!record->origin)
        status = records_encode(&waiting.frame, record, values, journal->counters, &error);
    pthread_mutex_lock(&journal->lock);
    if (journal->error.status || status || grow_ring(journal, record->sequence, &error))
        goto out;
    struct waiting *place = &journal->ring[record->sequence % journal->ring_size];
    assert(!place->there);
    *place = waiting;
    waiting.frame.data = NULL;
    count_record(&journal->tally, record);
    log_waiting(journal, &error);
out:
    if (!journal->error.status)
        journal->error = error;
    status = journal->error.status;
    if (status && err)
        *err = journal->error;
    pthread_mutex_unlock(&journal->lock);
    free(waiting.frame.data);
    return status;
}

uint64_t journal_written(struct journal *journal)
{
    return atomic_load_explicit(&journal->next, memory_order_acquire);
}

enum status journal_seal(struct journal *journal, struct error *err)
{
    return appender_sync(journal->appender, err);
}

/* --- ending ---------------------------------------------------------------------------------- */

/* What is in the log after it begins to have gaps is as good as what lies before: it is in order.
 */
enum status journal_stop(struct journal *journal, uint64_t *kept, struct error *err)
{
    pthread_mutex_lock(&journal->lock);
    uint64_t next = atomic_load_explicit(&journal->next, memory_order_relaxed), location;
    enum status status = journal->error.status;
    *kept = next;
    if (status && err)
        *err = journal->error;
    for (uint64_t i = 0; !status && i < journal->ring_size; i++) {
        struct waiting *waiting = &journal->ring[(next + i) % journal->ring_size];
        if (!waiting->there)
            continue;
        ++*kept;
        if (!waiting->origin)
            status = log_frame(journal, &waiting->frame, &location, err);
    }
    pthread_mutex_unlock(&journal->lock);
    return status ? status : journal_seal(journal, err);
}

enum status journal_finish(struct journal *journal, int *order, uint64_t *records,
                           uint64_t *log_end, struct journal_tally *tally, struct error *err)
{
    pthread_mutex_lock(&journal->lock);
    for (uint64_t i = 0; i < journal->ring_size; i++)
        assert(journal->error.status || !journal->ring[i].there);
    enum status status = journal->error.status;
    if (status && err)
        *err = journal->error;
    else if (!status)
        status = flush_order(journal, err);
    *tally = journal->tally;
    pthread_mutex_unlock(&journal->lock);
    if (status || (status = journal_seal(journal, err)))
        return status;
    off_t end = lseek(journal->log, 0, SEEK_END);
    *log_end = end > 0 ? (uint64_t)end : 0;
    *order = journal->order;
    *records = atomic_load_explicit(&journal->next, memory_order_relaxed);
    return STATUS_OK;
}
