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

/* Lists from which places of the result are filled, from `first` on. */
struct hand_over {
    struct neighbours *out;
    const struct nearest *lists;
    size_t first, count;
};

static void hand_over_part(void *context, uint64_t part)
{
    const struct hand_over *job = context;
    const size_t end = min_u64((part + 1) * PART_PLACES, job->count);
    for (size_t i = part * PART_PLACES; i < end; i++) {
        const struct nearest *one = &job->lists[i];
        const bool none = one->row == NEAREST_NONE;
        job->out->rows[job->first + i] = none ? -1 : (int64_t)one->row;
        job->out->squared[job->first + i] = none ? (double)NAN : one->squared;
    }
}

static void hand_over(struct neighbours *out, const struct nearest *lists, uint64_t first,
                      uint64_t count, struct workers *workers)
{
    struct hand_over job = {out, lists, first * out->n, count * out->n};
    workers_run(workers, hand_over_part, &job, (job.count + PART_PLACES - 1) / PART_PLACES);
}

/* As many queries at a time as a quarter of the memory has room for; each part is compared with all rows.
 * in_place: the results go to the places of these rows. */
static enum status search_queries(struct neighbours *out, struct block_reader *reader,
                                  const struct queries *queries, bool in_place, struct error *err)
{
    const size_t each = reader->stride * sizeof(float) + out->n * UINT64_C(64) + 64;
    const uint64_t fits = min_u64(reader->config->memory / 4 / each, 1u << 30);
    const uint32_t part = (uint32_t)min_u64(fits ? fits : 1, queries->count);
    SCOPED_HELD held = {0};
    float *values = held_array(&held, (uint64_t)part * reader->stride, sizeof *values);
    uint32_t *own = queries->rows ? held_array(&held, part, sizeof *own) : NULL;
    struct nearest *lists = held_array(&held, (uint64_t)part * out->n, sizeof *lists);
    enum status status = held_check(&held, "queries", err);
    for (uint64_t done = 0; done < queries->count && status == STATUS_OK; done += part) {
        const uint32_t count = (uint32_t)min_u64(part, queries->count - done);
        status = block_reader_queries(reader, queries, done, count, values, own, err);
        if (status == STATUS_OK)
            status = scan_rows(lists, reader, values, own, count, &out->compared, err);
        if (status == STATUS_OK && !in_place)
            hand_over(out, lists, done, count, reader->workers);
        for (uint32_t i = 0; i < count && status == STATUS_OK && in_place; i++)
            hand_over(out, lists + (size_t)i * out->n, own[i], 1, reader->workers);
    }
    return status;
}

static enum status search_all(struct neighbours *out, struct block_reader *reader,
                              struct error *err)
{
    const size_t count = (size_t)out->queries * out->n;
    struct nearest *lists = malloc(count * sizeof *lists + 1);
    uint64_t *again = NULL; /* rows left by the device */
    uint32_t left = 0;
    enum status status = STATUS_OK;
    if (!lists)
        return error_memory(err, count * sizeof *lists, "neighbours");
    if (device_pairs_pays(reader->config)) {
        status = device_pairs(lists, &again, &left, out, reader, err);
    } else {
        nearest_init(lists, count);
        status = host_pairs(lists, out, reader, err);
    }
    if (status == STATUS_OK)
        hand_over(out, lists, 0, out->queries, reader->workers);
    free(lists);
    const struct queries queries = {.rows = again, .count = left};
    if (status == STATUS_OK && left > 0)
        status = search_queries(out, reader, &queries, true, err);
    free(again);
    return status;
}

enum status neighbours_find(struct neighbours *out, const struct matrix_source *source,
                            const struct queries *queries, const struct neighbours_config *config,
                            struct error *err)
{
    struct block_reader reader;
    const uint64_t count = queries ? queries->count : source->rows;
    *out = (struct neighbours){.queries = count, .n = config->n};
    if (config->n == 0)
        return error_set(err, STATUS_USAGE, "the number of neighbours must be at least 1");
    if (source->rows > NEIGHBOURS_ROWS_MAX)
        return error_set(err, STATUS_FAILED, "%llu rows are too many: a search takes at most %u",
                         (unsigned long long)source->rows, NEIGHBOURS_ROWS_MAX);
    out->rows = calloc(count, config->n * sizeof *out->rows);
    out->squared = calloc(count, config->n * sizeof *out->squared);
    enum status status = block_reader_open(&reader, source, config, err);
    const int64_t begun = clock_now();
    if (status == STATUS_OK && (!out->rows || !out->squared))
        status = error_memory(err, count * config->n * 2 * sizeof *out->rows, "neighbours");
    if (status == STATUS_OK)
        status = queries ? search_queries(out, &reader, queries, false, err)
                         : search_all(out, &reader, err);
    out->seconds_read = reader.seconds;
    out->seconds_search = clock_seconds_since(begun) - reader.seconds - out->seconds_build;
    block_reader_close(&reader);
    if (status != STATUS_OK)
        neighbours_clear(out);
    return status;
}
