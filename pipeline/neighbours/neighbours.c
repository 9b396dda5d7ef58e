/* neighbours.c: checks the request, chooses how to compare rows, and fills in the result. */
#include "neighbours/neighbours.h"
#include "base/clock.h"
#include "base/held.h"
#include "base/minmax.h"
#include "neighbours/device_pairs.h"
#include "neighbours/host_pairs.h"
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

static enum status read_queries(float *values, uint32_t *own, struct block_reader *reader,
                                const struct queries *queries, struct error *err)
{
    const uint64_t rows = reader->source->rows;
    struct transform transform = reader->transform;
    enum status status = STATUS_OK;
    transform.what = "query";
    if (!queries->rows)
        return transform_read(&transform, queries->values, reader->workers, values, queries->first,
                              queries->count, err);
    for (uint32_t i = 0; i < queries->count && status == STATUS_OK; i++) {
        if (queries->rows[i] >= rows)
            return error_set(err, STATUS_USAGE, "there is no row %llu: rows are 0 to %llu",
                             (unsigned long long)queries->rows[i], (unsigned long long)rows - 1);
        own[i] = (uint32_t)queries->rows[i];
        status = block_reader_read(reader, own[i], 1, values + (size_t)i * reader->stride, err);
    }
    return status;
}

static enum status search_queries(struct nearest *lists, struct neighbours *out,
                                  struct block_reader *reader, const struct queries *queries,
                                  struct error *err)
{
    struct held held = {0};
    float *values = held_array(&held, (uint64_t)queries->count * reader->stride, sizeof *values);
    uint32_t *own = queries->rows ? held_array(&held, queries->count, sizeof *own) : NULL;
    enum status status = held_check(&held, "queries", err);
    if (status == STATUS_OK)
        status = read_queries(values, own, reader, queries, err);
    const int64_t begun = clock_now();
    if (status == STATUS_OK)
        status = scan_rows(lists, reader, values, own, queries->count, &out->compared, err);
    out->seconds_search = (double)(clock_now() - begun) * 1e-9 - reader->seconds;
    held_free(&held);
    return status;
}

static enum status search_all(struct nearest *lists, struct neighbours *out,
                              struct block_reader *reader, struct error *err)
{
    if (device_pairs_pays(reader->config))
        return device_pairs(lists, out, reader, err);
    nearest_init(lists, (size_t)reader->source->rows * reader->config->n);
    return host_pairs(lists, out, reader, err);
}

enum status neighbours_find(struct neighbours *out, const struct matrix_source *source,
                            const struct queries *queries, const struct neighbours_config *config,
                            struct error *err)
{
    struct block_reader reader;
    const uint64_t count = queries ? queries->count : source->rows;
    const size_t bytes = (size_t)count * config->n * sizeof(struct nearest);
    *out = (struct neighbours){0};
    if (config->n == 0)
        return error_set(err, STATUS_USAGE, "the number of neighbours must be at least 1");
    if (source->rows > NEIGHBOURS_ROWS_MAX)
        return error_set(err, STATUS_FAILED, "%llu rows are too many: a search takes at most %u",
                         (unsigned long long)source->rows, NEIGHBOURS_ROWS_MAX);
    struct nearest *lists = malloc(bytes + 1);
    enum status status = block_reader_open(&reader, source, config, err);
    if (status == STATUS_OK && !lists)
        status = error_memory(err, bytes, "neighbours");
    if (status == STATUS_OK)
        status = queries ? search_queries(lists, out, &reader, queries, err)
                         : search_all(lists, out, &reader, err);
    if (status == STATUS_OK)
        status = hand_over(out, lists, count, config->n, reader.workers, err);
    free(lists);
    out->seconds_read = reader.seconds;
    block_reader_close(&reader);
    if (status != STATUS_OK)
        neighbours_clear(out);
    return status;
}
