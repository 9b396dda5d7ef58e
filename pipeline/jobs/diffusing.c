/* diffusing.c: reads the stored graph or computes one. */
#include "jobs/diffusing.h"
#include "base/held.h"
#include "base/path.h"
#include "matrix/projected.h"
#include "result/graph.h"
#include <stdlib.h>
#include <string.h>

enum status stored_neighbours(struct neighbours *out, const struct matrix_source *rows,
                              enum cluster_metric metric, uint32_t n, struct result *result,
                              const char *feature, struct error *err)
{
    struct graph graph;
    char content[65];
    SCOPED_HELD held = {0};
    *out = (struct neighbours){0};
    if (!rows->identity)
        return STATUS_END;
    enum status status = graph_open(&graph, result, feature, err);
    if (status != STATUS_OK)
        return status;
    if (graph.n < n || graph.rows != rows->rows || strcmp(graph.metric, metric_names[metric]) != 0)
        status = STATUS_END;
    if (status == STATUS_OK)
        status = rows->identity(rows->context, content, err);
    if (status == STATUS_OK && strcmp(graph.content, content) != 0)
        status = STATUS_END;
    if (status != STATUS_OK)
        goto out;
    const size_t places = (size_t)graph.rows * graph.n;
    float *squared = held_array(&held, places, sizeof *squared);
    *out = (struct neighbours){.queries = graph.rows,
                               .n = graph.n,
                               .rows = malloc(places * sizeof *out->rows),
                               .squared = malloc(places * sizeof *out->squared)};
    if (!squared || !out->rows || !out->squared)
        status = error_memory(err, places * sizeof *out->squared, "neighbours");
    if (status == STATUS_OK)
        status = graph_read(&graph, 0, graph.rows, out->rows, squared, err);
    for (size_t i = 0; i < places && status == STATUS_OK; i++) {
        out->squared[i] = (double)squared[i];
        if (out->rows[i] < -1 || out->rows[i] >= (int64_t)graph.rows)
            status =
                error_set(err, STATUS_FAILED, "%s is damaged: /neighbours/%s has row %lld of %llu",
                          PATH_TEXT(result->path), feature, (long long)out->rows[i],
                          (unsigned long long)graph.rows);
    }
out:
    graph_close(&graph);
    return status;
}

enum status diffusing_nearest(struct neighbours *out, const struct matrix_source *rows,
                              struct matrix_input *input, uint32_t n,
                              const struct neighbours_config *search, struct error *err)
{
    struct neighbours_config config = *search;
    const struct matrix_source *own = &input->source;
    config.n = n;
    const enum status status =
        rows->read == own->read && rows->context == own->context && own->rows == input->rows.rows
            ? stored_neighbours(out, &input->rows, search->metric, n, input->result,
                                input->about.name, err)
            : STATUS_END;
    return status == STATUS_END ? neighbours_find(out, rows, NULL, &config, err) : status;
}
