/* piece_sums.c: a buffer for each dataset. When they hold enough together, threads digest the whole pieces
 * of whatever datasets, and what is left moves to the front. */
#include "file/piece_sums.h"
#include "base/threads.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ENOUGH       (32u << 20) /* bytes in all buffers */
#define MOST_THREADS 16
#define TASKS_EACH   16 /* at least, of a thread */

struct passing {
    uint8_t *data;
    size_t filled, capacity;
    struct pieces pieces;
    uint64_t room; /* for digests */
};

/* A piece to digest. */
struct task {
    const uint8_t *data;
    uint8_t *digest;
};

struct piece_sums {
    unsigned count, threads;
    size_t filled; /* in all */
    struct task *task;
    unsigned tasks, task_room;
    atomic_uint next;
    struct passing passing[];
};

enum status piece_sums_open(struct piece_sums **out, unsigned datasets, unsigned threads, struct error *err)
{
    const size_t size = sizeof **out + datasets * sizeof (*out)->passing[0];
    struct piece_sums *sums = *out = calloc(1, size);
    if (!sums)
        return error_memory(err, size, "checksums");
    sums->count = datasets;
    sums->threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    return STATUS_OK;
}

void piece_sums_close(struct piece_sums **out)
{
    struct piece_sums *sums = *out;
    if (!sums)
        return;
    *out = NULL;
    for (unsigned i = 0; i < sums->count; i++) {
        free(sums->passing[i].data);
        pieces_clear(&sums->passing[i].pieces);
    }
    free(sums->task);
    free(sums);
}

static void *digest_tasks(void *context)
{
    struct piece_sums *sums = context;
    unsigned i;
    while ((i = atomic_fetch_add(&sums->next, 1)) < sums->tasks)
        sha256_of(sums->task[i].digest, sums->task[i].data, PIECE_BYTES);
    return NULL;
}

static void run_tasks(struct piece_sums *sums)
{
    /* A thread for less than this costs more than it saves. */
    const unsigned wanted = (sums->tasks + TASKS_EACH - 1) / TASKS_EACH;
    atomic_store(&sums->next, 0);
    threads_run(digest_tasks, sums, wanted < sums->threads ? wanted : sums->threads);
}

/* Room for `more` further digests, zeros at first. */
static enum status make_room(struct passing *passing, uint64_t more, struct error *err)
{
    const uint64_t needed = passing->pieces.count + more;
    if (needed <= passing->room)
        return STATUS_OK;
    const uint64_t room = needed + needed / 2;
    void *digests = realloc(passing->pieces.digest, room * PIECE_DIGEST);
    if (!digests)
        return error_memory(err, room * PIECE_DIGEST, "checksums");
    passing->pieces.digest = digests;
    passing->room = room;
    return STATUS_OK;
}

static enum status add_tasks(struct piece_sums *sums, struct passing *passing, struct error *err)
{
    const unsigned whole = (unsigned)(passing->filled / PIECE_BYTES);
    if (make_room(passing, whole, err) != STATUS_OK)
        return STATUS_FAILED;
    if (sums->tasks + whole > sums->task_room) {
        const unsigned room = 2 * (sums->tasks + whole);
        struct task *more = realloc(sums->task, room * sizeof *more);
        if (!more)
            return error_memory(err, room * sizeof *more, "checksums");
        sums->task = more;
        sums->task_room = room;
    }
    for (unsigned i = 0; i < whole; i++)
        sums->task[sums->tasks++] = (struct task){passing->data + (size_t)i * PIECE_BYTES,
                                                  passing->pieces.digest[passing->pieces.count + i]};
    return STATUS_OK;
}

/* Digests the whole pieces of all datasets. */
static enum status digest_whole(struct piece_sums *sums, struct error *err)
{
    sums->tasks = 0;
    for (unsigned d = 0; d < sums->count; d++)
        if (add_tasks(sums, &sums->passing[d], err) != STATUS_OK)
            return STATUS_FAILED;
    if (sums->tasks > 0)
        run_tasks(sums);
    sums->filled = 0;
    for (unsigned d = 0; d < sums->count; d++) {
        struct passing *passing = &sums->passing[d];
        const size_t whole = passing->filled / PIECE_BYTES;
        passing->pieces.count += whole;
        passing->filled -= whole * PIECE_BYTES;
        if (whole > 0)
            memmove(passing->data, passing->data + whole * PIECE_BYTES, passing->filled);
        sums->filled += passing->filled;
    }
    return STATUS_OK;
}

enum status piece_sums_add(struct piece_sums *sums, unsigned dataset, const void *bytes, size_t size,
                           struct error *err)
{
    struct passing *passing = &sums->passing[dataset];
    if (size > passing->capacity - passing->filled) {
        const size_t capacity = passing->filled + passing->filled / 4 + size;
        uint8_t *more = realloc(passing->data, capacity);
        if (!more)
            return error_memory(err, capacity, "checksums");
        passing->data = more;
        passing->capacity = capacity;
    }
    if (size > 0)
        memcpy(passing->data + passing->filled, bytes, size);
    passing->filled += size;
    sums->filled += size;
    /* Less than a piece of each dataset may stay. */
    return sums->filled < ENOUGH + (size_t)sums->count * PIECE_BYTES ? STATUS_OK : digest_whole(sums, err);
}

enum status piece_sums_take(struct piece_sums *sums, unsigned dataset, struct pieces *pieces,
                            struct error *err)
{
    struct passing *passing = &sums->passing[dataset];
    *pieces = (struct pieces){0};
    if (digest_whole(sums, err) != STATUS_OK || make_room(passing, 1, err) != STATUS_OK)
        return STATUS_FAILED;
    if (passing->filled > 0)
        sha256_of(passing->pieces.digest[passing->pieces.count++], passing->data, passing->filled);
    *pieces = passing->pieces;
    sums->filled -= passing->filled;
    passing->filled = 0;
    passing->pieces = (struct pieces){0};
    passing->room = 0;
    return STATUS_OK;
}
