/* affinity.h: the graph of nearest rows, and diffusion on it: how much of what flows from some rows
 * to their neighbours, and on to their neighbours, reaches each row.
 *
 * Zhou, Weston, Gretton, Bousquet, Schoelkopf: Ranking on Data Manifolds, NIPS 2003. The solver is
 * the Chebyshev semi-iterative method (Golub, Van Loan: Matrix Computations, 4th ed., 11.2.8),
 * which needs no inner products, unlike conjugate gradients. docs/search.md has the formulas. */
#ifndef CLPIPE_NEIGHBOURS_AFFINITY_H
#define CLPIPE_NEIGHBOURS_AFFINITY_H

#include "neighbours/neighbour_types.h"

/* Neighbours per row. */
#define AFFINITY_NEIGHBOURS 15
/* Starts that are solved at a time. */
#define AFFINITY_LANES 8

/* One direction of an edge of row i, with weight a S_ij. */
struct affinity_edge {
    uint32_t row;
    double weight;
};

struct affinity {
    uint64_t rows;
    uint64_t *begin;             /* rows + 1: index of the first edge */
    struct affinity_edge *edges; /* of each row, by ascending `row` */
};

/* The affinity of two rows, given their squared lengths and their squared distance, which is
 * rounded to float32: the cube of the cosine, 0 if that is negative or a length is 0.
 * Thread-safe. */
double affinity_of(double square_x, double square_y, double squared);

/* nearest: for all rows, at least AFFINITY_NEIGHBOURS each or all others; squares: the squared
 * length of each row. STATUS_FAILED: out of memory. */
enum status affinity_open(struct affinity *out, const struct neighbours *nearest,
                          const double *squares, struct error *err);
void affinity_close(struct affinity *affinity);

/* The source of a diffusion: `count` rows with shares that add up to 1. */
struct affinity_start {
    uint32_t count;
    uint32_t rows[AFFINITY_NEIGHBOURS];
    double shares[AFFINITY_NEIGHBOURS];
};

/* scores: rows x AFFINITY_LANES, the solutions for AFFINITY_LANES starts; scratch: the same size.
 * Scores below 2^-40, which exceeds the method's error, become 0. The bits of a lane do not depend
 * on the other lanes. Thread-safe. */
void affinity_diffuse(double *scores, double *scratch, const struct affinity *affinity,
                      const struct affinity_start starts[AFFINITY_LANES]);

#endif
