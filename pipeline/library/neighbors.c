/* neighbors.c: the nearest of the caller's rows. */
#include "base/minmax.h"
#include "library/library.h"
#include "neighbours/neighbours.h"
#include <string.h>

/* Queries are processed in parts, each compared with all rows. */
static uint32_t part_of(uint64_t queries, const struct library *library, uint32_t columns,
                        uint32_t n)
{
    const uint64_t bytes = columns * sizeof(float) + n * UINT64_C(64) + 64;
    const uint64_t fit = library->machine.memory / 4 / bytes;
    return (uint32_t)min_u64(min_u64(queries, 1u << 30), fit ? fit : 1);
}

static enum status search(int64_t *neighbors, double *distances, struct library *library,
                          const struct clpipe_rows *given, const struct clpipe_rows *given_queries,
                          uint32_t n, int metric, struct error *err)
{
    const struct clustering_machine *machine = &library->machine;
    struct library_rows rows, queries;
    if (library_rows_open(&rows, given, err) != STATUS_OK ||
        (given_queries && library_rows_open(&queries, given_queries, err) != STATUS_OK) ||
        library_choice(metric, 3, "metric", err) != STATUS_OK)
        return err->status;
    const struct matrix_source *of = given_queries ? &queries.source : &rows.source;
    const uint64_t others = rows.source.rows - (!given_queries && rows.source.rows);
    if (of->dimension != rows.source.dimension)
        return error_set(err, STATUS_USAGE, "queries have %u columns, but rows have %u",
                         of->dimension, rows.source.dimension);
    if (n < 1 || n > others)
        return error_set(err, rows.source.rows ? STATUS_USAGE : STATUS_FAILED,
                         "n is %u, but there are %llu rows that can be neighbours", n,
                         (unsigned long long)others);
    struct neighbours_config config = clustering_search(machine, (enum cluster_metric)metric, n);
    config.devices = (struct cluster_devices){library->contexts.context, library->contexts.count};
    for (uint64_t done = 0; done < of->rows;) {
        struct neighbours found;
        const struct queries wanted = {.values = of,
                                       .first = done,
                                       .count =
                                           part_of(of->rows - done, library, of->dimension, n)};
        if (neighbours_find(&found, &rows.source, given_queries ? &wanted : NULL, &config, err) !=
            STATUS_OK)
            return err->status;
        const size_t places = (size_t)found.queries * n;
        if (neighbors)
            memcpy(neighbors + done * n, found.rows, places * sizeof *neighbors);
        if (distances)
            memcpy(distances + done * n, found.squared, places * sizeof *distances);
        done += found.queries;
        neighbours_clear(&found);
    }
    return STATUS_OK;
}

int clpipe_neighbors(int64_t *neighbors, double *distances, struct clpipe *clpipe,
                     const struct clpipe_rows *rows, const struct clpipe_rows *queries, uint32_t n,
                     int metric, const struct clpipe_watch *watch, struct clpipe_error *err)
{
    struct error why = ERROR_INIT;
    struct library *library = library_begin(clpipe, watch, &why);
    if (library)
        search(neighbors, distances, library, rows, queries, n, metric, &why);
    return library_end(library, &why, err);
}
