/* affinity.h: the graph of nearest rows, and diffusion on it: how much of what flows from some rows to
 * their neighbours, and on to theirs, reaches each row.
 *
 * Zhou, Weston, Gretton, Bousquet, Schoelkopf: Ranking on Data Manifolds, NIPS 2003. The solver is the
 * Chebyshev semi-iterative method (Golub, Van Loan: Matrix Computations, 4th ed., 11.2.8): unlike
 * conjugate gradients it has no inner products. docs/search.md has the formulas. */
#ifndef CLPIPE_SEARCH_AFFINITY_H
#define CLPIPE_SEARCH_AFFINITY_H

#include "search/neighbour_types.h"

/* Neighbours of each row. */
#define AFFINITY_NEIGHBOURS 15
/* Starts that are solved for at a time. */
#define AFFINITY_LANES 8

/* One direction of an edge of row i, with a S_ij. */
struct affinity_edge {
    uint32_t row;
    double weight;
};

struct affinity {
    uint64_t rows;
    uint64_t *begin;             /* rows + 1: of its edges */
    struct affinity_edge *edges; /* of each row by ascending `row` */
};

/* The affinity of two rows with these squared lengths and this squared distance, which counts as
 * float32: the cube of the cosine, 0 where that is negative or a length is 0. */
double affinity_of(double square_x, double square_y, double squared);

/* nearest: of all rows, at least AFFINITY_NEIGHBOURS of each or all others; squares: of each row's
 * length. */
enum status affinity_open(struct affinity *out, const struct neighbours *nearest,
                          const double *squares, struct error *err);
void affinity_close(struct affinity *affinity);

/* What is diffused: `count` rows with shares that add up to 1. */
struct affinity_start {
    uint32_t count;
    uint32_t rows[AFFINITY_NEIGHBOURS];
    double shares[AFFINITY_NEIGHBOURS];
};

/* scores: rows x AFFINITY_LANES, the solutions for AFFINITY_LANES starts; scratch: as many. A score
 * below 2^-40, more than the error of the method, is 0. Each lane has the same bits whatever the
 * others. */
void affinity_diffuse(double *scores, double *scratch, const struct affinity *affinity,
                      const struct affinity_start starts[AFFINITY_LANES]);

#endif
