/* reader.c: requests arrive on one queue and leave, filled, on another, in order. */
#include "kmeans/reader.h"
#include "base/queue.h"
#include "kmeans.h"
#include "matrix/row_tree.h"
#include <pthread.h>
#include <stdlib.h>

/* Bytes read at a time by a single reading thread: enough work for every thread, and still cached
 * when transformed. If rows are only checked, one thread is cheaper than several: pieces then fit
 * its own cache, and the device and the host's threads keep theirs. */
#define PIECE_BYTES  (8u << 20)
#define GLANCE_BYTES (256u << 10)

struct reader {
    const struct matrix_source *source;
    const struct transform *transform;
    struct workers *workers; /* NULL: only the reader */
    uint64_t part_rows;      /* rows that a thread reads at a time; 0: only the reader may read */
    const struct reader_stats *stats;
    struct queue *wanted, *filled;
    pthread_t thread;
    bool started;
    float *piece; /* rows as read, if not read in place */
    uint32_t piece_rows;
    struct error error; /* written by the thread before it aborts the queues */
};

/* --- by all threads ---------------------------------------------------------------------------- */

struct part_job {
    const struct reader *reader;
    const struct fill *fill;
    struct error *errors; /* one per part */
};

/* Parts begin at multiples of part_rows, counted over all rows, so they are whole pieces of the
 * digest. Rows to be padded are read to the end of their destination. */
static void read_part(void *context, uint64_t part)
{
    const struct part_job *job = context;
    const struct reader *reader = job->reader;
    const struct transform *transform = reader->transform;
    const uint64_t step = reader->part_rows, last = job->fill->first + job->fill->rows;
    uint64_t first = (job->fill->first / step + part) * step, end = first + step;
    first = first < job->fill->first ? job->fill->first : first;
    end = end < last ? end : last;
    const size_t rows = (size_t)(end - first);
    float *to = job->fill->to + (size_t)(first - job->fill->first) * transform->stride;
    float *from = to + rows * (transform->stride - transform->dimension);
    if (matrix_read(reader->source, first, rows, from, &job->errors[part]) == STATUS_OK)
        transform_rows(transform, NULL, to, from, first, (uint32_t)rows, &job->errors[part]);
}

/* Reports the first error in row order. */
static enum status read_together(const struct reader *reader, const struct fill *fill,
                                 struct error *err)
{
    const uint64_t step = reader->part_rows, last = fill->first + fill->rows - 1;
    const uint64_t parts = last / step - fill->first / step + 1;
    struct error *errors = calloc(parts, sizeof *errors);
    if (!errors)
        return error_memory(err, parts * sizeof *errors, "reading rows");
    struct part_job job = {reader, fill, errors};
    workers_run(reader->workers, read_part, &job, parts);
    uint64_t wrong = 0;
    while (wrong < parts && errors[wrong].status == STATUS_OK)
        wrong++;
    const enum status status = wrong < parts ? errors[wrong].status : STATUS_OK;
    if (wrong < parts)
        *err = errors[wrong];
    free(errors);
    return status;
}

/* --- by one ------------------------------------------------------------------------------------ */

static enum status read_alone(const struct reader *reader, const struct fill *fill,
                              struct error *err)
{
    const uint32_t stride = reader->transform->stride;
    for (uint32_t done = 0; done < fill->rows;) {
        uint32_t rows =
            fill->rows - done < reader->piece_rows ? fill->rows - done : reader->piece_rows;
        float *to = fill->to + (size_t)done * stride;
        float *from = reader->piece ? reader->piece : to;
        uint64_t first = fill->first + done;
        enum status status = matrix_read(reader->source, first, rows, from, err);
        if (status == STATUS_OK)
            status = transform_rows(reader->transform, reader->workers, to, from, first, rows, err);
        if (status != STATUS_OK)
            return status;
        done += rows;
    }
    return STATUS_OK;
}

/* --- the thread -------------------------------------------------------------------------------- */

static enum status fill_rows(const struct reader *reader, const struct fill *fill,
                             struct error *err)
{
    const uint32_t stride = reader->transform->stride;
    const struct reader_stats *stats = reader->stats;
    enum status status = reader->part_rows > 0 ? read_together(reader, fill, err)
                                               : read_alone(reader, fill, err);
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
    const size_t row = (size_t)transform->dimension * sizeof(float);
    const size_t piece = workers ? PIECE_BYTES : GLANCE_BYTES;
    if (workers && source->concurrent)
        reader->part_rows = row_tree_piece(transform->dimension * sizeof(float));
    reader->piece_rows = row < piece ? (uint32_t)(piece / row) : 1;
    if (reader->piece_rows > KMEANS_BLOCK_ROWS)
        reader->piece_rows -= reader->piece_rows % KMEANS_BLOCK_ROWS;
    enum status status = queue_open(&reader->wanted, depth, sizeof(struct fill), NULL, NULL, err);
    if (status == STATUS_OK)
        status = queue_open(&reader->filled, depth, sizeof(struct fill), NULL, NULL, err);
    if (status == STATUS_OK && transform->stride != transform->dimension &&
        reader->part_rows == 0) {
        reader->piece = malloc(reader->piece_rows * row);
        if (!reader->piece)
            status = error_memory(err, reader->piece_rows * row, "reading rows");
    }
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
        return error_set(err, STATUS_FAILED, "the thread that reads rows is gone");
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
    free(r->piece);
    free(r);
    *reader = NULL;
}
