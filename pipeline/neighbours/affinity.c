/* affinity.c: builds the graph, and solves (I - a S) f = (1 - a) y on it. */
#include "neighbours/affinity.h"
#include "base/avx2.h"
#include "base/minmax.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LANES AFFINITY_LANES
/* a: the share of a row's score that comes from its neighbours. */
#define DAMPING 0.9
/* The error is below 2 q^STEPS, q = a / (1 + sqrt(1 - a a)) = 0.627: 2.2e-13. */
#define STEPS       64
#define LEAST_SCORE 0x1p-40

double affinity_of(double square_x, double square_y, double squared)
{
    const double product = sqrt(square_x * square_y);
    const double twice = (square_x + square_y) - (double)(float)squared;
    if (!(product > 0) || !(twice > 0))
        return 0;
    const double cosine = fmin(twice / (2 * product), 1);
    return cosine * cosine * cosine;
}

/* --- the graph ---------------------------------------------------------------------------------- */

static uint32_t width(const struct neighbours *nearest)
{
    return min_u32(nearest->n, AFFINITY_NEIGHBOURS);
}

static bool is_near(const struct neighbours *nearest, uint64_t row, uint64_t other)
{
    const int64_t *rows = nearest->rows + row * nearest->n;
    for (uint32_t i = 0; i < width(nearest); i++)
        if (rows[i] == (int64_t)other)
            return true;
    return false;
}

/* Only counts it until edges are allocated. */
static void add_edge(struct affinity *affinity, uint64_t from, uint64_t to, double weight)
{
    if (affinity->edges)
        affinity->edges[affinity->begin[from]++] = (struct affinity_edge){(uint32_t)to, weight};
    else
        affinity->begin[from + 1]++;
}

/* A pair is an edge if either row is among the nearest of the other. */
static void add_edges(struct affinity *affinity, const struct neighbours *nearest,
                      const double *squares)
{
    for (uint64_t row = 0; row < affinity->rows; row++)
        for (uint32_t i = 0; i < width(nearest); i++) {
            const size_t at = (size_t)row * nearest->n + i;
            const int64_t other = nearest->rows[at];
            if (other < 0)
                break;
            const double weight = affinity_of(squares[row], squares[other], nearest->squared[at]);
            if (weight <= 0)
                continue;
            add_edge(affinity, row, (uint64_t)other, weight);
            if (!is_near(nearest, (uint64_t)other, row))
                add_edge(affinity, (uint64_t)other, row, weight);
        }
}

static int compare_edges(const void *a, const void *b)
{
    const struct affinity_edge *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

enum status affinity_open(struct affinity *out, const struct neighbours *nearest,
                          const double *squares, struct error *err)
{
    const uint64_t rows = nearest->queries;
    *out = (struct affinity){.rows = rows, .begin = calloc((size_t)rows + 1, sizeof *out->begin)};
    double *degrees = calloc((size_t)rows, sizeof *degrees);
    enum status status = STATUS_OK;
    if (!out->begin || !degrees) {
        status = error_memory(err, rows * 2 * sizeof *degrees, "a graph");
        goto end;
    }
    add_edges(out, nearest, squares);
    for (uint64_t row = 0; row < rows; row++)
        out->begin[row + 1] += out->begin[row];
    const size_t count = out->begin[rows];
    out->edges = malloc((count + 1) * sizeof *out->edges);
    if (!out->edges) {
        status = error_memory(err, count * sizeof *out->edges, "a graph");
        goto end;
    }
    add_edges(out, nearest, squares);
    memmove(out->begin + 1, out->begin, (size_t)rows * sizeof *out->begin);
    out->begin[0] = 0;
    for (uint64_t row = 0; row < rows; row++) {
        struct affinity_edge *edges = out->edges + out->begin[row];
        const size_t some = out->begin[row + 1] - out->begin[row];
        qsort(edges, some, sizeof *edges, compare_edges);
        for (size_t i = 0; i < some; i++)
            degrees[row] += edges[i].weight;
    }
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t i = out->begin[row]; i < out->begin[row + 1]; i++) {
            struct affinity_edge *edge = &out->edges[i];
            edge->weight = DAMPING * (edge->weight / sqrt(degrees[row] * degrees[edge->row]));
        }
end:
    free(degrees);
    return status;
}

void affinity_close(struct affinity *affinity)
{
    free(affinity->begin);
    free(affinity->edges);
    *affinity = (struct affinity){0};
}

/* --- diffusion ---------------------------------------------------------------------------------- */

/* next = w (a S now - next) + next; the starts' contribution is added later. */
ALWAYS_INLINE void step_body(double *restrict next, const double *restrict now,
                             const struct affinity *affinity, double w)
{
    for (uint64_t row = 0; row < affinity->rows; row++) {
        double sum[LANES] = {0};
        for (uint64_t i = affinity->begin[row]; i < affinity->begin[row + 1]; i++) {
            const double *from = now + (size_t)affinity->edges[i].row * LANES;
            const double weight = affinity->edges[i].weight;
            for (unsigned l = 0; l < LANES; l++)
                sum[l] += weight * from[l];
        }
        for (unsigned l = 0; l < LANES; l++)
            next[row * LANES + l] += w * (sum[l] - next[row * LANES + l]);
    }
}

static void step_plain(double *restrict next, const double *restrict now,
                       const struct affinity *affinity, double w)
{
    step_body(next, now, affinity, w);
}

AVX2_LOOPS static void step_avx2(double *restrict next, const double *restrict now,
                                 const struct affinity *affinity, double w)
{
    step_body(next, now, affinity, w);
}

void affinity_diffuse(double *scores, double *scratch, const struct affinity *affinity,
                      const struct affinity_start starts[AFFINITY_LANES])
{
    const bool avx2 = cpu_has_avx2();
    const size_t count = (size_t)affinity->rows * LANES;
    double w = 1;
    memset(scores, 0, count * sizeof *scores);
    memset(scratch, 0, count * sizeof *scratch);
    /* Each step overwrites the scores of the one before the last; the last of STEPS, an even
     * number, writes `scores`. */
    for (unsigned k = 0; k < STEPS; k++) {
        double *to = k % 2 ? scores : scratch;
        (avx2 ? step_avx2 : step_plain)(to, k % 2 ? scratch : scores, affinity, w);
        for (unsigned l = 0; l < LANES; l++)
            for (uint32_t i = 0; i < starts[l].count; i++)
                to[(size_t)starts[l].rows[i] * LANES + l] +=
                    w * ((1 - DAMPING) * starts[l].shares[i]);
        w = 1 / (1 - DAMPING * DAMPING * (k == 0 ? 0.5 : 0.25 * w));
    }
    for (size_t i = 0; i < count; i++)
        if (!(scores[i] >= LEAST_SCORE))
            scores[i] = 0;
}
