/* block_reader.c: reads, checks and transforms. */
#include "search/block_reader.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "kmeans.h"
#include <stdlib.h>

/* Bytes that are read at a time where rows have to be padded. */
#define RAW_BYTES (4u << 20)

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

enum status block_reader_read(struct block_reader *reader, uint64_t first, uint32_t count,
                              float *rows, struct error *err)
{
    const int64_t begun = clock_now();
    enum status status = STATUS_OK;
    for (uint32_t done = 0; done < count && status == STATUS_OK;) {
        const uint32_t now = min_u32(reader->raw_rows, count - done);
        float *to = rows + (size_t)done * reader->stride;
        float *from = reader->raw ? reader->raw : to;
        status = stop_check(reader->config->stop, "reading rows", err);
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
