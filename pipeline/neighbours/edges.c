/* edges.c: counts the edges of each row, lists them, and merges those of one pair. */
#include "neighbours/edges.h"

#include <stdlib.h>
#include <string.h>

/* Only counts it until edges are allocated. */
static void add_edge(struct edges *edges, uint64_t from, uint64_t to, double weight)
{
    if (edges->edge)
        edges->edge[edges->begin[from]++] = (struct edge){(uint32_t)to, weight};
    else
        edges->begin[from + 1]++;
}

static void add_edges(struct edges *edges, const struct edges_source *source)
{
    for (uint64_t row = 0; row < edges->rows; row++)
        for (uint32_t i = 0; i < source->used; i++) {
            const int64_t other = source->nearest->rows[row * source->nearest->n + i];
            const double weight = edges_is_other(edges->rows, row, other)
                                      ? source->weight(source->context, row, i)
                                      : 0;
            if (weight <= 0)
                continue;
            add_edge(edges, row, (uint64_t)other, weight);
            add_edge(edges, (uint64_t)other, row, weight);
        }
}

static int by_row(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

/* Sorts the edges of a row to `to`, which may overlap them, and merges those of one pair; returns how
 * many remain. */
static uint64_t merge_edges(struct edge *to, struct edge *from, uint64_t count, bool adds)
{
    uint64_t kept = 0;
    qsort(from, count, sizeof *from, by_row);
    for (uint64_t i = 0; i < count; i++) {
        if (kept == 0 || to[kept - 1].row != from[i].row)
            to[kept++] = from[i];
        else if (adds)
            to[kept - 1].weight = (double)(float)(to[kept - 1].weight + from[i].weight);
    }
    return kept;
}

enum status edges_open(struct edges *out, const struct edges_source *source, struct error *err)
{
    const uint64_t rows = source->nearest->queries;
    *out = (struct edges){.rows = rows, .begin = calloc(rows + 1, sizeof *out->begin)};
    if (!out->begin)
        return error_memory(err, rows * sizeof *out->begin, "a graph");
    add_edges(out, source);
    for (uint64_t row = 0; row < rows; row++)
        out->begin[row + 1] += out->begin[row];
    out->edge = malloc((out->begin[rows] + 1) * sizeof *out->edge);
    if (!out->edge)
        return error_memory(err, out->begin[rows] * sizeof *out->edge, "a graph");
    add_edges(out, source);
    memmove(out->begin + 1, out->begin, rows * sizeof *out->begin);
    out->begin[0] = 0;
    uint64_t kept = 0;
    for (uint64_t row = 0; row < rows; row++) {
        const uint64_t first = out->begin[row];
        out->begin[row] = kept;
        kept += merge_edges(out->edge + kept, out->edge + first, out->begin[row + 1] - first,
                            source->adds);
    }
    out->begin[rows] = kept;
    return STATUS_OK;
}

void edges_close(struct edges *edges)
{
    free(edges->begin);
    free(edges->edge);
    *edges = (struct edges){0};
}
