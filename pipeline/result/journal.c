/* journal.c: records wait in a window for earlier ones, then go to a block and the list of rows.
 *
 *   journal_put: copy (any thread) ─> window, until its turn ─> block ─> log (by who fills it, or the
 *                                                          │              journal's thread)
 *                                                          └─> list: its location
 *
 * Sealed records are never lost: each run writes its own append-only log. A resumed run reads all
 * logs; it does not write records of earlier runs again, but only adds their locations to the list.
 * So a complete block is never overwritten or moved, whenever processes are killed; logs are
 * removed only once the new file has been renamed. If two processes believe that they own the
 * directory, they write different logs, and the one that no longer owns it stops at its next sync.
 * Items of a log that the walk no longer has are not in the list. */
#include "result/journal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES (2u << 20) /* a block ends before it would exceed this */
#define SYNC_BYTES  (64u << 20)
#define SYNC_AFTER  1000000000

/* A record waiting for earlier ones. */
struct copy {
    uint64_t origin; /* of an existing one, which has nothing else; else 0 */
    struct log_row row;
    bool image;
    size_t length[2]; /* of its texts, which follow the values */
    uint8_t bytes[];
};

/* The rows of a block. The buffers are kept: fresh memory costs more than processing. */
struct rows {
    struct records_bytes *column;
    size_t bytes;
    uint32_t count[2];
};

struct journal {
    const struct workdir *workdir;
    struct records records;
    unsigned columns;
    size_t value_bytes; /* per image */
    bool holds_work;

    _Atomic uint64_t next; /* sequence of the next record to process */
    pthread_mutex_t lock;  /* guards the following */
    struct copy **ring;    /* size is a power of two; record `sequence` is at sequence % size */
    uint64_t ring_size;
    struct row_lists lists;
    struct journal_tally tally;
    uint64_t rows[2]; /* of all logs, including the following */
    struct rows filling;
    struct rows flushed; /* owned by the writing thread while `writing` */
    uint64_t end;        /* offset of the next block */
    bool writing;        /* a block is being written */

    pthread_t thread;
    bool started, closing;
    pthread_cond_t work,
        done;          /* for the journal's thread; for threads that wait for it or a write */
    uint64_t unsynced; /* bytes */
    uint64_t wanted, durable; /* seals requested and done */
    int64_t oldest;           /* when the oldest unsynced record arrived; 0: none */
    struct error error;       /* the first error; all later calls fail with it */
};

/* --- opening --------------------------------------------------------------------------------- */

const struct records *journal_records(const struct journal *journal)
{
    return &journal->records;
}

bool journal_holds_work(const struct journal *journal)
{
    return journal->holds_work;
}

static void *sync_log(void *context);

/* Checks the existing logs and begins a new one. */
static enum status begin(struct journal *journal, const uint32_t *widths, unsigned features,
                         bool fresh, const char *signature, struct stop *stop, struct error *err)
{
    struct records *records = &journal->records;
    const char *path = journal->workdir->path;
    enum status status = records_scan(records, widths, features, stop, err);
    if (status || (status = workdir_check(journal->workdir, err)))
        return status;
    if (records->damaged > 0)
        log_message(
            LOG_NOTICE,
            "%s: %llu bytes in the middle of a log are damaged; their images are read again",
            PATH_TEXT(path), (unsigned long long)records->damaged);
    if (fresh)
        workdir_remove_logs(journal->workdir);
    journal->holds_work = records->blocks > 0;
    status = records_create(records, records->signature ? records->signature : signature, err);
    if (!status)
        status = workdir_sync(journal->workdir, err);
    if (status)
        return status;
    journal->end = records->log[records->logs - 1].start;
    memcpy(journal->rows, records->rows, sizeof journal->rows);
    const int failed = pthread_create(&journal->thread, NULL, sync_log, journal);
    journal->started = !failed;
    return failed ? error_errno(err, STATUS_FAILED, failed, "pthread_create",
                                "cannot start the log's writer")
                  : STATUS_OK;
}

enum status journal_open(struct journal **out, const struct workdir *workdir, struct records *logs,
                         const uint32_t *widths, unsigned features, bool fresh,
                         const char *signature, struct stop *stop, struct error *err)
{
    struct journal *journal = *out = calloc(1, sizeof *journal);
    if (!journal)
        return error_memory(err, sizeof *journal, "the log");
    journal->workdir = workdir;
    journal->records = *logs;
    *logs = (struct records){.directory = -1};
    journal->columns = LOG_FEATURE + features;
    pthread_mutex_init(&journal->lock, NULL);
    cond_init_monotonic(&journal->work);
    cond_init_monotonic(&journal->done);
    for (unsigned i = 0; i < features; i++)
        journal->value_bytes += ((size_t)widths[i] + 3) / 4 * 4;
    journal->filling.column = calloc(journal->columns, sizeof *journal->filling.column);
    journal->flushed.column = calloc(journal->columns, sizeof *journal->flushed.column);
    enum status status =
        journal->filling.column && journal->flushed.column
            ? begin(journal, widths, features, fresh, signature, stop, err)
            : error_memory(err, journal->columns * sizeof *journal->filling.column, "the log");
    if (status)
        journal_close(out);
    return status;
}

static void free_rows(const struct journal *journal, struct rows *rows)
{
    for (unsigned c = 0; rows->column && c < journal->columns; c++)
        free(rows->column[c].bytes);
    free(rows->column);
    rows->column = NULL;
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
        free(j->ring[i]);
    free(j->ring);
    free_rows(j, &j->filling);
    free_rows(j, &j->flushed);
    row_lists_clear(&j->lists);
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
    const enum status status =
        records_write(records, rows->column, rows->count, &journal->end, err);
    /* Earlier blocks stay valid; frees the space of the partial one. */
    if (status && ftruncate(fd, (off_t)journal->end) == 0)
        fdatasync(fd);
    for (unsigned c = 0; c < journal->columns; c++)
        rows->column[c].used = 0;
    rows->bytes = rows->count[0] = rows->count[1] = 0;
    return status;
}

/* Writes the collected rows. Called with the lock held, which it releases meanwhile. */
static void flush_rows(struct journal *journal)
{
    while (journal->writing && !journal->error.status)
        pthread_cond_wait(&journal->done, &journal->lock);
    if (journal->filling.bytes == 0 || journal->error.status)
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
        j->oldest = j->filling.bytes > 0 ? clock_now() : 0;
        pthread_mutex_unlock(&j->lock);
        struct error error = ERROR_INIT;
        enum status status = some ? workdir_check(j->workdir, &error) : STATUS_OK;
        if (!status && some && fdatasync(fd) && errno != EINVAL && errno != ENOTSUP) {
            status = error_errno(&error, STATUS_FAILED, errno, "fdatasync", "cannot write %s",
                                 PATH_TEXT(j->records.path));
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
    struct copy **ring = calloc(size, sizeof *ring);
    if (!ring)
        return error_memory(err, size * sizeof *ring, "records out of order");
    for (uint64_t i = 0; i < journal->ring_size; i++)
        ring[(next + i) % size] = journal->ring[(next + i) % journal->ring_size];
    free(journal->ring);
    journal->ring = ring;
    journal->ring_size = size;
    return STATUS_OK;
}

static void set_failure(struct failure_row *failure, const struct store_record *record)
{
    *failure = (struct failure_row){.bytes = record->image.bytes,
                                    .error_number = record->failure.error_number,
                                    .source = record->image.source,
                                    .mtime_ns = record->image.mtime_ns,
                                    .inode = record->image.inode,
                                    .ctime_ns = record->image.ctime_ns};
    const char *reason = reason_name(record->failure.reason);
    memcpy(failure->reason, reason, strnlen(reason, sizeof failure->reason));
}

/* Makes a copy; the caller frees it. */
static enum status copy_record(struct copy **out, const struct journal *journal,
                               const struct store_record *record, const void *values,
                               struct error *err)
{
    const bool image = record->failure.reason == REASON_NONE;
    if (record->origin) {
        *out = calloc(1, sizeof **out);
        if (*out)
            (*out)->origin = record->origin;
        return *out ? STATUS_OK : error_memory(err, sizeof **out, "a finished record");
    }
    const void *text[2] = {record->path,
                           image ? (const void *)record->thumbnail : record->failure.message};
    const size_t length[2] = {record->path_length, !image ? strlen(record->failure.message)
                                                   : record->thumbnail ? record->thumbnail_length
                                                                       : 0};
    const size_t value_bytes = image ? journal->value_bytes : 0,
                 size = sizeof **out + value_bytes + length[0] + length[1];
    if (record->path_length > RECORDS_MOST_PATH)
        return error_set(err, STATUS_FAILED, "a path is longer than %u bytes", RECORDS_MOST_PATH);
    struct copy *copy = *out = calloc(1, size);
    if (!copy)
        return error_memory(err, size, "a finished record");
    copy->image = image;
    copy->row.sequence = record->sequence;
    copy->row.thumbnail_size = record->thumbnail_size;
    if (image)
        copy->row.image = record->image;
    else
        set_failure(&copy->row.failure, record);
    if (value_bytes > 0)
        memcpy(copy->bytes, values, value_bytes);
    uint8_t *at = copy->bytes + value_bytes;
    for (int i = 0; i < 2; at += length[i++]) {
        copy->length[i] = length[i];
        if (length[i] > 0)
            memcpy(at, text[i], length[i]);
    }
    return STATUS_OK;
}

static bool append(struct records_bytes *column, const void *bytes, size_t size)
{
    if (size > column->room - column->used) {
        const size_t room = 2 * (column->used + size) + 4096;
        uint8_t *more = realloc(column->bytes, room);
        if (!more)
            return false;
        column->bytes = more;
        column->room = room;
    }
    if (size > 0)
        memcpy(column->bytes + column->used, bytes, size);
    column->used += size;
    return true;
}

static size_t bytes_of(const struct journal *journal, const struct copy *copy)
{
    return sizeof copy->row + (copy->image ? journal->value_bytes : 0) + copy->length[0] +
           copy->length[1];
}

/* Adds a row to the block, unless it exists, and frees it; a row larger than a block gets a block of its
 * own. With the lock held. */
static enum status add_row(struct journal *journal, struct copy *copy, uint64_t *location,
                           struct error *err)
{
    struct rows *rows = &journal->filling;
    const enum records_table table = copy->image ? RECORDS_IMAGES : RECORDS_FAILURES;
    struct records_bytes *text = &rows->column[copy->image ? LOG_IMAGE_PATH : LOG_FAILURE_PATH];
    const uint32_t *width = journal->records.width;
    const uint8_t *at = copy->bytes;
    bool added = true;
    if (copy->origin) {
        *location = copy->origin;
        free(copy);
        return STATUS_OK;
    }
    for (unsigned c = LOG_FEATURE; c < journal->columns && copy->image && added; c++) {
        added = append(&rows->column[c], at, width[c - LOG_FEATURE]);
        at += ((size_t)width[c - LOG_FEATURE] + 3) / 4 * 4;
    }
    for (int i = 0; i < 2 && added; at += copy->length[i++]) {
        added = append(&text[i], at, copy->length[i]);
        copy->row.end[i] = (uint32_t)text[i].used;
    }
    added = added && append(&rows->column[table], &copy->row, sizeof copy->row);
    rows->bytes += bytes_of(journal, copy);
    rows->count[table]++;
    journal->holds_work = true;
    *location = location_of(copy->image ? LOCATION_LOG_IMAGE : LOCATION_LOG_FAILURE,
                            journal->rows[table]++);
    if (journal->oldest == 0) {
        journal->oldest = clock_now();
        pthread_cond_signal(&journal->work); /* it needs a new deadline */
    }
    free(copy);
    return added ? STATUS_OK : error_memory(err, rows->bytes, "a block of the log");
}

/* Makes space for a row; if it has to write the block, it releases the lock meanwhile and returns
 * true. */
static bool make_room(struct journal *journal, const struct copy *copy)
{
    const size_t filled = journal->filling.bytes;
    if (copy->origin || filled == 0 || filled + bytes_of(journal, copy) <= BLOCK_BYTES)
        return false;
    flush_rows(journal);
    return true;
}

/* Processes waiting records in order. With the lock held. */
static enum status take_waiting(struct journal *journal, struct error *err)
{
    enum status status = journal->error.status;
    for (;;) {
        const uint64_t next = atomic_load_explicit(&journal->next, memory_order_relaxed);
        struct copy **waiting = &journal->ring[next % journal->ring_size];
        if (status || !*waiting)
            return status;
        if (make_room(journal, *waiting)) {
            status = pass_error(journal, err);
            continue;
        }
        uint64_t location;
        status = add_row(journal, *waiting, &location, err);
        *waiting = NULL;
        if (!status)
            status = row_lists_add(&journal->lists, location, err);
        atomic_store_explicit(&journal->next, next + 1, memory_order_release);
    }
}

enum status journal_put(struct journal *journal, const struct store_record *record,
                        const void *values, struct error *err)
{
    struct copy *copy = NULL;
    struct error error = ERROR_INIT;
    enum status status = copy_record(&copy, journal, record, values, &error);
    pthread_mutex_lock(&journal->lock);
    if (journal->error.status || status || grow_ring(journal, record->sequence, &error))
        goto out;
    struct copy **place = &journal->ring[record->sequence % journal->ring_size];
    assert(!*place);
    *place = copy;
    copy = NULL;
    journal->tally.by_reason[record->failure.reason]++;
    journal->tally.codes += record->failure.reason == REASON_NONE && record->image.has_code;
    take_waiting(journal, &error);
out:
    if (error.status)
        fail(journal, &error);
    status = pass_error(journal, err);
    pthread_mutex_unlock(&journal->lock);
    free(copy);
    return status;
}

uint64_t journal_count(struct journal *journal)
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

/* Records after a gap are also stored in order. */
enum status journal_stop(struct journal *journal, uint64_t *kept, struct error *err)
{
    pthread_mutex_lock(&journal->lock);
    const uint64_t next = atomic_load_explicit(&journal->next, memory_order_relaxed);
    uint64_t location;
    enum status status = pass_error(journal, err);
    *kept = next;
    for (uint64_t i = 0; !status && i < journal->ring_size; i++) {
        struct copy **waiting = &journal->ring[(next + i) % journal->ring_size], *copy = *waiting;
        if (!copy)
            continue;
        ++*kept;
        *waiting = NULL;
        while (!status && make_room(journal, copy))
            status = pass_error(journal, err);
        if (status)
            free(copy);
        else
            status = add_row(journal, copy, &location, err);
    }
    if (!status)
        status = seal(journal, err);
    pthread_mutex_unlock(&journal->lock);
    return status;
}

enum status journal_finish(struct journal *journal, const struct row_lists **lists,
                           struct journal_tally *tally, struct error *err)
{
    pthread_mutex_lock(&journal->lock);
    for (uint64_t i = 0; i < journal->ring_size; i++)
        assert(journal->error.status || !journal->ring[i]);
    enum status status = seal(journal, err);
    /* The file is written next: it can have their memory. After a failure, a block may still be written. */
    if (!status) {
        free_rows(journal, &journal->filling);
        free_rows(journal, &journal->flushed);
        status = records_rescan(&journal->records, journal->end, err);
    }
    *tally = journal->tally;
    *lists = &journal->lists;
    pthread_mutex_unlock(&journal->lock);
    return status;
}
