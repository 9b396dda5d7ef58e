/* affinities.c: merges a neighbour graph with its transpose. */
#include "neighbours/affinities.h"

#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

struct edge {
    uint32_t target;
    float weight;
};

static bool is_neighbour(const struct layout_graph *graph, uint64_t row, int64_t neighbour)
{
    return neighbour >= 0 && (uint64_t)neighbour < graph->rows && (uint64_t)neighbour != row;
}

/* Sorts the edges of a row by target and merges those with the same target; returns how many
 * remain. They are few and nearly sorted: those from lower rows, then the row's own neighbours. */
static uint64_t merge_edges(struct edge *edge, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++) {
        const struct edge moved = edge[i];
        uint64_t j = i;
        for (; j > 0 && edge[j - 1].target > moved.target; j--)
            edge[j] = edge[j - 1];
        edge[j] = moved;
    }
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (kept > 0 && edge[kept - 1].target == edge[i].target)
            edge[kept - 1].weight += edge[i].weight;
        else
            edge[kept++] = edge[i];
    }
    return kept;
}

static int by_target(const void *a, const void *b)
{
    const struct edge *left = a, *right = b;
    return (left->target > right->target) - (left->target < right->target);
}

enum status affinities_open(struct affinities *out, const struct layout_graph *graph,
                            struct error *err)
{
    const uint64_t rows = graph->rows;
    const uint32_t used = min_u32(graph->neighbours, LAYOUT_NEIGHBOURS);
    *out = (struct affinities){.rows = rows};
    out->begin = calloc(rows + 1, sizeof *out->begin);
    uint64_t *end = calloc(rows + 1, sizeof *end);
    struct edge *edge = NULL;
    double total = 0;
    if (!out->begin || !end)
        goto fail;
    /* Each edge counts at its row and at its neighbour. */
    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t j = 0; j < used; j++) {
            const int64_t neighbour = graph->neighbour[i * graph->neighbours + j];
            if (is_neighbour(graph, i, neighbour)) {
                out->begin[i + 1]++;
                out->begin[neighbour + 1]++;
            }
        }
    }
    for (uint64_t i = 0; i < rows; i++)
        out->begin[i + 1] += out->begin[i];
    memcpy(end, out->begin, rows * sizeof *end);
    edge = malloc((out->begin[rows] + 1) * sizeof *edge);
    if (!edge)
        goto fail;
    for (uint64_t i = 0; i < rows; i++) {
        const int64_t *neighbour = graph->neighbour + i * graph->neighbours;
        uint32_t count = 0;
        for (uint32_t j = 0; j < used; j++)
            count += is_neighbour(graph, i, neighbour[j]);
        for (uint32_t j = 0; j < used; j++) {
            if (!is_neighbour(graph, i, neighbour[j]))
                continue;
            const float weight = 1.0f / (float)count;
            edge[end[i]++] = (struct edge){(uint32_t)neighbour[j], weight};
            edge[end[neighbour[j]]++] = (struct edge){(uint32_t)i, weight};
        }
    }
    uint64_t kept = 0;
    for (uint64_t i = 0; i < rows; i++) {
        const uint64_t first = out->begin[i], count = out->begin[i + 1] - first;
        /* The row is a neighbour of many others. */
        if (count > 256)
            qsort(edge + first, count, sizeof *edge, by_target);
        const uint64_t merged = merge_edges(edge + first, count);
        memmove(edge + kept, edge + first, merged * sizeof *edge);
        out->begin[i] = kept;
        kept += merged;
    }
    out->begin[rows] = kept;
    out->target = malloc((kept + 1) * sizeof *out->target);
    out->weight = malloc((kept + 1) * sizeof *out->weight);
    if (!out->target || !out->weight)
        goto fail;
    for (uint64_t k = 0; k < kept; k++)
        total += edge[k].weight;
    for (uint64_t k = 0; k < kept; k++) {
        out->target[k] = edge[k].target;
        out->weight[k] = (float)(edge[k].weight / total);
    }
    free(edge);
    free(end);
    return STATUS_OK;

fail:
    free(edge);
    free(end);
    affinities_close(out);
    return error_memory(err, rows * used * 2 * sizeof *edge, "a map");
}

void affinities_close(struct affinities *affinities)
{
    free(affinities->begin);
    free(affinities->target);
    free(affinities->weight);
    *affinities = (struct affinities){0};
}
