/* scan.c: blocks of rows, divided among the threads by queries or, if there are few, by rows. */
#include "neighbours/scan.h"
#include "base/held.h"
#include "base/minmax.h"
#include "kmeans/canonical.h"

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

enum status scan_rows(struct nearest *lists, struct block_reader *reader, const float *queries,
                      const uint32_t *own, uint32_t count, uint64_t *compared, struct error *err)
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
