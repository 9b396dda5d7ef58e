/* plain.c: the plain C loop. Threads are created for each run: that costs some tens of microseconds
 * out of milliseconds, and no idle threads compete with the kernels of the comparison. */
#include "device/plain.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TABLES 4

struct worker {
    uint32_t tables[TABLES][768];
    const struct plain_pictures *pictures;
    uint64_t begin, end; /* of the rows of all pictures */
    pthread_t thread;
};

struct plain {
    unsigned threads;
    struct worker worker[];
};

enum status plain_open(struct plain **out, unsigned threads, struct error *err)
{
    const size_t bytes = sizeof **out + threads * sizeof(struct worker);
    *out = calloc(1, bytes);
    if (!*out)
        return error_memory(err, bytes, "threads");
    (*out)->threads = threads;
    return STATUS_OK;
}

void plain_close(struct plain **plain)
{
    free(*plain);
    *plain = NULL;
}

/* Unrolled by hand: compilers do not unroll a loop over the tables at -O2. */
#define COUNT_PIXEL(t)                                                                             \
    worker->tables[t][p[3 * (t)]]++;                                                               \
    worker->tables[t][256 + p[3 * (t) + 1]]++;                                                     \
    worker->tables[t][512 + p[3 * (t) + 2]]++;

static void *count_rows(void *argument)
{
    struct worker *worker = argument;
    const struct plain_pictures *pictures = worker->pictures;
    const size_t row = (size_t)pictures->width * 3;
    memset(worker->tables, 0, sizeof worker->tables);
    for (uint64_t y = worker->begin; y < worker->end; y++) {
        const uint8_t *p =
            pictures->pixels + y / pictures->height * pictures->stride + y % pictures->height * row;
        for (uint32_t x = 0; x < pictures->width; x += TABLES, p += 3 * TABLES) {
            COUNT_PIXEL(0)
            COUNT_PIXEL(1)
            COUNT_PIXEL(2)
            COUNT_PIXEL(3)
        }
    }
    return NULL;
}

enum status plain_count(double *seconds, struct plain *plain, const struct plain_pictures *pictures,
                        struct error *err)
{
    const uint64_t rows = (uint64_t)pictures->count * pictures->height;
    const int64_t start = clock_now();
    unsigned started = 0;
    int code = 0;
    while (started < plain->threads && code == 0) {
        struct worker *worker = &plain->worker[started];
        worker->pictures = pictures;
        worker->begin = rows * started / plain->threads;
        worker->end = rows * (started + 1) / plain->threads;
        code = pthread_create(&worker->thread, NULL, count_rows, worker);
        started += code == 0;
    }
    for (unsigned i = 0; i < started; i++)
        pthread_join(plain->worker[i].thread, NULL);
    *seconds = (double)(clock_now() - start) * 1e-9;
    if (code)
        return error_errno(err, STATUS_FAILED, code, "pthread_create", "cannot start a thread");
    return STATUS_OK;
}

uint64_t plain_counter(const struct plain *plain, unsigned bin)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < plain->threads; i++)
        for (unsigned t = 0; t < TABLES; t++)
            sum += plain->worker[i].tables[t][bin];
    return sum;
}
