/* edges.h: a symmetric sparse matrix over rows, made from each row's nearest ones. */
#ifndef CLPIPE_NEIGHBOURS_EDGES_H
#define CLPIPE_NEIGHBOURS_EDGES_H

#include "neighbours/neighbour_types.h"

struct edge {
    uint32_t row;
    double weight;
};

/* The edges of row i are edge[begin[i]] to edge[begin[i + 1]], by ascending `row`. */
struct edges {
    uint64_t rows;
    uint64_t *begin; /* rows + 1 */
    struct edge *edge;
};

/* What a graph is made from: the first `used` neighbours of each row; -1, other numbers that are not
 * rows, and the row itself make no edge. */
struct edges_source {
    const struct neighbours *nearest; /* of all rows */
    uint32_t used;
    /* The weight of neighbour i of a row; at most 0: no edge. */
    double (*weight)(const void *context, uint64_t row, uint32_t i);
    const void *context;
    bool adds; /* pairs nearest in both directions get the sum, in float32, not the weight */
};

/* Each pair has its weight in both directions. STATUS_FAILED: out of memory. Close it even after an
 * error. */
enum status edges_open(struct edges *out, const struct edges_source *source, struct error *err);
void edges_close(struct edges *edges);

/* Is it the number of another row? */
static inline bool edges_is_other(uint64_t rows, uint64_t row, int64_t other)
{
    return other >= 0 && (uint64_t)other < rows && (uint64_t)other != row;
}

#endif
