/* readers.c: opening files ahead of the decode threads.
 *
 * On a cold disk or a network file system, decode threads that open files would mostly wait. So
 * readers open files ahead and request readahead of their first bytes. The queue is limited in
 * files and bytes, so that a stop, which still processes it, is quick.
 *
 * If opening is fast, this must cost nothing: a single reader opens dozens of files each time it
 * wakes up, and a decode thread that finds none opens one itself, so any number of decode threads
 * stays busy. Only if opening is slow does each reader first wake the next one, and do decode
 * threads wait. `struct queue` is unsuitable: it wakes a sender for each item received. */
#include "ingest/readers.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/path.h"
#include "result/journal.h"
#include "result/prior.h"
#include "sources/bytes.h"

#include <stdlib.h>
#include <string.h>

/* Files that are open or being opened: per decode thread, and in total. */
#define EACH_AHEAD  32u
#define MOST_AHEAD  256u
#define BYTES_AHEAD (16u << 20)
/* Readers: per decode thread, and in total. */
#define EACH_READERS 8u
#define MOST_READERS 64u
/* Readahead requested per file; beyond that the system reads ahead by itself. */
#define ADVISED_BYTES (1u << 20)
#define HEADER_BYTES  (128u << 10)
/* Above this average, opening is slow. A sample counts for at most four times the threshold, so
 * that a reader that was not scheduled for a while does not look slow. */
#define SLOW_NS 100000

struct readers {
    struct ingest_job *job;
    const struct picture_sink *sink;
    struct store *store;

    pthread_mutex_t walk_lock; /* guards the walk, the store's earlier work and the members below */
    pthread_cond_t window_moved;
    struct walk *walk;
    enum status (*chosen)(void *context, struct walk_item *item); /* NULL: all of the walk */
    void *context;
    uint64_t window, handed_out;
    uint64_t limit_items, looked_at; /* items of the walk; after the limit, only those in the
                                      * file are taken */
    struct picture *again;           /* to be decoded again after a device failed */
    struct picture *next;            /* of the walk; images of the file before it come first */
    bool walked;                     /* end of the walk */
    struct bytes unseen;      /* a directory that the walk could not read; "": the source's root */
    int unseen_source;        /* -1: none */
    uint64_t kept;            /* images kept because the walk could not read their files */
    atomic_uint window_waits; /* threads waiting for window_moved; readable by any thread */

    pthread_mutex_t lock;              /* guards the following */
    pthread_cond_t room, filled;       /* for readers and decode threads */
    struct picture *queue[MOST_AHEAD]; /* circular */
    unsigned limit, first, count;
    unsigned opening;
    bool called;     /* a reader was woken */
    uint64_t bytes;  /* size of the files in the queue */
    int64_t open_ns; /* running average of the time to open a file */
    unsigned running;
    bool starting, ended, aborted;
    pthread_t thread[MOST_READERS];
    unsigned wanted, started;
};

/* --- the walk -------------------------------------------------------------------------------- */

/* Is the number of pictures in flight at its limit? With the walk's lock. */
static bool window_is_full(struct readers *readers)
{
    return readers->store &&
           readers->handed_out >= journal_count(store_journal(readers->store)) + readers->window;
}

/* Takes the record of an earlier run. */
static void take_prior(struct picture *picture, const struct store_record *prior)
{
    struct store_record *record = &picture->record;
    const uint64_t sequence = record->sequence;
    *record = *prior;
    record->sequence = sequence;
    record->path = picture->path;
    picture->pixels = (uint64_t)prior->image.width * prior->image.height;
    picture->resumed = location_in_log(prior->origin);
    picture->unchanged = !picture->resumed;
}

/* Looks up an item of an unread source in the existing file. With the walk's lock. */
static enum status look_up_unread(struct readers *readers, struct picture *picture,
                                  struct error *err)
{
    struct store_record stored;
    enum status status = prior_at(store_prior(readers->store), picture->where, &stored, err);
    if (status == STATUS_OK)
        take_prior(picture, &stored);
    return status;
}

/* Looks up the record of an earlier run. With the walk's lock. */
static enum status look_up_picture(struct readers *readers, struct picture *picture,
                                   struct error *err)
{
    const struct store_record *record = &picture->record;
    struct store_record prior;
    if (!readers->store || record->failure.reason != REASON_NONE ||
        !prior_find(store_prior(readers->store), record->image.source, picture->path,
                    record->path_length, record->image.bytes, record->image.mtime_ns, &prior))
        return STATUS_OK;
    const bool other = record->image.inode && prior.image.inode &&
                       (record->image.inode != prior.image.inode ||
                        record->image.ctime_ns != prior.image.ctime_ns);
    if (!other && !(readers->job->config->checksum && prior.failure.reason == REASON_NONE)) {
        take_prior(picture, &prior);
        return STATUS_OK;
    }
    picture->prior = malloc(sizeof prior);
    if (!picture->prior)
        return error_memory(err, sizeof prior, "a picture");
    *picture->prior = prior;
    return STATUS_OK;
}

/* Makes a picture from the file's record of an item that the walk could not read. With the walk's
 * lock. */
static enum status keep_unseen(struct picture **out, struct readers *readers,
                               const struct store_record *record, struct error *err)
{
    const struct walk_item item = {.source = record->image.source,
                                   .path = record->path,
                                   .path_length = record->path_length,
                                   .entry.where = record->origin};
    struct picture *picture = picture_new(readers->sink, &item);
    if (!picture)
        return error_memory(err, sizeof *picture, "a picture");
    take_prior(picture, record);
    picture->resumed = false;
    picture->unchanged = true; /* even if a log has it: it is not looked up again */
    readers->kept += picture->record.failure.reason == REASON_NONE;
    pthread_mutex_lock(&readers->job->lock);
    readers->job->progress.total++;
    pthread_mutex_unlock(&readers->job->lock);
    *out = picture;
    return STATUS_OK;
}

/* Checks that the file's records of an unreadable item can be kept: not if a feature is added,
 * since that needs the images. */
static enum status check_unseen(struct readers *readers, const struct picture *picture,
                                struct error *err)
{
    const struct store_record *record = &picture->record;
    uint64_t count = 0;
    if (store_updates(readers->store))
        return STATUS_OK;
    if (store_count_at(&count, readers->store, record->image.source,
                       strcmp(picture->path, "./") == 0 ? "" : picture->path, err) != STATUS_OK)
        return STATUS_FAILED;
    return count == 0 ? STATUS_OK
                      : error_set(err, STATUS_FAILED,
                                  "%s: %s; the file has images from it: a feature can be added "
                                  "once they can be read",
                                  PATH_TEXT(picture->path), record->failure.message);
}

/* Stores the walk's next item in readers->next, if there is one. With the walk's lock. */
static enum status walk_on(struct readers *readers, struct error *err)
{
    struct walk_item item;
    const enum status status = readers->chosen ? readers->chosen(readers->context, &item)
                                               : walk_next(readers->walk, &item, err);
    readers->walked = status == STATUS_END;
    if (status != STATUS_OK)
        return readers->walked ? STATUS_OK : status;
    readers->next = picture_new(readers->sink, &item);
    return readers->next ? STATUS_OK : error_memory(err, sizeof *readers->next, "a picture");
}

/* The file's next record below an unreadable directory, before readers->next; or STATUS_END. With
 * the walk's lock. */
static enum status next_below(struct picture **out, struct readers *readers, struct error *err)
{
    const struct picture *next = readers->next;
    const struct bytes *unseen = &readers->unseen;
    struct store_record record;
    if (readers->unseen_source < 0)
        return STATUS_END;
    const bool same = next && next->record.image.source == readers->unseen_source;
    if (prior_next_below(store_prior(readers->store), (uint16_t)readers->unseen_source,
                         unseen->data, same ? next->path : NULL, &record))
        return keep_unseen(out, readers, &record, err);
    if (!same || strncmp(next->path, unseen->data, unseen->length) != 0)
        readers->unseen_source = -1;
    return STATUS_END;
}

/* Is readers->next an unreadable directory? With the walk's lock. */
static enum status begin_unseen(bool *begun, struct readers *readers, struct error *err)
{
    const struct picture *next = readers->next;
    const uint32_t length = next->record.path_length;
    bool all;
    walk_count_of(readers->walk, next->record.image.source, &all);
    *begun = readers->store && store_updates(readers->store) && readers->unseen_source < 0 &&
             (all || (entry_is_unseen(&next->record.failure) && next->path[length - 1] == '/'));
    if (!*begun)
        return STATUS_OK;
    readers->unseen_source = next->record.image.source;
    bytes_cut(&readers->unseen, 0);
    return bytes_append(&readers->unseen, next->path, all ? 0 : length, err);
}

/* Looks up the earlier run's record of an item of the walk. With the walk's lock. */
static enum status look_up(struct readers *readers, struct picture *picture, struct error *err)
{
    struct store_record *record = &picture->record, kept;
    if (picture->unchanged)
        return STATUS_OK;
    if (walk_is_unread(readers->walk, record->image.source))
        return look_up_unread(readers, picture, err);
    if (!readers->store || !entry_is_unseen(&record->failure))
        return look_up_picture(readers, picture, err);
    if (check_unseen(readers, picture, err) != STATUS_OK)
        return STATUS_FAILED;
    /* Its image stays in the file, in addition to the failure. */
    return prior_find_unseen(store_prior(readers->store), record->image.source, picture->path,
                             record->path_length, &kept)
               ? keep_unseen(&readers->next, readers, &kept, err)
               : STATUS_OK;
}

/* The next picture of the walk, or of the file's records of items that the walk could not read.
 * With the walk's lock. */
static enum status walk_picture(struct picture **out, struct readers *readers, struct error *err)
{
    struct picture *picture = NULL;
    bool begun;
    if (stop_requested(readers->job->stop) != STOP_NONE || window_is_full(readers))
        return STATUS_END;
    for (;;) {
        enum status status = readers->next || readers->walked ? STATUS_OK : walk_on(readers, err);
        if (status != STATUS_OK)
            return status;
        status = next_below(&picture, readers, err);
        if (status == STATUS_OK)
            break;
        if (status != STATUS_END || !readers->next)
            return status;
        status = begin_unseen(&begun, readers, err);
        if (status != STATUS_OK)
            return status;
        if (begun)
            continue;
        picture = readers->next;
        readers->next = NULL;
        const bool unread = walk_is_unread(readers->walk, picture->record.image.source);
        status = look_up(readers, picture, err);
        if (status != STATUS_OK) {
            picture_free(picture);
            return status;
        }
        if (unread || readers->looked_at++ < readers->limit_items || picture->unchanged ||
            picture->prior)
            break;
        picture_free(picture);
    }
    picture->record.sequence = readers->handed_out++;
    *out = picture;
    return STATUS_OK;
}

/* A picture lost by a device, even after a stop: it is in flight. With the walk's lock. */
static struct picture *take_again(struct readers *readers)
{
    struct picture *picture = readers->again;
    if (!picture || stop_requested(readers->job->stop) == STOP_ERROR)
        return NULL;
    readers->again = picture->next;
    return picture;
}

/* Does the file differ from the bytes of the earlier run? false if it cannot be read. */
static bool bytes_differ(const struct picture *picture)
{
    uint64_t digest[2];
    return blob_digest(&picture->blob, digest, NULL) &&
           memcmp(digest, picture->prior->image.digest, sizeof digest) != 0;
}

/* Size and time are unchanged, but inode or change time are not: uses the earlier record only if
 * the bytes are equal. A failure has no digest, so such a file is read as a new one. */
static void compare_with_prior(struct picture *picture)
{
    struct store_record *prior = picture->prior;
    const bool opened = blob_is_open(&picture->blob), image = prior->failure.reason == REASON_NONE;
    picture->compared = opened;
    picture->differs = opened && image && bytes_differ(picture);
    if (!opened || (image && !picture->differs)) {
        const struct store_record now = picture->record;
        take_prior(picture, prior);
        if (opened) {
            picture->bytes_read = prior->image.bytes;
            picture->record.image.inode = now.image.inode;
            picture->record.image.ctime_ns = now.image.ctime_ns;
            picture->record.restated = true;
        }
        blob_close(&picture->blob);
    }
    free(prior);
    picture->prior = NULL;
}

static void open_picture(struct readers *readers, struct picture *picture)
{
    struct store_record *record = &picture->record;
    if (record->failure.reason != REASON_NONE || picture->resumed || picture->unchanged ||
        picture->once)
        return;
    picture->once = walk_reads_once(readers->walk, record->image.source);
    const struct source_member member = {picture->path, picture->where, record->image.bytes,
                                         record->image.mtime_ns};
    struct stat st;
    walk_open_member(&picture->blob, readers->walk, record->image.source, &member,
                     &record->failure);
    if (picture->blob.fd >= 0 && fstat(picture->blob.fd, &st) == 0) {
        record->image.inode = st.st_ino;
        record->image.ctime_ns = clock_file_time(&st.st_ctim);
    }
    if (picture->prior)
        compare_with_prior(picture);
}

/* The next picture; with `wait` waits while the window is full. NULL at the end, after a stop or an
 * error, and without `wait` if the window is full. It is open if its source is read in order, else
 * *opened is false. */
static struct picture *next_picture(bool *opened, struct readers *readers,
                                    struct stage_times *times, bool wait)
{
    struct stop *stop = readers->job->stop;
    struct error err = ERROR_INIT;
    int64_t start = clock_now();
    pthread_mutex_lock(&readers->walk_lock);
    while (wait && stop_requested(stop) == STOP_NONE && !readers->again &&
           window_is_full(readers)) {
        /* First make the wait visible to readers_wake, then check again. */
        atomic_fetch_add(&readers->window_waits, 1);
        if (window_is_full(readers))
            pthread_cond_wait(&readers->window_moved, &readers->walk_lock);
        atomic_fetch_sub(&readers->window_waits, 1);
    }
    times->blocked += clock_seconds_since(start);
    start = clock_now();
    struct picture *picture = take_again(readers);
    enum status status = picture ? STATUS_OK : walk_picture(&picture, readers, &err);
    *opened = picture && walk_opens_in_order(picture->where);
    if (*opened)
        open_picture(readers, picture);
    pthread_mutex_unlock(&readers->walk_lock);
    times->starved += clock_seconds_since(start);
    if (status != STATUS_OK && status != STATUS_END)
        ingest_job_fail(readers->job, &err);
    return picture;
}

/* --- ahead of the decode threads ------------------------------------------------------------- */

static bool has_room(const struct readers *readers)
{
    return readers->count + readers->opening < readers->limit && readers->bytes < BYTES_AHEAD;
}

/* With the lock held. */
static void note_opening(struct readers *readers, int64_t took)
{
    readers->open_ns += ((took < 4 * SLOW_NS ? took : 4 * SLOW_NS) - readers->open_ns) / 8;
}

static void *reader_main(void *argument)
{
    struct readers *readers = argument;
    const uint64_t advised = readers->job->config->dry_run ? HEADER_BYTES : ADVISED_BYTES;
    struct stage_times times = {0}; /* only those of decode threads are reported */
    pthread_mutex_lock(&readers->lock);
    for (;;) {
        /* This reader is awake now. */
        readers->called = false;
        while (!readers->ended && !readers->aborted && !has_room(readers)) {
            pthread_cond_wait(&readers->room, &readers->lock);
            readers->called = false;
        }
        if (readers->ended || readers->aborted)
            break;
        readers->opening++;
        if (readers->open_ns > SLOW_NS && has_room(readers))
            pthread_cond_signal(&readers->room);
        pthread_mutex_unlock(&readers->lock);
        bool opened;
        struct picture *picture = next_picture(&opened, readers, &times, true);
        int64_t took = clock_now();
        if (picture) {
            if (!opened)
                open_picture(readers, picture);
            blob_advise(&picture->blob, advised);
        }
        took = clock_now() - took;
        pthread_mutex_lock(&readers->lock);
        readers->opening--;
        if (!picture)
            break;
        note_opening(readers, took);
        readers->queue[(readers->first + readers->count++) % MOST_AHEAD] = picture;
        readers->bytes += picture->record.image.bytes;
        pthread_cond_signal(&readers->filled);
    }
    readers->ended = true;
    if (--readers->running == 0)
        pthread_cond_broadcast(&readers->filled);
    pthread_cond_broadcast(&readers->room);
    pthread_mutex_unlock(&readers->lock);
    return NULL;
}

/* Wakes a reader if there is enough to do; awake readers continue by themselves. With the lock. */
static void call_reader(struct readers *readers)
{
    const bool slow = readers->open_ns > SLOW_NS;
    const bool low = readers->opening == 0 && readers->count <= readers->limit / 4;
    if (readers->called || !has_room(readers) || !(slow || low))
        return;
    readers->called = true;
    pthread_cond_signal(&readers->room);
}

/* The oldest picture of the queue. With the lock. */
static struct picture *pop_queue(struct readers *readers)
{
    struct picture *picture = readers->queue[readers->first];
    readers->first = (readers->first + 1) % MOST_AHEAD;
    readers->count--;
    readers->bytes -= picture->record.image.bytes;
    return picture;
}

/* A picture opened by a reader; NULL if no reader runs, without `wait` if none is ready, or if the
 * caller should open one itself: *quick. */
static struct picture *take_ahead(bool *quick, struct readers *readers, struct stage_times *times,
                                  bool wait)
{
    struct picture *picture = NULL;
    int64_t start = clock_now();
    pthread_mutex_lock(&readers->lock);
    *quick = *quick && readers->open_ns <= SLOW_NS && !readers->starting && !readers->ended;
    while (wait && !*quick && readers->count == 0 && !readers->aborted &&
           (readers->starting || readers->running > 0))
        pthread_cond_wait(&readers->filled, &readers->lock);
    if (readers->count > 0 && !readers->aborted) {
        picture = pop_queue(readers);
        call_reader(readers);
    }
    pthread_mutex_unlock(&readers->lock);
    *(atomic_load(&readers->window_waits) > 0 ? &times->blocked : &times->starved) +=
        clock_seconds_since(start);
    return picture;
}

/* The next picture, opened on the caller's thread. NULL as in next_picture. */
static struct picture *take_self(struct readers *readers, struct stage_times *times, bool wait)
{
    bool opened;
    struct picture *picture = next_picture(&opened, readers, times, wait);
    if (!picture || opened)
        return picture;
    const int64_t start = clock_now();
    open_picture(readers, picture);
    const int64_t took = clock_now() - start;
    pthread_mutex_lock(&readers->lock);
    note_opening(readers, took);
    pthread_mutex_unlock(&readers->lock);
    return picture;
}

struct picture *readers_take(void *context, struct stage_times *times, bool wait)
{
    struct readers *readers = context;
    bool quick = wait;
    struct picture *picture = take_ahead(&quick, readers, times, wait);
    if (picture || !wait)
        return picture;
    if (quick) {
        /* Do not wait for the window, which may depend on what a reader is about to deliver. */
        picture = take_self(readers, times, false);
        if (picture)
            return picture;
        quick = false;
        picture = take_ahead(&quick, readers, times, true);
    }
    /* At the end of the walk, or for pictures that a device lost then. */
    return picture ? picture : take_self(readers, times, true);
}

/* --- interface ------------------------------------------------------------------------------- */

enum status readers_open(struct readers **out, struct ingest_job *job, struct walk *walk,
                         struct store *store, const struct picture_sink *sink, uint64_t window,
                         unsigned open_files, struct error *err)
{
    const unsigned threads = job->config->threads;
    struct readers *readers = *out = calloc(1, sizeof *readers);
    if (!readers)
        return error_memory(err, sizeof *readers, "files opened ahead");
    readers->job = job;
    readers->walk = walk;
    readers->store = store;
    readers->sink = sink;
    readers->window = window;
    readers->limit_items = job->config->walk.limit ? job->config->walk.limit : UINT64_MAX;
    readers->unseen_source = -1;
    readers->starting = true;
    readers->limit = threads < MOST_AHEAD / EACH_AHEAD ? threads * EACH_AHEAD : MOST_AHEAD;
    if (readers->limit / threads > open_files)
        readers->limit = open_files * threads;
    readers->wanted = threads < MOST_READERS / EACH_READERS ? threads * EACH_READERS : MOST_READERS;
    if (readers->wanted > readers->limit)
        readers->wanted = readers->limit;
    lock_init_short(&readers->walk_lock);
    pthread_cond_init(&readers->window_moved, NULL);
    lock_init_short(&readers->lock);
    pthread_cond_init(&readers->room, NULL);
    pthread_cond_init(&readers->filled, NULL);
    return STATUS_OK;
}

void readers_choose(struct readers *readers,
                    enum status (*next)(void *context, struct walk_item *item), void *context)
{
    readers->chosen = next;
    readers->context = context;
    readers->limit_items = UINT64_MAX;
}

void readers_start(struct readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    int code = 0;
    while (code == 0 && readers->started < readers->wanted) {
        code = pthread_create(&readers->thread[readers->started], NULL, reader_main, readers);
        if (code == 0) {
            readers->started++;
            readers->running++;
        }
    }
    readers->starting = false;
    pthread_cond_broadcast(&readers->filled);
    pthread_mutex_unlock(&readers->lock);
}

void readers_again(struct readers *readers, struct picture *picture)
{
    pthread_mutex_lock(&readers->walk_lock);
    picture->next = readers->again;
    readers->again = picture;
    pthread_cond_broadcast(&readers->window_moved);
    pthread_mutex_unlock(&readers->walk_lock);
}

bool readers_have_again(struct readers *readers)
{
    pthread_mutex_lock(&readers->walk_lock);
    const bool some = readers->again && stop_requested(readers->job->stop) != STOP_ERROR;
    pthread_mutex_unlock(&readers->walk_lock);
    return some;
}

uint64_t readers_kept(const struct readers *readers)
{
    return readers->kept;
}

static void wake_waiting(struct readers *readers)
{
    pthread_mutex_lock(&readers->walk_lock);
    pthread_cond_broadcast(&readers->window_moved);
    pthread_mutex_unlock(&readers->walk_lock);
}

void readers_wake(struct readers *readers)
{
    /* Either it sees the waiting thread, or it is ordered before it, which then sees the changes
     * made before. */
    if (atomic_fetch_add(&readers->window_waits, 0) > 0)
        wake_waiting(readers);
}

void readers_abort(struct readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    readers->aborted = true;
    pthread_cond_broadcast(&readers->room);
    pthread_cond_broadcast(&readers->filled);
    pthread_mutex_unlock(&readers->lock);
    wake_waiting(readers);
}

void readers_join(struct readers *readers)
{
    readers_abort(readers);
    for (unsigned i = 0; i < readers->started; i++)
        pthread_join(readers->thread[i], NULL);
    readers->started = 0;
    while (readers->count > 0)
        picture_free(pop_queue(readers));
}

void readers_close(struct readers **out)
{
    struct readers *readers = *out;
    if (!readers)
        return;
    picture_free_list(readers->again);
    picture_free(readers->next);
    bytes_clear(&readers->unseen);
    pthread_mutex_destroy(&readers->walk_lock);
    pthread_cond_destroy(&readers->window_moved);
    pthread_mutex_destroy(&readers->lock);
    pthread_cond_destroy(&readers->room);
    pthread_cond_destroy(&readers->filled);
    free(readers);
    *out = NULL;
}
