/* workers.c: fork and join with a fixed team. An atomic counter deals out the parts, so a slow
 * thread takes fewer. */
#include "base/workers.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct workers {
    unsigned helpers;
    pthread_t *threads;
    pthread_mutex_t caller; /* held for the whole of workers_run */
    pthread_mutex_t lock;
    pthread_cond_t start, finished;
    /* Guarded by `lock`: */
    uint64_t generation; /* of the job; counts up */
    unsigned busy;       /* helpers that have not finished this generation */
    bool closing;
    /* The job; written by the caller while no helper is busy. */
    void (*part)(void *context, uint64_t i);
    void *context;
    uint64_t parts;
    _Atomic uint64_t next;
    _Atomic unsigned numbered; /* helpers that have taken their number */
};

static _Thread_local unsigned number; /* of the thread in its team; 0: the caller */

static void work(struct workers *workers)
{
    for (;;) {
        uint64_t i = atomic_fetch_add_explicit(&workers->next, 1, memory_order_relaxed);
        if (i >= workers->parts)
            return;
        workers->part(workers->context, i);
    }
}

static void *helper(void *argument)
{
    struct workers *workers = argument;
    uint64_t seen = 0;
    number = atomic_fetch_add(&workers->numbered, 1) + 1;
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        while (workers->generation == seen && !workers->closing)
            pthread_cond_wait(&workers->start, &workers->lock);
        if (workers->closing)
            break;
        seen = workers->generation;
        pthread_mutex_unlock(&workers->lock);
        work(workers);
        pthread_mutex_lock(&workers->lock);
        if (--workers->busy == 0)
            pthread_cond_signal(&workers->finished);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

enum status workers_open(struct workers **out, unsigned threads, struct error *err)
{
    *out = NULL;
    struct workers *workers = calloc(1, sizeof *workers);
    if (!workers)
        return error_memory(err, sizeof *workers, "host threads");
    unsigned wanted = threads > 1 ? threads - 1 : 0;
    workers->threads = calloc(wanted ? wanted : 1, sizeof *workers->threads);
    if (!workers->threads) {
        free(workers);
        return error_memory(err, wanted * sizeof *workers->threads, "host threads");
    }
    pthread_mutex_init(&workers->caller, NULL);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->start, NULL);
    pthread_cond_init(&workers->finished, NULL);
    while (workers->helpers < wanted &&
           pthread_create(&workers->threads[workers->helpers], NULL, helper, workers) == 0)
        workers->helpers++;
    *out = workers;
    return STATUS_OK;
}

unsigned workers_count(const struct workers *workers)
{
    return workers->helpers + 1;
}

unsigned workers_number(void)
{
    return number;
}

void workers_run(struct workers *workers, void (*part)(void *context, uint64_t i), void *context,
                 uint64_t parts)
{
    const unsigned outside = number; /* the caller may be a helper of another team */
    number = 0;
    if (workers->helpers == 0 || parts < 2) {
        for (uint64_t i = 0; i < parts; i++)
            part(context, i);
        number = outside;
        return;
    }
    pthread_mutex_lock(&workers->caller);
    pthread_mutex_lock(&workers->lock);
    workers->part = part;
    workers->context = context;
    workers->parts = parts;
    atomic_store_explicit(&workers->next, 0, memory_order_relaxed);
    workers->busy = workers->helpers;
    workers->generation++;
    pthread_cond_broadcast(&workers->start);
    pthread_mutex_unlock(&workers->lock);
    work(workers);
    number = outside;
    pthread_mutex_lock(&workers->lock);
    while (workers->busy > 0)
        pthread_cond_wait(&workers->finished, &workers->lock);
    pthread_mutex_unlock(&workers->lock);
    pthread_mutex_unlock(&workers->caller);
}

struct attempt {
    enum status (*part)(void *context, uint64_t i, struct error *err);
    void *context;
    _Atomic uint64_t failed; /* the lowest part that has failed; UINT64_MAX: none */
    pthread_mutex_t lock;    /* guards `error`, and changes of `failed` */
    struct error error;
};

static void try_part(void *context, uint64_t i)
{
    struct attempt *attempt = context;
    struct error err = ERROR_INIT;
    if (i > attempt->failed || attempt->part(attempt->context, i, &err) == STATUS_OK)
        return;
    pthread_mutex_lock(&attempt->lock);
    if (i < attempt->failed) {
        attempt->failed = i;
        attempt->error = err;
    }
    pthread_mutex_unlock(&attempt->lock);
}

enum status workers_try(struct workers *workers,
                        enum status (*part)(void *context, uint64_t i, struct error *err),
                        void *context, uint64_t parts, struct error *err)
{
    struct attempt attempt = {
        .part = part, .context = context, .failed = UINT64_MAX, .lock = PTHREAD_MUTEX_INITIALIZER};
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < parts && !workers && status == STATUS_OK; i++)
        status = part(context, i, err);
    if (!workers)
        return status;
    workers_run(workers, try_part, &attempt, parts);
    if (attempt.failed == UINT64_MAX)
        return STATUS_OK;
    if (err)
        *err = attempt.error;
    return attempt.error.status;
}

void workers_once(unsigned threads, void (*part)(void *context, uint64_t i), void *context,
                  uint64_t parts)
{
    struct workers *workers;
    if (workers_open(&workers, threads, NULL) == STATUS_OK)
        workers_run(workers, part, context, parts);
    for (uint64_t i = 0; i < parts && !workers; i++)
        part(context, i);
    workers_close(&workers);
}

void workers_close(struct workers **workers)
{
    struct workers *w = *workers;
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_broadcast(&w->start);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->helpers; i++)
        pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->finished);
    pthread_cond_destroy(&w->start);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->caller);
    free(w->threads);
    free(w);
    *workers = NULL;
}
