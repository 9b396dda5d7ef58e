/* block_reader.c: reads, checks and transforms. */
#include "neighbours/block_reader.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "kmeans.h"
#include <stdlib.h>

/* Bytes read at a time if rows must be padded. */
#define RAW_BYTES (4u << 20)
/* Bytes that a thread reads and checks at a time if several can: they stay in its cache. */
#define PART_BYTES (256u << 10)

enum status block_reader_open(struct block_reader *reader, const struct matrix_source *source,
                              const struct neighbours_config *config, struct workers *workers,
                              struct error *err)
{
    const uint32_t dimension = source->dimension;
    const uint32_t stride = (dimension + KMEANS_LANES - 1) / KMEANS_LANES * KMEANS_LANES;
    *reader = (struct block_reader){.source = source,
                                    .config = config,
                                    .workers = workers,
                                    .transform = {config->metric, dimension, stride, "row"},
                                    .stride = stride};
    const size_t row = dimension * sizeof(float);
    reader->raw_rows = (uint32_t)(RAW_BYTES / row ? RAW_BYTES / row : 1);
    reader->part_rows = (uint32_t)(PART_BYTES / row ? PART_BYTES / row : 1);
    if (dimension == stride)
        return STATUS_OK;
    reader->raw = malloc(reader->raw_rows * row);
    return reader->raw ? STATUS_OK : error_memory(err, reader->raw_rows * row, "rows");
}

void block_reader_close(struct block_reader *reader)
{
    free(reader->raw);
    *reader = (struct block_reader){0};
}

struct read_job {
    const struct block_reader *reader;
    uint64_t first;
    uint32_t count;
    float *rows;
    struct error *errors; /* one per part */
};

static void read_part(void *context, uint64_t part)
{
    const struct read_job *job = context;
    const struct block_reader *reader = job->reader;
    const uint32_t begin = (uint32_t)part * reader->part_rows;
    const uint32_t count = min_u32(reader->part_rows, job->count - begin);
    float *to = job->rows + (size_t)begin * reader->stride;
    if (matrix_read(reader->source, job->first + begin, count, to, &job->errors[part]) == STATUS_OK)
        transform_rows(&reader->transform, NULL, to, to, job->first + begin, count,
                       &job->errors[part]);
}

/* Reads rows without padding from a source that several threads can read; first error wins. */
static enum status read_together(const struct block_reader *reader, uint64_t first, uint32_t count,
                                 float *rows, struct error *err)
{
    const uint64_t parts = ((uint64_t)count + reader->part_rows - 1) / reader->part_rows;
    struct error *errors = calloc(parts, sizeof *errors);
    if (!errors)
        return error_memory(err, parts * sizeof *errors, "reading rows");
    struct read_job job = {reader, first, count, rows, errors};
    workers_run(reader->workers, read_part, &job, parts);
    uint64_t wrong = 0;
    while (wrong < parts && errors[wrong].status == STATUS_OK)
        wrong++;
    const enum status status = wrong < parts ? errors[wrong].status : STATUS_OK;
    if (wrong < parts && err)
        *err = errors[wrong];
    free(errors);
    return status;
}

enum status block_reader_read(struct block_reader *reader, uint64_t first, uint32_t count,
                              float *rows, struct error *err)
{
    const int64_t begun = clock_now();
    const bool together = reader->source->concurrent && !reader->raw && count > reader->part_rows;
    enum status status = STATUS_OK;
    for (uint32_t done = 0; done < count && status == STATUS_OK;) {
        const uint32_t now = together ? count - done : min_u32(reader->raw_rows, count - done);
        float *to = rows + (size_t)done * reader->stride;
        float *from = reader->raw ? reader->raw : to;
        status = stop_check(reader->config->stop, "reading rows", err);
        if (status == STATUS_OK && together) {
            status = read_together(reader, first + done, now, to, err);
            done += now;
            continue;
        }
        if (status == STATUS_OK)
            status = matrix_read(reader->source, first + done, now, from, err);
        if (status == STATUS_OK)
            status = transform_rows(&reader->transform, reader->workers, to, from, first + done, now,
                                    err);
        done += now;
    }
    reader->seconds += (double)(clock_now() - begun) * 1e-9;
    return status;
}
