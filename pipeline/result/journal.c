/* journal.c: records wait in a window for earlier ones, then go to a block and the order file.
 *
 *   journal_put: copy (any thread) ─> window, until its turn ─> block ─> log (by who fills it, or the
 *                                                          │              journal's thread)
 *                                                          └─> order: 8 bytes, its location
 *
 * Sealed records are never lost: each run writes its own append-only log. A resumed run reads all
 * logs; it does not write records of earlier runs again, but only their locations to the order
 * file, an unlinked file of each run. So a complete block is never overwritten or moved, whenever
 * processes are killed; logs are removed only after the finished file was renamed. If two processes
 * both believe to own the directory, they write different logs, and the one that has lost it stops
 * at its next sync. Items of a log that the walk no longer has are not in the order file. */
#include "result/journal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "base/path.h"
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
#define BLOCK_BYTES (4u << 20) /* of rows in memory; a block ends before it would exceed this */
#define SYNC_BYTES  (64u << 20)
#define SYNC_AFTER  1000000000

/* A record waiting for earlier ones: a copy, or the location of an existing one. */
struct waiting {
    bool there;
    struct records_row *row;
    uint64_t origin;
};

/* The rows of a block, contiguous in `bytes`, each at a multiple of 8. The buffer is kept: fresh
 * memory costs more than processing. */
struct rows {
    uint8_t *bytes;
    size_t used, size;
    struct records_row **row;
    uint32_t count, room;
};

/* A written block. */
struct written {
    uint64_t offset;
    uint32_t rows[2];
};

struct journal {
    const struct workdir *workdir;
    struct records records;
    uint32_t *width;
    unsigned features;
    size_t value_bytes; /* per image */
    int order;
    bool fresh, holds_work;

    _Atomic uint64_t next; /* sequence of the next record to process */
    pthread_mutex_t lock;  /* guards the following */
    struct waiting *ring;  /* size is a power of two; record `sequence` is at sequence % size */
    uint64_t ring_size;
    uint64_t order_buffer[ORDER_BLOCK];
    unsigned order_filled;
    struct journal_tally tally;
    uint64_t rows[2]; /* of all logs, including the following */
    struct rows filling;
    struct rows flushed; /* and the encoded block; owned by the writing thread while `writing` */
    uint8_t *encoded;
    size_t encoded_room;
    /* Blocks of this run. */
    struct written *block;
    uint64_t blocks;
    uint64_t end; /* offset of the next one */
    bool writing; /* a block is being written */

    pthread_t thread;
    bool started, closing;
    pthread_cond_t work, done; /* for the journal's thread; for those that wait for it or for the
                                * writing */
    uint64_t unsynced;         /* bytes */
    uint64_t wanted, durable;  /* seals requested and done */
    int64_t oldest;            /* when the oldest unsynced record arrived; 0: none */
    struct error error;        /* the first; all later calls fail with it */
};

/* --- opening --------------------------------------------------------------------------------- */

enum status journal_open(struct journal **out, const struct workdir *workdir,
                         const uint32_t *widths, unsigned features, bool fresh, struct error *err)
{
    *out = NULL;
    enum status status = STATUS_FAILED;
    const int directory = workdir_descriptor(workdir);
    const char *path = workdir_path(workdir);
    struct journal *journal = calloc(1, sizeof *journal);
    if (!journal)
        return error_memory(err, sizeof *journal, "the log");
    journal->workdir = workdir;
    journal->order = -1;
    journal->fresh = fresh;
    /* Until the contents of the logs are known. */
    journal->holds_work = true;
    pthread_mutex_init(&journal->lock, NULL);
    cond_init_monotonic(&journal->work);
    cond_init_monotonic(&journal->done);
    journal->records.directory = directory;
    journal->width = malloc(features * sizeof *widths + 1);
    if (!journal->width) {
        error_memory(err, features * sizeof *widths, "the log");
        goto out;
    }
    journal->features = features;
    for (unsigned i = 0; i < features; i++) {
        journal->width[i] = widths[i];
        journal->value_bytes += ((size_t)widths[i] + 3) / 4 * 4;
    }
    journal->order =
        openat(directory, "order", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (journal->order < 0) {
        char shown[256];
        error_errno(err, STATUS_FAILED, errno, "openat", "cannot write in %s",
                    path_for_message(shown, sizeof shown, path));
        goto out;
    }
    unlinkat(directory, "order", 0);
    if (!fresh) {
        status = records_open(&journal->records, directory, path, err);
    } else {
        journal->records.path = strdup(path);
        status = journal->records.path ? STATUS_OK : error_memory(err, strlen(path), "a file name");
    }
out:
    *out = journal;
    if (status)
        journal_close(out);
    return status;
}

const struct records *journal_records(const struct journal *journal)
{
    return &journal->records;
}

bool journal_holds_work(const struct journal *journal)
{
    return journal->holds_work;
}

static void *sync_log(void *context);

enum status journal_begin(struct journal *journal, const char *signature, struct stop *stop,
                          struct error *err)
{
    struct records *records = &journal->records;
    char shown[256];
    enum status status =
        records_scan(records, journal->width, journal->features, stop, err);
    if (status || (status = workdir_check(journal->workdir, err)))
        return status;
    if (records->damaged > 0)
        log_message(LOG_NOTICE,
                    "%s: %llu bytes in the middle of a log are damaged; what they held is done again",
                    path_for_message(shown, sizeof shown, records->path),
                    (unsigned long long)records->damaged);
    if (journal->fresh)
        workdir_remove_logs(journal->workdir);
    journal->holds_work = records->blocks > 0;
    status = records_create(records, records->signature ? records->signature : signature, err);
    if (!status)
        status = workdir_sync(journal->workdir, err);
    if (status)
        return status;
    journal->end = records->log[records->logs - 1].start;
    journal->rows[0] = records->rows[0];
    journal->rows[1] = records->rows[1];
    const int failed = pthread_create(&journal->thread, NULL, sync_log, journal);
    journal->started = !failed;
    return failed ? error_errno(err, STATUS_FAILED, failed, "pthread_create",
                                "cannot start the log's writer")
                  : STATUS_OK;
}

void journal_close(struct journal **journal)
{
    if (!journal || !*journal)
        return;
    struct journal *j = *journal;
    *journal = NULL;
    if (j->started) {
        pthread_mutex_lock(&j->lock);
        j->closing = true;
        pthread_cond_broadcast(&j->work);
        pthread_mutex_unlock(&j->lock);
        pthread_join(j->thread, NULL);
    }
    records_clear(&j->records);
    for (uint64_t i = 0; i < j->ring_size; i++)
        free(j->ring[i].row);
    free(j->ring);
    free(j->filling.bytes);
    free(j->filling.row);
    free(j->flushed.bytes);
    free(j->flushed.row);
    free(j->encoded);
    free(j->block);
    free(j->width);
    if (j->order >= 0)
        close(j->order);
    pthread_mutex_destroy(&j->lock);
    pthread_cond_destroy(&j->work);
    pthread_cond_destroy(&j->done);
    free(j);
}

/* --- writing --------------------------------------------------------------------------------- */

/* Keeps the first error. With the lock held. */
static void fail(struct journal *journal, const struct error *error)
{
    if (!journal->error.status)
        journal->error = *error;
    pthread_cond_broadcast(&journal->done);
    pthread_cond_broadcast(&journal->work);
}

static enum status pass_error(const struct journal *journal, struct error *err)
{
    if (journal->error.status && err)
        *err = journal->error;
    return journal->error.status;
}

/* Writes the rows to be flushed as the next block. One thread at a time, without the lock. */
static enum status write_block(struct journal *journal, struct error *err)
{
    const struct records *records = &journal->records;
    const int fd = records->log[records->logs - 1].fd;
    struct rows *rows = &journal->flushed;
    struct written written = {.offset = journal->end};
    size_t size = 0;
    enum status status = records_encode(&journal->encoded, &journal->encoded_room, &size, records,
                                        rows->row, rows->count, err);
    if (!status)
        status = write_at(fd, journal->encoded, size, journal->end, records->path, err);
    if (status) {
        /* Earlier blocks stay valid; frees the space of the partial one. */
        if (ftruncate(fd, (off_t)journal->end) == 0)
            fdatasync(fd);
    }
    for (uint32_t i = 0; i < rows->count; i++)
        written.rows[rows->row[i]->record.failure.reason != REASON_NONE]++;
    rows->used = rows->count = 0;
    if (status)
        return status;
    if ((journal->blocks & (journal->blocks - 1)) == 0) {
        const size_t room = (2 * journal->blocks + 1) * sizeof *journal->block;
        struct written *more = realloc(journal->block, room);
        if (!more)
            return error_memory(err, room, "the blocks of the log");
        journal->block = more;
    }
    journal->block[journal->blocks++] = written;
    journal->end += size;
    return STATUS_OK;
}

/* Writes the collected rows. Called with the lock held; releases it meanwhile. */
static void flush_rows(struct journal *journal)
{
    while (journal->writing && !journal->error.status)
        pthread_cond_wait(&journal->done, &journal->lock);
    if (journal->filling.count == 0 || journal->error.status)
        return;
    const struct rows empty = journal->flushed;
    const uint64_t before = journal->end;
    struct error error = ERROR_INIT;
    journal->flushed = journal->filling;
    journal->filling = empty;
    journal->writing = true;
    pthread_mutex_unlock(&journal->lock);
    enum status status = write_block(journal, &error);
    pthread_mutex_lock(&journal->lock);
    journal->writing = false;
    journal->unsynced += journal->end - before;
    if (status)
        fail(journal, &error);
    pthread_cond_broadcast(&journal->done);
    if (journal->unsynced >= SYNC_BYTES)
        pthread_cond_signal(&journal->work);
}

/* The journal's thread. */
static void *sync_log(void *context)
{
    struct journal *j = context;
    const int fd = j->records.log[j->records.logs - 1].fd;
    pthread_mutex_lock(&j->lock);
    while (!j->error.status) {
        while (!j->closing && !j->error.status && j->wanted == j->durable &&
               j->unsynced < SYNC_BYTES && !(j->oldest && clock_now() >= j->oldest + SYNC_AFTER)) {
            if (j->oldest)
                cond_wait_until(&j->work, &j->lock, j->oldest + SYNC_AFTER);
            else
                pthread_cond_wait(&j->work, &j->lock);
        }
        const uint64_t wanted = j->wanted;
        /* After a large sync, newly collected rows wait for the next one. */
        if (j->unsynced < SYNC_BYTES || j->closing || wanted > j->durable)
            flush_rows(j);
        while (j->writing && !j->error.status)
            pthread_cond_wait(&j->done, &j->lock);
        if (j->error.status)
            break;
        const bool some = j->unsynced > 0;
        j->unsynced = 0;
        j->oldest = j->filling.count > 0 ? clock_now() : 0;
        pthread_mutex_unlock(&j->lock);
        struct error error = ERROR_INIT;
        enum status status = some ? workdir_check(j->workdir, &error) : STATUS_OK;
        if (!status && some && fdatasync(fd) && errno != EINVAL && errno != ENOTSUP) {
            char shown[256];
            status = error_errno(&error, STATUS_FAILED, errno, "fdatasync", "cannot write %s",
                                 path_for_message(shown, sizeof shown, j->records.path));
        }
        pthread_mutex_lock(&j->lock);
        if (status)
            fail(j, &error);
        else
            j->durable = wanted;
        pthread_cond_broadcast(&j->done);
        if (j->closing)
            break;
    }
    pthread_cond_broadcast(&j->done);
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

/* --- adding records -------------------------------------------------------------------------- */

/* Grows the ring so that `sequence` fits. */
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
    return write_all(journal->order, journal->order_buffer, bytes, journal->records.path, err);
}

/* Size of a row in memory, a multiple of 8: copies of record, values, thumbnail and path. */
static size_t row_bytes(const struct journal *journal, const struct store_record *record)
{
    const bool image = record->failure.reason == REASON_NONE;
    return (sizeof(struct records_row) + record->path_length + (image ? journal->value_bytes : 0) +
            (image && record->thumbnail ? record->thumbnail_length : 0) + 7) /
           8 * 8;
}

/* Sets a row's pointers to its data. */
static void set_pointers(const struct journal *journal, struct records_row *row)
{
    struct store_record *record = &row->record;
    uint8_t *at = (uint8_t *)(row + 1);
    row->values = at;
    if (record->failure.reason == REASON_NONE) {
        at += journal->value_bytes;
        record->thumbnail = record->thumbnail ? at : NULL;
        at += record->thumbnail ? record->thumbnail_length : 0;
    }
    record->path = (const char *)at;
}

/* Makes a copy; the caller frees it. */
static enum status copy_row(struct records_row **out, const struct journal *journal,
                            const struct store_record *record, const void *values,
                            struct error *err)
{
    const size_t size = row_bytes(journal, record);
    if (record->path_length > RECORDS_MOST_PATH)
        return error_set(err, STATUS_FAILED, "a path is longer than %u bytes", RECORDS_MOST_PATH);
    struct records_row *row = *out = malloc(size);
    if (!row)
        return error_memory(err, size, "a finished record");
    row->record = *record;
    set_pointers(journal, row);
    if (record->failure.reason == REASON_NONE && journal->value_bytes > 0)
        memcpy((uint8_t *)row->values, values, journal->value_bytes);
    if (record->failure.reason == REASON_NONE && record->thumbnail)
        memcpy((uint8_t *)row->record.thumbnail, record->thumbnail, record->thumbnail_length);
    memcpy((char *)row->record.path, record->path, record->path_length);
    return STATUS_OK;
}

/* Adds a row to the block and frees it; a row larger than a block gets a block of its own. With the
 * lock held. */
static enum status add_row(struct journal *journal, struct records_row *row, uint64_t *location,
                           struct error *err)
{
    struct rows *rows = &journal->filling;
    const bool image = row->record.failure.reason == REASON_NONE;
    const size_t bytes = row_bytes(journal, &row->record);
    size_t wanted = rows->used + bytes > BLOCK_BYTES ? rows->used + bytes : BLOCK_BYTES;
    enum status status = STATUS_OK;
    if (rows->count == 0 && rows->size < wanted) {
        free(rows->bytes);
        rows->bytes = malloc(wanted);
        rows->size = rows->bytes ? wanted : 0;
    }
    if (rows->count == rows->room) {
        const uint32_t room = rows->room ? 2 * rows->room : 256;
        struct records_row **more = realloc(rows->row, room * sizeof *more);
        rows->row = more ? more : rows->row;
        rows->room = more ? room : rows->room;
    }
    if (rows->count == rows->room || !rows->bytes) {
        status = error_memory(err, wanted, "a block of the log");
        goto out;
    }
    assert(bytes <= rows->size - rows->used);
    struct records_row *copy = (struct records_row *)(rows->bytes + rows->used);
    memcpy(copy, row, bytes);
    set_pointers(journal, copy);
    rows->row[rows->count++] = copy;
    rows->used += bytes;
    journal->holds_work = true;
    *location = location_of(image ? LOCATION_LOG_IMAGE : LOCATION_LOG_FAILURE,
                            journal->rows[image ? RECORDS_IMAGES : RECORDS_FAILURES]++);
    if (journal->oldest == 0) {
        journal->oldest = clock_now();
        pthread_cond_signal(&journal->work); /* it needs a new deadline */
    }
out:
    free(row);
    return status;
}

/* Makes space for a row; if it has to write the block it releases the lock meanwhile and returns
 * true. */
static bool make_room(struct journal *journal, const struct records_row *row)
{
    const struct rows *rows = &journal->filling;
    if (!row || rows->count == 0 || rows->used + row_bytes(journal, &row->record) <= BLOCK_BYTES)
        return false;
    flush_rows(journal);
    return true;
}

/* Processes waiting records in order. With the lock held. */
static enum status take_waiting(struct journal *journal, struct error *err)
{
    struct waiting *waiting;
    enum status status = journal->error.status;
    for (;;) {
        const uint64_t next = atomic_load_explicit(&journal->next, memory_order_relaxed);
        waiting = &journal->ring[next % journal->ring_size];
        if (status || !waiting->there)
            return status;
        if (make_room(journal, waiting->row)) {
            status = pass_error(journal, err);
            continue;
        }
        uint64_t location = waiting->origin;
        if (!location)
            status = add_row(journal, waiting->row, &location, err);
        *waiting = (struct waiting){.there = false};
        journal->order_buffer[journal->order_filled++] = location;
        if (!status && journal->order_filled == ORDER_BLOCK)
            status = flush_order(journal, err);
        atomic_store_explicit(&journal->next, next + 1, memory_order_release);
    }
}

static void count_record(struct journal_tally *tally, const struct store_record *record)
{
    bool image = record->failure.reason == REASON_NONE;
    tally->by_reason[record->failure.reason]++;
    tally->bytes += record->bytes;
    if (image) {
        tally->pixels += (uint64_t)record->width * record->height;
        tally->codes += record->has_code;
    }
}

enum status journal_put(struct journal *journal, const struct store_record *record,
                        const void *values, struct error *err)
{
    struct waiting waiting = {.there = true, .origin = record->origin};
    struct error error = ERROR_INIT;
    enum status status = STATUS_OK;
    if (!record->origin)
        status = copy_row(&waiting.row, journal, record, values, &error);
    pthread_mutex_lock(&journal->lock);
    if (journal->error.status || status || grow_ring(journal, record->sequence, &error))
        goto out;
    struct waiting *place = &journal->ring[record->sequence % journal->ring_size];
    assert(!place->there);
    *place = waiting;
    waiting.row = NULL;
    count_record(&journal->tally, record);
    take_waiting(journal, &error);
out:
    if (error.status)
        fail(journal, &error);
    status = pass_error(journal, err);
    pthread_mutex_unlock(&journal->lock);
    free(waiting.row);
    return status;
}

uint64_t journal_written(struct journal *journal)
{
    return atomic_load_explicit(&journal->next, memory_order_acquire);
}

/* --- ending ---------------------------------------------------------------------------------- */

/* With the lock held. */
static enum status seal(struct journal *journal, struct error *err)
{
    const uint64_t wanted = ++journal->wanted;
    pthread_cond_signal(&journal->work);
    while (!journal->error.status && journal->durable < wanted)
        pthread_cond_wait(&journal->done, &journal->lock);
    return pass_error(journal, err);
}

enum status journal_seal(struct journal *journal, struct error *err)
{
    pthread_mutex_lock(&journal->lock);
    enum status status = seal(journal, err);
    pthread_mutex_unlock(&journal->lock);
    return status;
}

/* Records after a gap are as good as those before: all are in order. */
enum status journal_stop(struct journal *journal, uint64_t *kept, struct error *err)
{
    pthread_mutex_lock(&journal->lock);
    const uint64_t next = atomic_load_explicit(&journal->next, memory_order_relaxed);
    uint64_t location;
    enum status status = pass_error(journal, err);
    *kept = next;
    for (uint64_t i = 0; !status && i < journal->ring_size; i++) {
        struct waiting *waiting = &journal->ring[(next + i) % journal->ring_size];
        if (!waiting->there)
            continue;
        ++*kept;
        struct records_row *row = waiting->row;
        waiting->row = NULL;
        while (!status && make_room(journal, row))
            status = pass_error(journal, err);
        if (row && !status)
            status = add_row(journal, row, &location, err);
        else
            free(row);
    }
    if (!status)
        status = seal(journal, err);
    pthread_mutex_unlock(&journal->lock);
    return status;
}

enum status journal_finish(struct journal *journal, int *order, uint64_t *records,
                           struct journal_tally *tally, struct error *err)
{
    pthread_mutex_lock(&journal->lock);
    for (uint64_t i = 0; i < journal->ring_size; i++)
        assert(journal->error.status || !journal->ring[i].there);
    enum status status = pass_error(journal, err);
    if (!status)
        status = flush_order(journal, err);
    if (!status)
        status = seal(journal, err);
    for (uint64_t i = 0; i < journal->blocks && !status; i++)
        status = records_add(&journal->records, journal->block[i].offset, journal->block[i].rows,
                             err);
    journal->blocks = 0;
    *tally = journal->tally;
    pthread_mutex_unlock(&journal->lock);
    *order = journal->order;
    *records = atomic_load_explicit(&journal->next, memory_order_relaxed);
    return status;
}
