/* all_pairs.c: blocks of rows are searched for among all rows. */
#include "search/all_pairs.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "search/scan.h"
#include <stdlib.h>

enum status all_pairs(struct nearest **lists, struct neighbours *out, struct block_reader *reader,
                      struct error *err)
{
    const struct neighbours_config *config = reader->config;
    const uint64_t rows = reader->source->rows;
    const size_t row_bytes = reader->stride * sizeof(float), list_bytes = config->n * sizeof **lists;
    const uint64_t fits = config->memory / 2 / row_bytes;
    const uint32_t block = (uint32_t)min_u64(fits ? fits : 1, rows);
    *lists = malloc(rows * list_bytes);
    float *queries = malloc(block * row_bytes);
    uint32_t *own = malloc(block * sizeof *own);
    enum status status = STATUS_OK;
    const int64_t begun = clock_now();
    if (!*lists || !queries || !own)
        status = error_memory(err, rows * list_bytes + block * row_bytes, "neighbours");
    for (uint64_t first = 0; first < rows && status == STATUS_OK; first += block) {
        const uint32_t count = (uint32_t)min_u64(block, rows - first);
        status = block_reader_read(reader, first, count, queries, err);
        for (uint32_t i = 0; i < count; i++)
            own[i] = (uint32_t)first + i;
        if (status == STATUS_OK)
            status = scan_rows(*lists + first * config->n, reader, queries, own, count,
                               &out->compared, err);
    }
    out->seconds_search = (double)(clock_now() - begun) * 1e-9 - reader->seconds;
    free(queries);
    free(own);
    return status;
}
