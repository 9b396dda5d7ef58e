/* ingest_take.c: from the walk to an opened file.
 *
 * Where opening and reading take long - a cold disk, a file system behind a network - a decode
 * thread that did it would mostly wait. So readers run ahead of the decode threads: they take items
 * in the walk's order, open them and tell the system to read what is in them; the decode threads
 * find opened files, whose first bytes are in memory or on their way. What waits is bounded in
 * number and in the bytes of files, so that a stop, which still finishes it, is quick.
 *
 * Where opening is quick this must cost nothing: one reader then does it for all, several files
 * each time it wakes up. Only while opening is slow does a reader wake the next before it begins.
 */
#include "ingest.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Files that wait, and those being opened: for each decode thread, and at most; as many readers. */
#define EACH_AHEAD  8u
#define MOST_AHEAD  64u
#define BYTES_AHEAD (16u << 20)
/* Asked for of a file: behind that the system reads ahead by itself. */
#define ADVISED_BYTES (1u << 20)
#define HEADER_BYTES  (128u << 10)
/* Opening takes longer than this, on average: it waits for something. A reader that was not given a
 * core for a while must not look like that: no single one counts for more than four times as much.
 */
#define SLOW_NS 100000

struct ahead {
    struct pipeline *pipeline;
    pthread_mutex_t lock;        /* guards what follows */
    pthread_cond_t room, filled; /* what readers and decode threads wait for */
    struct opened ring[MOST_AHEAD];
    unsigned limit, first, count;
    unsigned opening;
    uint64_t bytes;  /* of files in the ring */
    int64_t open_ns; /* what opening takes, a running average */
    unsigned running;
    bool starting, ended, aborted;
    pthread_t thread[MOST_AHEAD];
    unsigned started;
};

static double seconds_since(int64_t start)
{
    return (double)(clock_now() - start) * 1e-9;
}

/* --- the walk -------------------------------------------------------------------------------- */

static struct picture *picture_new(struct pipeline *pipeline, const struct walk_item *item)
{
    struct picture *picture = calloc(1, sizeof *picture);
    char *path = malloc((size_t)item->path_length + 1);
    if (!picture || !path) {
        free(picture);
        free(path);
        return NULL;
    }
    memcpy(path, item->path, (size_t)item->path_length + 1);
    picture->pipeline = pipeline;
    picture->path = path;
    pthread_mutex_init(&picture->lock, NULL);
    atomic_init(&picture->holders, 1);
    picture->record = (struct store_record){
        .sequence = item->sequence,
        .source = item->source,
        .path = path,
        .path_length = item->path_length,
        .bytes = item->bytes,
        .mtime_ns = item->mtime_ns,
        .failure = item->failure,
        .orientation = 1,
    };
    return picture;
}

/* Is there no room for more pictures on their way? With the walk's lock. */
static bool window_is_full(struct pipeline *pipeline)
{
    return pipeline->store &&
           pipeline->handed_out >= store_written(pipeline->store) + pipeline->window;
}

/* The next picture, or NULL at the end, on a stop and on an error; without `wait`, also where
 * others are to be finished first: who holds pictures must not wait for that. */
static struct picture *next_picture(struct worker *worker, bool wait)
{
    struct pipeline *pipeline = worker->pipeline;
    struct error err = ERROR_INIT;
    struct walk_item item;
    struct picture *picture = NULL;
    int64_t start = clock_now();
    pthread_mutex_lock(&pipeline->walk_lock);
    while (wait && stop_requested(pipeline->stop) == STOP_NONE && !pipeline->again &&
           window_is_full(pipeline)) {
        atomic_fetch_add(&pipeline->window_waits, 1);
        pthread_cond_wait(&pipeline->window_moved, &pipeline->walk_lock);
        atomic_fetch_sub(&pipeline->window_waits, 1);
    }
    worker->blocked += seconds_since(start);
    if (pipeline->again && stop_requested(pipeline->stop) != STOP_ERROR) {
        /* Even when a stop is asked for: it is under way. */
        picture = pipeline->again;
        pipeline->again = picture->next;
        pthread_mutex_unlock(&pipeline->walk_lock);
        return picture;
    }
    start = clock_now();
    enum status status = stop_requested(pipeline->stop) != STOP_NONE || window_is_full(pipeline)
                             ? STATUS_END
                             : walk_next(pipeline->walk, &item, &err);
    if (status == STATUS_OK) {
        picture = picture_new(pipeline, &item);
        if (!picture)
            status = error_memory(&err, sizeof *picture, "a picture");
    }
    if (status == STATUS_OK) {
        pipeline->handed_out++;
        struct store_record prior;
        bool resumed = false;
        if (pipeline->store && item.failure.reason == REASON_NONE &&
            store_prior(pipeline->store, item.source, item.path, item.path_length, item.bytes,
                        item.mtime_ns, &prior, &resumed)) {
            prior.sequence = item.sequence;
            prior.path = picture->path;
            picture->record = prior;
            picture->pixels = (uint64_t)prior.width * prior.height;
            picture->resumed = resumed;
            picture->unchanged = !resumed;
        }
    }
    pthread_mutex_unlock(&pipeline->walk_lock);
    worker->starved += seconds_since(start);
    if (status == STATUS_OK)
        return picture;
    picture_free(picture);
    if (status != STATUS_END)
        ingest_fail(pipeline, &err);
    return NULL;
}

static void open_picture(struct opened *opened, struct pipeline *pipeline, struct picture *picture)
{
    *opened = (struct opened){picture, -1};
    if (picture->record.failure.reason != REASON_NONE || picture->resumed || picture->unchanged)
        return;
    opened->fd = walk_open_file(pipeline->walk, picture->record.source, picture->path);
    int code = errno;
    if (opened->fd < 0)
        failure_errno(&picture->record.failure,
                      code == ENOENT || code == ENOTDIR ? REASON_VANISHED : REASON_UNREADABLE, code,
                      "cannot open");
}

/* --- readers --------------------------------------------------------------------------------- */

static bool has_room(const struct ahead *ahead)
{
    return ahead->count + ahead->opening < ahead->limit && ahead->bytes < BYTES_AHEAD;
}

static void advise(const struct opened *opened, bool headers_only)
{
    const uint64_t most = headers_only ? HEADER_BYTES : ADVISED_BYTES;
    const uint64_t bytes = opened->picture->record.bytes;
    if (opened->fd >= 0)
        posix_fadvise(opened->fd, 0, (off_t)(bytes < most ? bytes : most), POSIX_FADV_WILLNEED);
}

static void *reader_main(void *argument)
{
    struct ahead *ahead = argument;
    struct pipeline *pipeline = ahead->pipeline;
    struct worker reader = {.pipeline = pipeline};
    pthread_mutex_lock(&ahead->lock);
    for (;;) {
        while (!ahead->ended && !ahead->aborted && !has_room(ahead))
            pthread_cond_wait(&ahead->room, &ahead->lock);
        if (ahead->ended || ahead->aborted)
            break;
        ahead->opening++;
        if (ahead->open_ns > SLOW_NS && has_room(ahead))
            pthread_cond_signal(&ahead->room);
        pthread_mutex_unlock(&ahead->lock);
        struct opened opened;
        struct picture *picture = next_picture(&reader, true);
        int64_t took = clock_now();
        if (picture) {
            open_picture(&opened, pipeline, picture);
            advise(&opened, pipeline->config->dry_run);
        }
        took = clock_now() - took;
        pthread_mutex_lock(&ahead->lock);
        ahead->opening--;
        if (!picture)
            break;
        ahead->open_ns += ((took < 4 * SLOW_NS ? took : 4 * SLOW_NS) - ahead->open_ns) / 8;
        ahead->ring[(ahead->first + ahead->count++) % MOST_AHEAD] = opened;
        ahead->bytes += picture->record.bytes;
        pthread_cond_signal(&ahead->filled);
    }
    ahead->ended = true;
    if (--ahead->running == 0)
        pthread_cond_broadcast(&ahead->filled);
    pthread_cond_broadcast(&ahead->room);
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

enum status ahead_open(struct ahead **out, struct pipeline *pipeline, struct error *err)
{
    const struct ingest_config *config = pipeline->config;
    struct ahead *ahead = *out = calloc(1, sizeof *ahead);
    if (!ahead)
        return error_memory(err, sizeof *ahead, "files opened ahead");
    ahead->pipeline = pipeline;
    ahead->starting = true;
    ahead->limit =
        config->threads < MOST_AHEAD / EACH_AHEAD ? config->threads * EACH_AHEAD : MOST_AHEAD;
    if (ahead->limit / config->threads > pipeline->open_files)
        ahead->limit = pipeline->open_files * config->threads;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->room, NULL);
    pthread_cond_init(&ahead->filled, NULL);
    return STATUS_OK;
}

void ahead_start(struct ahead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    int code = 0;
    while (code == 0 && ahead->started < ahead->limit) {
        code = pthread_create(&ahead->thread[ahead->started], NULL, reader_main, ahead);
        if (code == 0) {
            ahead->started++;
            ahead->running++;
        }
    }
    ahead->starting = false;
    pthread_cond_broadcast(&ahead->filled);
    pthread_mutex_unlock(&ahead->lock);
}

void ahead_abort(struct ahead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    ahead->aborted = true;
    pthread_cond_broadcast(&ahead->room);
    pthread_cond_broadcast(&ahead->filled);
    pthread_mutex_unlock(&ahead->lock);
}

void ahead_join(struct ahead *ahead)
{
    ahead_abort(ahead);
    for (unsigned i = 0; i < ahead->started; i++)
        pthread_join(ahead->thread[i], NULL);
    ahead->started = 0;
    for (; ahead->count > 0; ahead->first++, ahead->count--) {
        struct opened *opened = &ahead->ring[ahead->first % MOST_AHEAD];
        if (opened->fd >= 0)
            close(opened->fd);
        picture_free(opened->picture);
    }
}

void ahead_close(struct ahead **ahead)
{
    if (!*ahead)
        return;
    pthread_mutex_destroy(&(*ahead)->lock);
    pthread_cond_destroy(&(*ahead)->room);
    pthread_cond_destroy(&(*ahead)->filled);
    free(*ahead);
    *ahead = NULL;
}

/* --- decode threads -------------------------------------------------------------------------- */

/* What a reader has opened; with `wait` false only where no reader is running any more. */
static bool take_ahead(struct opened *opened, struct worker *worker, bool wait)
{
    struct pipeline *pipeline = worker->pipeline;
    struct ahead *ahead = pipeline->ahead;
    int64_t start = clock_now();
    pthread_mutex_lock(&ahead->lock);
    while (wait && ahead->count == 0 && !ahead->aborted && (ahead->starting || ahead->running > 0))
        pthread_cond_wait(&ahead->filled, &ahead->lock);
    const bool taken = ahead->count > 0 && !ahead->aborted;
    if (taken) {
        *opened = ahead->ring[ahead->first];
        ahead->first = (ahead->first + 1) % MOST_AHEAD;
        ahead->count--;
        ahead->bytes -= opened->picture->record.bytes;
        if (ahead->count + ahead->opening <= ahead->limit / 2)
            pthread_cond_signal(&ahead->room);
    }
    pthread_mutex_unlock(&ahead->lock);
    *(atomic_load(&pipeline->window_waits) > 0 ? &worker->blocked : &worker->starved) +=
        seconds_since(start);
    return taken;
}

bool ingest_take(struct opened *opened, struct worker *worker, bool wait)
{
    if (take_ahead(opened, worker, wait))
        return true;
    /* At the end of the walk; also pictures that a device has lost then. */
    struct picture *picture = wait ? next_picture(worker, true) : NULL;
    if (picture)
        open_picture(opened, worker->pipeline, picture);
    return picture != NULL;
}
