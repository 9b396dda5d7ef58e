/* sample.c: reads the rows of a sample. */
#include "neighbours/sample.h"
#include "base/minmax.h"
#include <stdlib.h>

#define SAMPLE_ROWS  255
#define SAMPLE_BYTES (8u << 20)

enum status sample_space(struct code_space *space, struct block_reader *reader, struct error *err)
{
    const uint64_t rows = reader->source->rows;
    const size_t row_bytes = reader->stride * sizeof(float);
    uint64_t count = SAMPLE_BYTES / row_bytes;
    count = min_u64(min_u64(count ? count : 1, SAMPLE_ROWS), rows);
    float *sample = malloc((size_t)count * row_bytes);
    if (!sample)
        return error_memory(err, (size_t)count * row_bytes, "a sample of rows");
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++)
        status = block_reader_read(reader, rows * i / count, 1, sample + i * reader->stride, err);
    if (status == STATUS_OK)
        status = code_space_open(space, sample, (uint32_t)count, reader->stride, err);
    free(sample);
    return status;
}
