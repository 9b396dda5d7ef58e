/* neighbours.c: checks the request, chooses how to compare rows, and fills in the result. */
#include "neighbours/neighbours.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "neighbours/all_pairs.h"
#include "neighbours/scan.h"
#include <math.h>
#include <stdlib.h>

void neighbours_clear(struct neighbours *neighbours)
{
    free(neighbours->rows);
    free(neighbours->squared);
    *neighbours = (struct neighbours){0};
}

#define PART_PLACES 65536

struct hand_over {
    struct neighbours *out;
    const struct nearest *lists;
    size_t count;
};

static void hand_over_part(void *context, uint64_t part)
{
    const struct hand_over *job = context;
    const size_t end = min_u64((part + 1) * PART_PLACES, job->count);
    for (size_t i = part * PART_PLACES; i < end; i++) {
        const struct nearest *one = &job->lists[i];
        const bool none = one->row == NEAREST_NONE;
        job->out->rows[i] = none ? -1 : (int64_t)one->row;
        job->out->squared[i] = none ? (double)NAN : one->squared;
    }
}

/* Converts lists to the result. */
static enum status hand_over(struct neighbours *out, const struct nearest *lists, uint64_t queries,
                             uint32_t n, struct workers *workers, struct error *err)
{
    const size_t count = (size_t)queries * n;
    out->queries = queries;
    out->n = n;
    out->rows = malloc(count * sizeof *out->rows);
    out->squared = malloc(count * sizeof *out->squared);
    if (!out->rows || !out->squared)
        return error_memory(err, count * (sizeof *out->rows + sizeof *out->squared), "neighbours");
    struct hand_over job = {out, lists, count};
    workers_run(workers, hand_over_part, &job, (count + PART_PLACES - 1) / PART_PLACES);
    return STATUS_OK;
}

/* Common start of both kinds of search. */
static enum status begin(struct workers **workers, struct block_reader *reader,
                         const struct matrix_source *source, const struct neighbours_config *config,
                         struct error *err)
{
    if (config->n == 0)
        return error_set(err, STATUS_USAGE, "the number of neighbours must be at least 1");
    if (source->rows > NEIGHBOURS_ROWS_MAX)
        return error_set(err, STATUS_FAILED, "%llu rows are too many: a search takes at most %u",
                         (unsigned long long)source->rows, NEIGHBOURS_ROWS_MAX);
    if (workers_open(workers, config->threads, err) != STATUS_OK)
        return err->status;
    return block_reader_open(reader, source, config, *workers, err);
}

enum status neighbours_of_all(struct neighbours *out, const struct matrix_source *source,
                              const struct neighbours_config *config, struct error *err)
{
    struct workers *workers = NULL;
    struct block_reader reader = {0};
    struct nearest *lists = NULL;
    *out = (struct neighbours){0};
    enum status status = begin(&workers, &reader, source, config, err);
    if (status == STATUS_OK)
        status = all_pairs(&lists, out, &reader, err);
    if (status == STATUS_OK)
        status = hand_over(out, lists, source->rows, config->n, workers, err);
    free(lists);
    out->seconds_read = reader.seconds;
    block_reader_close(&reader);
    workers_close(&workers);
    if (status != STATUS_OK)
        neighbours_clear(out);
    return status;
}

static enum status search_queries(struct neighbours *out, struct block_reader *reader,
                                  const float *queries, const uint32_t *own, uint32_t count,
                                  struct error *err)
{
    const uint32_t n = reader->config->n;
    struct nearest *lists = malloc((size_t)count * n * sizeof *lists);
    if (!lists)
        return error_memory(err, (size_t)count * n * sizeof *lists, "neighbours");
    const int64_t begun = clock_now();
    enum status status = scan_rows(lists, reader, queries, own, count, &out->compared, err);
    out->seconds_search = (double)(clock_now() - begun) * 1e-9 - reader->seconds;
    if (status == STATUS_OK)
        status = hand_over(out, lists, count, n, reader->workers, err);
    free(lists);
    return status;
}

enum status neighbours_of_rows(struct neighbours *out, const struct matrix_source *source,
                               const uint64_t *rows, uint32_t count,
                               const struct neighbours_config *config, struct error *err)
{
    struct workers *workers = NULL;
    struct block_reader reader = {0};
    float *queries = NULL;
    uint32_t *own = NULL;
    *out = (struct neighbours){0};
    enum status status = begin(&workers, &reader, source, config, err);
    if (status == STATUS_OK) {
        queries = malloc((size_t)count * reader.stride * sizeof *queries);
        own = malloc(count * sizeof *own);
        if (!queries || !own)
            status = error_memory(err, (size_t)count * reader.stride * sizeof *queries, "queries");
    }
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        if (rows[i] >= source->rows) {
            status = error_set(err, STATUS_USAGE, "there is no row %llu: rows are 0 to %llu",
                               (unsigned long long)rows[i], (unsigned long long)source->rows - 1);
            break;
        }
        own[i] = (uint32_t)rows[i];
        status = block_reader_read(&reader, rows[i], 1, queries + (size_t)i * reader.stride, err);
    }
    if (status == STATUS_OK)
        status = search_queries(out, &reader, queries, own, count, err);
    out->seconds_read = reader.seconds;
    free(queries);
    free(own);
    block_reader_close(&reader);
    workers_close(&workers);
    if (status != STATUS_OK)
        neighbours_clear(out);
    return status;
}

enum status neighbours_of_queries(struct neighbours *out, const struct matrix_source *source,
                                  const struct matrix_source *queries, uint64_t first,
                                  uint32_t count, const struct neighbours_config *config,
                                  struct error *err)
{
    struct workers *workers = NULL;
    struct block_reader reader = {0}, asked = {0};
    float *values = NULL;
    *out = (struct neighbours){0};
    enum status status = begin(&workers, &reader, source, config, err);
    if (status == STATUS_OK)
        status = block_reader_open(&asked, queries, config, workers, err);
    if (status == STATUS_OK) {
        asked.transform.what = "query";
        values = malloc((size_t)count * reader.stride * sizeof *values);
        status = values
                     ? block_reader_read(&asked, first, count, values, err)
                     : error_memory(err, (size_t)count * reader.stride * sizeof *values, "queries");
    }
    if (status == STATUS_OK)
        status = search_queries(out, &reader, values, NULL, count, err);
    out->seconds_read = reader.seconds;
    free(values);
    block_reader_close(&asked);
    block_reader_close(&reader);
    workers_close(&workers);
    if (status != STATUS_OK)
        neighbours_clear(out);
    return status;
}

enum status neighbours_of_values(struct neighbours *out, const struct matrix_source *source,
                                 const float *values, uint32_t count,
                                 const struct neighbours_config *config, struct error *err)
{
    struct matrix_memory memory = {values, source->dimension};
    struct matrix_source queries;
    matrix_memory_source(&queries, &memory, count);
    return neighbours_of_queries(out, source, &queries, 0, count, config, err);
}
