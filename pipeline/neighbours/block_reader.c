/* block_reader.c: reads, checks and transforms. */
#include "neighbours/block_reader.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "kmeans.h"

/* Bytes read between two checks for a stop. */
#define READ_BYTES (64u << 20)

enum status block_reader_open(struct block_reader *reader, const struct matrix_source *source,
                              const struct neighbours_config *config, struct error *err)
{
    const uint32_t dimension = source->dimension;
    const uint32_t stride = (dimension + KMEANS_LANES - 1) / KMEANS_LANES * KMEANS_LANES;
    *reader = (struct block_reader){.source = source,
                                    .config = config,
                                    .transform = {config->metric, dimension, stride, "row"},
                                    .stride = stride};
    return workers_open(&reader->workers, config->threads, err);
}

void block_reader_close(struct block_reader *reader)
{
    workers_close(&reader->workers);
    *reader = (struct block_reader){0};
}

enum status block_reader_read(struct block_reader *reader, uint64_t first, uint32_t count,
                              float *rows, struct error *err)
{
    const int64_t begun = clock_now();
    const size_t row = reader->stride * sizeof(float);
    const uint32_t step = (uint32_t)max_u64(READ_BYTES / row, 1);
    enum status status = STATUS_OK;
    for (uint32_t done = 0; done < count && status == STATUS_OK;
         done += min_u32(step, count - done)) {
        status = watch_check(&reader->config->watch, "reading rows", err);
        if (status == STATUS_OK)
            status = transform_read(&reader->transform, reader->source, reader->workers,
                                    rows + (size_t)done * reader->stride, first + done,
                                    min_u32(step, count - done), err);
    }
    reader->seconds += (double)(clock_now() - begun) * 1e-9;
    return status;
}

enum status block_reader_queries(struct block_reader *reader, const struct queries *queries,
                                 uint64_t first, uint32_t count, float *values, uint32_t *own,
                                 struct error *err)
{
    const uint64_t rows = reader->source->rows;
    struct transform transform = reader->transform;
    enum status status = STATUS_OK;
    transform.what = "query";
    if (!queries->rows)
        return transform_read(&transform, queries->values, reader->workers, values, first, count,
                              err);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        const uint64_t row = queries->rows[first + i];
        if (row >= rows)
            return error_set(err, STATUS_USAGE, "there is no row %llu: rows are 0 to %llu",
                             (unsigned long long)row, (unsigned long long)rows - 1);
        if (own)
            own[i] = (uint32_t)row;
        status = block_reader_read(reader, row, 1, values + (size_t)i * reader->stride, err);
    }
    return status;
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
    return b == 0 ? a : gcd(b, a % b);
}

uint32_t block_reader_step(uint32_t rows)
{
    uint32_t step = (uint32_t)(rows * 0.6180339887) | 1;
    while (gcd(step, rows) != 1)
        step++;
    return step;
}
