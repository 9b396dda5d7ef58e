/* diffusing.c: reads the stored graph or makes one. */
#include "jobs/diffusing.h"
#include "base/path.h"
#include "jobs/clustering.h"
#include "matrix/projected.h"
#include "result/graph.h"
#include <stdlib.h>
#include <string.h>

/* STATUS_END: it is of other rows, of another metric, or too short. */
static enum status read_graph(struct neighbours *out, struct graph *graph,
                              struct matrix_input *input, uint32_t n,
                              enum cluster_metric metric, struct error *err)
{
    char content[65], shown[256];
    if (graph->n < n || graph->rows != input->source.rows ||
        strcmp(graph->metric, metric_names[metric]) != 0)
        return STATUS_END;
    enum status status = matrix_input_identity(input, content, err);
    if (status != STATUS_OK)
        return status;
    if (strcmp(graph->content, content) != 0)
        return STATUS_END;
    const size_t places = (size_t)graph->rows * graph->n;
    float *squared = malloc(places * sizeof *squared);
    *out = (struct neighbours){.queries = graph->rows,
                               .n = graph->n,
                               .rows = malloc(places * sizeof *out->rows),
                               .squared = malloc(places * sizeof *out->squared)};
    if (!squared || !out->rows || !out->squared)
        status = error_memory(err, places * sizeof *out->squared, "neighbours");
    if (status == STATUS_OK)
        status = graph_read(graph, 0, graph->rows, out->rows, squared, err);
    for (size_t i = 0; i < places && status == STATUS_OK; i++) {
        out->squared[i] = (double)squared[i];
        if (out->rows[i] < -1 || out->rows[i] >= (int64_t)graph->rows)
            status = error_set(err, STATUS_FAILED, "%s is damaged: /neighbours/%s has row %lld of %llu",
                               path_for_message(shown, sizeof shown, input->path), input->about.name,
                               (long long)out->rows[i], (unsigned long long)graph->rows);
    }
    free(squared);
    if (status != STATUS_OK)
        neighbours_clear(out);
    return status;
}

enum status diffusing_nearest(struct neighbours *out, const struct matrix_source *rows,
                              struct matrix_input *input, uint32_t n,
                              const struct neighbours_config *search, struct error *err)
{
    struct neighbours_config config = *search;
    struct graph graph;
    enum status status = STATUS_END;
    *out = (struct neighbours){0};
    if (rows->read == input->source.read && rows->context == input->source.context) {
        status = graph_open(&graph, input->result, input->about.name, err);
        if (status == STATUS_OK) {
            status = read_graph(out, &graph, input, n, search->metric, err);
            graph_close(&graph);
        }
    }
    config.n = n;
    return status == STATUS_END ? neighbours_of_all(out, rows, &config, err) : status;
}
