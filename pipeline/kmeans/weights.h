/* weights.h: row weights.
 *
 * Weights are taken relative to the largest, as float32, so that only their proportions matter, and
 * as multiples of 2^-scale, which makes sums of any of them exact integers. docs/clustering.md
 * explains the consequences. */
#ifndef CLPIPE_KMEANS_WEIGHTS_H
#define CLPIPE_KMEANS_WEIGHTS_H

#include "base/error.h"
#include "ranks/comm.h"
#include <stdint.h>

/* Sums of weights, and of weighted values, have this many bits and a sign. */
#define WEIGHTS_SUM_BITS 62

struct weights {
    float *of_row; /* of the rank's rows, 0 to 1; NULL: all rows count the same */
    double unit;   /* the given weight that became 1 */
    int scale;
    int sum_bits; /* no sum of weights exceeds 2^sum_bits */
    double total; /* exact */
};

/* Takes the weights of the rank's n rows from `first` on; `given` has those of all rows, or is
 * NULL. A sum has at most `samples` rows, if that is more than there are. Collective.
 * STATUS_FAILED: one is negative or not finite, all are 0, or fewer than k are positive. */
enum status weights_open(struct weights *weights, struct comm *comm, const float *given,
                         uint64_t first, uint64_t n, uint64_t samples, uint32_t k,
                         struct error *err);
void weights_close(struct weights *weights);

/* A weight in units of 2^-scale. */
int64_t weights_units(const struct weights *weights, float weight);

/* The smallest b with 2^b >= n. */
int weights_bits_for(uint64_t n);

#endif
