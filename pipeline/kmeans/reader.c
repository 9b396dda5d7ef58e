/* reader.c: requests arrive on one queue and leave, filled, on another, in order. */
#include "kmeans/reader.h"
#include "base/queue.h"
#include <pthread.h>
#include <stdlib.h>

struct reader {
    const struct matrix_source *source;
    const struct transform *transform;
    struct workers *workers; /* NULL: only the reader */
    const struct reader_stats *stats;
    struct queue *wanted, *filled;
    pthread_t thread;
    bool started;
    struct error error; /* written by the thread before it aborts the queues */
};

/* --- the thread -------------------------------------------------------------------------------- */

static enum status fill_rows(const struct reader *reader, const struct fill *fill,
                             struct error *err)
{
    const uint32_t stride = reader->transform->stride;
    const struct reader_stats *stats = reader->stats;
    enum status status = transform_read(reader->transform, reader->source, reader->workers,
                                        fill->to, fill->first, fill->rows, err);
    if (status == STATUS_OK && stats)
        status = column_stats_add(stats->plain, reader->workers, fill->to, NULL, fill->rows, stride,
                                  err);
    if (status == STATUS_OK && stats && stats->weights)
        status = column_stats_add(stats->weighted, reader->workers, fill->to,
                                  stats->weights + (fill->first - stats->first), fill->rows, stride,
                                  err);
    return status;
}

static void *read_ahead(void *argument)
{
    struct reader *reader = argument;
    struct fill fill;
    while (queue_receive(reader->wanted, &fill) == QUEUE_OK) {
        if (fill_rows(reader, &fill, &reader->error) != STATUS_OK) {
            queue_abort(reader->filled);
            break;
        }
        if (queue_send(reader->filled, &fill) != QUEUE_OK)
            break;
    }
    return NULL;
}

enum status reader_open(struct reader **out, const struct matrix_source *source,
                        const struct transform *transform, struct workers *workers,
                        const struct reader_stats *stats, unsigned depth, struct error *err)
{
    *out = NULL;
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return error_memory(err, sizeof *reader, "reading rows");
    *reader = (struct reader){.source = source,
                              .transform = transform,
                              .workers = workers,
                              .stats = stats,
                              .error = ERROR_INIT};
    enum status status = queue_open(&reader->wanted, depth, sizeof(struct fill), err);
    if (status == STATUS_OK)
        status = queue_open(&reader->filled, depth, sizeof(struct fill), err);
    if (status == STATUS_OK) {
        int failed = pthread_create(&reader->thread, NULL, read_ahead, reader);
        reader->started = !failed;
        if (failed)
            status = error_errno(err, STATUS_FAILED, failed, "pthread_create",
                                 "cannot start the thread that reads rows");
    }
    if (status != STATUS_OK) {
        reader_close(&reader);
        return status;
    }
    *out = reader;
    return STATUS_OK;
}

enum status reader_request(struct reader *reader, const struct fill *fill, struct error *err)
{
    /* After an error in the thread, requests are still accepted: reader_take reports it. */
    if (queue_send(reader->wanted, fill) != QUEUE_OK)
        return error_set(err, STATUS_FAILED, "the thread that reads rows has ended");
    return STATUS_OK;
}

enum status reader_take(struct reader *reader, struct fill *fill, struct error *err)
{
    if (queue_receive(reader->filled, fill) == QUEUE_OK)
        return STATUS_OK;
    *err = reader->error;
    return reader->error.status;
}

bool reader_ready(struct reader *reader)
{
    return queue_length(reader->filled) > 0;
}

void reader_close(struct reader **reader)
{
    struct reader *r = *reader;
    if (!r)
        return;
    if (r->wanted)
        queue_abort(r->wanted);
    if (r->filled)
        queue_abort(r->filled);
    if (r->started)
        pthread_join(r->thread, NULL);
    queue_close(&r->wanted);
    queue_close(&r->filled);
    free(r);
    *reader = NULL;
}
