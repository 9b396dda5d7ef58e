/* neighbors.c: the nearest of the caller's rows. */
#include "base/minmax.h"
#include "library/library.h"
#include "neighbours/neighbours.h"
#include <string.h>

/* Queries are searched for in parts, which are looked at with all rows. */
static uint32_t part_of(uint64_t queries, const struct library *library, uint32_t columns,
                        uint32_t n)
{
    const uint64_t bytes = columns * sizeof(float) + n * UINT64_C(64) + 64;
    const uint64_t fit = library->machine.memory / 4 / bytes;
    return (uint32_t)min_u64(min_u64(queries, 1u << 30), fit ? fit : 1);
}

int clpipe_neighbors(int64_t *neighbors, double *distances, struct clpipe *clpipe,
                     const struct clpipe_rows *given, const struct clpipe_rows *given_queries,
                     uint32_t n, int metric, const struct clpipe_watch *watch,
                     struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct library_rows rows, queries = {.source = {0}};
    int code;
    struct library *library = library_begin(clpipe, watch, err, &code);
    if (!library)
        return code;
    const struct clustering_machine *machine = &library->machine;
    enum status status = library_rows_open(&rows, given, &why);
    if (status == STATUS_OK && given_queries)
        status = library_rows_open(&queries, given_queries, &why);
    const uint64_t others =
        status == STATUS_OK ? rows.source.rows - (!given_queries && rows.source.rows) : 0;
    if (status == STATUS_OK)
        status = library_choice(metric, 3, "metric", &why);
    if (status == STATUS_OK && given_queries && queries.source.dimension != rows.source.dimension)
        status = error_set(&why, STATUS_USAGE, "queries have %u columns, but rows have %u",
                           queries.source.dimension, rows.source.dimension);
    if (status == STATUS_OK && (n < 1 || n > others))
        status = error_set(&why, rows.source.rows ? STATUS_USAGE : STATUS_FAILED,
                           "n is %u, but there are %llu rows that can be neighbours", n,
                           (unsigned long long)others);
    const struct neighbours_config config = {
        .metric = (enum cluster_metric)metric,
        .n = n,
        .threads = machine->threads,
        .memory = machine->memory,
        .device_memory = machine->device_memory,
        .devices = {library->contexts.context, library->contexts.count},
        .stop = machine->stop,
        .phase = machine->progress.phase,
        .progress_context = machine->progress.context};
    const uint64_t count = given_queries ? queries.source.rows : rows.source.rows;
    uint64_t done = 0;
    while (status == STATUS_OK && done < count) {
        struct neighbours found;
        const uint32_t part = part_of(count - done, library, rows.source.dimension, n);
        status = given_queries ? neighbours_of_queries(&found, &rows.source, &queries.source, done,
                                                       part, &config, &why)
                               : neighbours_of_all(&found, &rows.source, &config, &why);
        if (status != STATUS_OK)
            break;
        const size_t places = (size_t)found.queries * n;
        if (neighbors)
            memcpy(neighbors + done * n, found.rows, places * sizeof *neighbors);
        if (distances)
            memcpy(distances + done * n, found.squared, places * sizeof *distances);
        done += found.queries;
        neighbours_clear(&found);
    }
    return library_end(library, status, &why, err);
}
