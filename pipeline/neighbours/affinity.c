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
/* The error is below 2 q^STEPS, with q = a / (1 + sqrt(1 - a a)) = 0.627: 2.2e-13. */
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

struct weighing {
    const struct neighbours *nearest;
    const double *squares;
};

static double weigh(const void *context, uint64_t row, uint32_t i)
{
    const struct weighing *weighing = context;
    const size_t at = (size_t)row * weighing->nearest->n + i;
    return affinity_of(weighing->squares[row], weighing->squares[weighing->nearest->rows[at]],
                       weighing->nearest->squared[at]);
}

enum status affinity_open(struct edges *out, const struct neighbours *nearest,
                          const double *squares, struct error *err)
{
    const struct weighing weighing = {nearest, squares};
    const struct edges_source source = {.nearest = nearest,
                                        .used = min_u32(nearest->n, AFFINITY_NEIGHBOURS),
                                        .weight = weigh,
                                        .context = &weighing};
    if (edges_open(out, &source, err) != STATUS_OK)
        return err->status;
    double *degrees = calloc((size_t)out->rows, sizeof *degrees);
    if (!degrees)
        return error_memory(err, out->rows * sizeof *degrees, "a graph");
    for (uint64_t row = 0; row < out->rows; row++)
        for (uint64_t i = out->begin[row]; i < out->begin[row + 1]; i++)
            degrees[row] += out->edge[i].weight;
    for (uint64_t row = 0; row < out->rows; row++)
        for (uint64_t i = out->begin[row]; i < out->begin[row + 1]; i++) {
            struct edge *edge = &out->edge[i];
            edge->weight = DAMPING * (edge->weight / sqrt(degrees[row] * degrees[edge->row]));
        }
    free(degrees);
    return STATUS_OK;
}

/* --- diffusion ---------------------------------------------------------------------------------- */

/* next = w (a S now - next) + next; the starts' contribution is added later. */
AVX2_TOO static void step(double *restrict next, const double *restrict now,
                          const struct edges *affinity, double w)
{
    for (uint64_t row = 0; row < affinity->rows; row++) {
        double sum[LANES] = {0};
        for (uint64_t i = affinity->begin[row]; i < affinity->begin[row + 1]; i++) {
            const double *from = now + (size_t)affinity->edge[i].row * LANES;
            const double weight = affinity->edge[i].weight;
            for (unsigned l = 0; l < LANES; l++)
                sum[l] += weight * from[l];
        }
        for (unsigned l = 0; l < LANES; l++)
            next[row * LANES + l] += w * (sum[l] - next[row * LANES + l]);
    }
}

void affinity_diffuse(double *scores, double *scratch, const struct edges *affinity,
                      const struct affinity_start starts[AFFINITY_LANES])
{
    const size_t count = (size_t)affinity->rows * LANES;
    double w = 1;
    memset(scores, 0, count * sizeof *scores);
    memset(scratch, 0, count * sizeof *scratch);
    /* Each step overwrites the scores of the one before the last; the last of STEPS, an even
     * number, writes `scores`. */
    for (unsigned k = 0; k < STEPS; k++) {
        double *to = k % 2 ? scores : scratch;
        const double *from = k % 2 ? scratch : scores;
        step(to, from, affinity, w);
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
