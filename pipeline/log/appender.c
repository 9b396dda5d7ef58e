/* appender.c: two buffers, swapped: one is filled by the callers, the other is written.
 *
 * The thread wakes when a good piece has come together, when somebody wants a sync, or when the
 * oldest byte that is not durable is a second old. All fields are guarded by `lock` but those of
 * the buffer being written, which is the thread's. */
#include "log/appender.h"
#include "base/clock.h"
#include "base/output.h"
#include "base/path.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (4u << 20)
#define PIECE_BYTES  (1u << 20)
#define SYNC_AFTER   1000000000

struct buffer {
    uint8_t *data;
    size_t length, capacity;
};

struct appender {
    int fd;
    const struct workdir *workdir;
    char *path;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work; /* for the thread */
    pthread_cond_t done; /* for callers: room, or a sync has ended */
    struct buffer filling, writing;
    uint64_t added;   /* offset of the next byte */
    uint64_t durable; /* what lies before this survives a crash */
    uint64_t wanted;  /* callers wait until this is durable */
    int64_t oldest;   /* when the first byte that is not durable came; 0: none */
    bool full;        /* a caller waits for room */
    bool closing;
    struct error error; /* status STATUS_OK: none yet */
};

static void *append_thread(void *context)
{
    struct appender *a = context;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (!a->closing && !a->full && a->filling.length < PIECE_BYTES &&
               a->wanted <= a->durable) {
            if (a->oldest == 0)
                pthread_cond_wait(&a->work, &a->lock);
            else if (clock_now() >= a->oldest + SYNC_AFTER)
                break;
            else
                cond_wait_until(&a->work, &a->lock, a->oldest + SYNC_AFTER);
        }
        bool last = a->closing;
        bool sync =
            last || a->wanted > a->durable || (a->oldest && clock_now() >= a->oldest + SYNC_AFTER);
        if (last && a->durable == a->added)
            break;
        struct buffer swap = a->writing;
        a->writing = a->filling;
        a->filling = swap;
        a->filling.length = 0;
        a->full = false;
        uint64_t written = a->added;
        /* What comes while this is synced is younger. */
        if (sync)
            a->oldest = 0;
        pthread_cond_broadcast(&a->done);
        pthread_mutex_unlock(&a->lock);

        struct error error = ERROR_INIT;
        enum status status = workdir_check(a->workdir, &error);
        const bool ours = status == STATUS_OK;
        if (ours)
            status = write_all(a->fd, a->writing.data, a->writing.length, a->path, &error);
        if (!status && sync && fdatasync(a->fd) && errno != EINVAL && errno != ENOTSUP) {
            char shown[256];
            status = error_errno(&error, STATUS_FAILED, errno, "fdatasync", "cannot write %s",
                                 path_for_message(shown, sizeof shown, a->path));
        }
        if (status && ours) {
            /* What was written before is worth keeping all the same. */
            fdatasync(a->fd);
            size_t length = strlen(error.sentence);
            snprintf(error.sentence + length, sizeof error.sentence - length,
                     " (finished work is kept: the same command goes on from there)");
        }

        pthread_mutex_lock(&a->lock);
        if (!status && sync)
            a->durable = written;
        if (status) {
            a->error = error;
            break;
        }
        pthread_cond_broadcast(&a->done);
    }
    pthread_cond_broadcast(&a->done);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

static void appender_free(struct appender *a)
{
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->work);
    pthread_cond_destroy(&a->done);
    free(a->filling.data);
    free(a->writing.data);
    free(a->path);
    free(a);
}

enum status appender_open(struct appender **out, int fd, uint64_t offset,
                          const struct workdir *workdir, const char *path, struct error *err)
{
    *out = NULL;
    struct appender *a = calloc(1, sizeof *a);
    if (!a)
        return error_memory(err, sizeof *a, "the log's writer");
    a->fd = fd;
    a->workdir = workdir;
    a->added = a->durable = offset;
    a->path = strdup(path);
    a->filling.data = malloc(BUFFER_BYTES);
    a->writing.data = malloc(BUFFER_BYTES);
    a->filling.capacity = a->writing.capacity = BUFFER_BYTES;
    pthread_mutex_init(&a->lock, NULL);
    cond_init_monotonic(&a->work);
    cond_init_monotonic(&a->done);
    if (!a->path || !a->filling.data || !a->writing.data) {
        error_memory(err, 2 * BUFFER_BYTES, "the log's writer");
        goto out;
    }
    int failed = pthread_create(&a->thread, NULL, append_thread, a);
    if (failed) {
        error_errno(err, STATUS_FAILED, failed, "pthread_create", "cannot start the log's writer");
        goto out;
    }
    *out = a;
out:
    if (!*out)
        appender_free(a);
    return *out ? STATUS_OK : STATUS_FAILED;
}

static enum status pass_error(const struct appender *a, struct error *err)
{
    if (a->error.status && err)
        *err = a->error;
    return a->error.status;
}

/* Makes room for `size` bytes; waits for the thread where the buffer is in use. */
static enum status make_room(struct appender *a, size_t size, struct error *err)
{
    while (a->error.status == STATUS_OK && a->filling.length > 0 &&
           size > a->filling.capacity - a->filling.length) {
        a->full = true;
        pthread_cond_signal(&a->work);
        pthread_cond_wait(&a->done, &a->lock);
    }
    if (a->error.status)
        return pass_error(a, err);
    if (size > a->filling.capacity) {
        uint8_t *more = realloc(a->filling.data, size);
        if (!more)
            return error_memory(err, size, "the log's writer");
        a->filling.data = more;
        a->filling.capacity = size;
    }
    return STATUS_OK;
}

enum status appender_add(struct appender *a, const void *data, size_t size, uint64_t *offset,
                         struct error *err)
{
    pthread_mutex_lock(&a->lock);
    enum status status = make_room(a, size, err);
    if (status)
        goto out;
    memcpy(a->filling.data + a->filling.length, data, size);
    a->filling.length += size;
    *offset = a->added;
    a->added += size;
    bool first = a->oldest == 0;
    if (first)
        a->oldest = clock_now();
    /* The thread needs to know when to wake, and when there is enough. */
    if (first || a->filling.length >= PIECE_BYTES)
        pthread_cond_signal(&a->work);
out:
    pthread_mutex_unlock(&a->lock);
    return status;
}

enum status appender_sync(struct appender *a, struct error *err)
{
    pthread_mutex_lock(&a->lock);
    uint64_t wanted = a->added;
    if (wanted > a->wanted)
        a->wanted = wanted;
    pthread_cond_signal(&a->work);
    while (a->error.status == STATUS_OK && a->durable < wanted)
        pthread_cond_wait(&a->done, &a->lock);
    enum status status = pass_error(a, err);
    pthread_mutex_unlock(&a->lock);
    return status;
}

void appender_close(struct appender **appender)
{
    if (!appender || !*appender)
        return;
    struct appender *a = *appender;
    *appender = NULL;
    pthread_mutex_lock(&a->lock);
    a->closing = true;
    pthread_cond_signal(&a->work);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    appender_free(a);
}
