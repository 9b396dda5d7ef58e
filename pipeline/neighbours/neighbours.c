/* neighbours.c: checks the request, chooses how to compare rows, compares queries with all rows by the
 * canonical distance, and fills in the result. */
#include "neighbours/neighbours.h"
#include "base/clock.h"
#include "base/held.h"
#include "base/minmax.h"
#include "kmeans/canonical.h"
#include "neighbours/device_pairs.h"
#include "neighbours/host_pairs.h"
#include "neighbours/nearest.h"
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

/* --- queries: blocks of rows, divided among the threads by queries or, if there are few, by rows ---- */

/* Queries per part. */
#define QUERIES_PART 4
/* Parts per thread, so that all finish at about the same time. */
#define PARTS_THREAD 4
#define BLOCK_BYTES  (16u << 20)

struct scan {
    const float *rows, *queries;
    const uint32_t *own;
    struct nearest *lists; /* slices x count x n */
    uint64_t first;        /* number of the block's first row */
    uint32_t block, stride, count, n, slices;
};

static void scan_part(void *context, uint64_t part)
{
    const struct scan *scan = context;
    const uint32_t slice = (uint32_t)(part % scan->slices);
    const uint32_t from = (uint32_t)((uint64_t)scan->block * slice / scan->slices);
    const uint32_t to = (uint32_t)((uint64_t)scan->block * (slice + 1) / scan->slices);
    const uint32_t query = (uint32_t)(part / scan->slices) * QUERIES_PART;
    const uint32_t end = min_u32(query + QUERIES_PART, scan->count);
    for (uint32_t row = from; row < to; row++)
        for (uint32_t q = query; q < end; q++) {
            const uint32_t number = (uint32_t)(scan->first + row);
            if (scan->own && scan->own[q] == number)
                continue;
            struct nearest *list = scan->lists + ((size_t)slice * scan->count + q) * scan->n;
            nearest_add(list, scan->n,
                        canonical_distance(scan->queries + (size_t)q * scan->stride,
                                           scan->rows + (size_t)row * scan->stride, scan->stride),
                        number);
        }
}

/* lists: count x n, in order. queries: count x stride values in the metric's space; own: the row number of
 * each query; NULL: no query is a row. *compared: adds the number of pairs. */
static enum status scan_rows(struct nearest *lists, struct block_reader *reader,
                             const float *queries, const uint32_t *own, uint32_t count,
                             uint64_t *compared, struct error *err)
{
    const struct neighbours_config *config = reader->config;
    const uint64_t total = reader->source->rows;
    const size_t row_bytes = reader->stride * sizeof(float);
    const uint32_t parts = (count + QUERIES_PART - 1) / QUERIES_PART;
    const uint32_t wanted = workers_count(reader->workers) * PARTS_THREAD;
    struct scan scan = {.queries = queries,
                        .own = own,
                        .stride = reader->stride,
                        .count = count,
                        .n = config->n,
                        .slices = parts < wanted ? (wanted + parts - 1) / parts : 1};
    const size_t list_count = (size_t)scan.slices * count * config->n;
    const uint64_t fits = min_u64(BLOCK_BYTES, config->memory / 4) / row_bytes;
    const uint32_t block = (uint32_t)min_u64(fits ? fits : 1, total);
    SCOPED_HELD held = {0};
    float *rows = held_array(&held, block, row_bytes);
    struct nearest *own_lists =
        scan.slices > 1 ? held_array(&held, list_count, sizeof *lists) : NULL;
    enum status status = held_check(&held, "rows to compare", err);
    scan.rows = rows;
    scan.lists = own_lists ? own_lists : lists;
    if (status == STATUS_OK)
        nearest_init(scan.lists, list_count);
    for (uint64_t first = 0; first < total && status == STATUS_OK; first += scan.block) {
        scan.first = first;
        scan.block = (uint32_t)min_u64(block, total - first);
        status = block_reader_read(reader, first, scan.block, rows, err);
        if (status == STATUS_OK)
            workers_run(reader->workers, scan_part, &scan, (uint64_t)parts * scan.slices);
        *compared += (uint64_t)scan.block * count;
        if (status == STATUS_OK)
            watch_show(&config->watch, "rows read", first + scan.block, total);
    }
    if (status == STATUS_OK && own_lists) {
        nearest_init(lists, (size_t)count * config->n);
        for (uint32_t slice = 0; slice < scan.slices; slice++)
            for (size_t i = 0; i < (size_t)count * config->n; i++) {
                const struct nearest *one = &own_lists[(size_t)slice * count * config->n + i];
                if (one->row != NEAREST_NONE)
                    nearest_add(lists + i / config->n * config->n, config->n, one->squared,
                                one->row);
            }
    }
    return status;
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

/* --- all rows ----------------------------------------------------------------------------------- */

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
