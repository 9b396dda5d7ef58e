/* affinity.h: the graph of nearest rows, and diffusion on it: how much of what flows from some rows
 * to their neighbours, and on to the neighbours of those, reaches each row.
 *
 * Zhou, Weston, Gretton, Bousquet, Schoelkopf: Ranking on Data Manifolds, NIPS 2003. The solver is
 * the Chebyshev semi-iterative method (Golub, Van Loan: Matrix Computations, 4th ed., 11.2.8),
 * which needs no inner products, unlike conjugate gradients. docs/search.md has the formulas. */
#ifndef CLPIPE_NEIGHBOURS_AFFINITY_H
#define CLPIPE_NEIGHBOURS_AFFINITY_H

#include "neighbours/edges.h"

/* Neighbours per row. */
#define AFFINITY_NEIGHBOURS 15
/* Starts that are solved at a time. */
#define AFFINITY_LANES 8

/* The affinity of two rows, given their squared lengths and their squared distance, which is
 * rounded to float32: the cube of the cosine, 0 if that is negative or a length is 0.
 * Thread-safe. */
double affinity_of(double square_x, double square_y, double squared);

/* The weights of the edges are a S_ij. nearest: for all rows, at least AFFINITY_NEIGHBOURS each or all others; squares: the squared
 * length of each row. STATUS_FAILED: out of memory. Close the graph even after an error. */
enum status affinity_open(struct edges *out, const struct neighbours *nearest,
                          const double *squares, struct error *err);

/* The source of a diffusion: `count` rows with shares that add up to 1. */
struct affinity_start {
    uint32_t count;
    uint32_t rows[AFFINITY_NEIGHBOURS];
    double shares[AFFINITY_NEIGHBOURS];
};

/* scores: rows x AFFINITY_LANES, the solutions for AFFINITY_LANES starts; scratch: the same size.
 * Scores below 2^-40, which exceeds the method's error, become 0. The bits of a lane do not depend
 * on the other lanes. Thread-safe. */
void affinity_diffuse(double *scores, double *scratch, const struct edges *affinity,
                      const struct affinity_start starts[AFFINITY_LANES]);

#endif
