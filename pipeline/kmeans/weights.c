/* weights.c: converts weights as given to weights as counted. */
#include "kmeans/weights.h"
#include "kmeans/canonical.h"
#include <math.h>
#include <stdlib.h>

int weights_bits_for(uint64_t n)
{
    int bits = 0;
    while (bits < 63 && (uint64_t)1 << bits < n)
        bits++;
    return bits;
}

int64_t weights_units(const struct weights *weights, float weight)
{
    return canonical_fixed(weight, 1, weights->scale);
}

enum { LARGEST, DIFFERENT };

static void add_given(void *context, double *sums)
{
    const double *own = context;
    sums[LARGEST] = fmax(sums[LARGEST], own[LARGEST]);
    sums[DIFFERENT] += own[DIFFERENT];
}

/* The largest weight; *equal tells whether all are the same. */
static enum status find_largest(float *largest, bool *equal, struct comm *comm, const float *given,
                                uint64_t first, uint64_t n, struct error *err)
{
    double own[2] = {0, 0}, all[2] = {0, 0};
    for (uint64_t i = first; i < first + n; i++) {
        if (!(given[i] >= 0) || isinf(given[i]))
            return error_set(err, STATUS_FAILED,
                             "the weight of row %llu is %g; weights must be finite and at least 0",
                             (unsigned long long)i, (double)given[i]);
        own[LARGEST] = fmax(own[LARGEST], (double)given[i]);
        own[DIFFERENT] += given[i] != given[0];
    }
    if (comm_fold(comm, all, 2, NULL, add_given, own, err) != STATUS_OK)
        return err->status;
    *largest = (float)all[LARGEST];
    *equal = all[DIFFERENT] == 0;
    return *largest > 0 ? STATUS_OK : error_set(err, STATUS_FAILED, "the weight of every row is 0");
}

struct own_weights {
    const float *of_row;
    uint64_t n;
};

static void add_weights(void *context, double *sums)
{
    const struct own_weights *own = context;
    for (uint64_t i = 0; i < own->n; i++)
        sums[0] += (double)own->of_row[i];
}

enum status weights_open(struct weights *weights, struct comm *comm, const float *given,
                         uint64_t first, uint64_t n, uint64_t samples, uint32_t k,
                         struct error *err)
{
    float largest = 1;
    bool equal = true;
    *weights = (struct weights){.unit = 1};
    enum status status =
        given ? find_largest(&largest, &equal, comm, given, first, n, err) : STATUS_OK;
    weights->unit = (double)largest;
    if (status != STATUS_OK || equal)
        return status;
    weights->of_row = malloc(n * sizeof *weights->of_row);
    if (!weights->of_row)
        return error_memory(err, n * sizeof *weights->of_row, "weights");
    for (uint64_t i = 0; i < n; i++)
        weights->of_row[i] = (float)((double)given[first + i] / weights->unit);
    struct own_weights own = {weights->of_row, n};
    double total = 0;
    status = comm_fold(comm, &total, 1, NULL, add_weights, &own, err);
    if (status != STATUS_OK)
        return status;
    const uint64_t most = (uint64_t)ceil(total);
    weights->sum_bits = weights_bits_for(samples > most ? samples : most);
    weights->scale = WEIGHTS_SUM_BITS - weights->sum_bits;
    /* Less than half a unit counts as 0. */
    enum { SUM, POSITIVE };
    int64_t sums[2] = {0, 0};
    for (uint64_t i = 0; i < n; i++) {
        const int64_t units = weights_units(weights, weights->of_row[i]);
        weights->of_row[i] = (float)ldexp((double)units, -weights->scale);
        sums[SUM] += units;
        sums[POSITIVE] += units > 0;
    }
    status = comm_sum(comm, sums, sums, 2, err);
    if (status != STATUS_OK)
        return status;
    weights->total = ldexp((double)(uint64_t)sums[SUM], -weights->scale);
    if ((uint64_t)sums[POSITIVE] < k)
        return error_set(err, STATUS_FAILED,
                         "k is %u, larger than the number of rows with a weight above 0 (%lld); "
                         "choose a smaller k",
                         k, (long long)sums[POSITIVE]);
    return STATUS_OK;
}

void weights_close(struct weights *weights)
{
    free(weights->of_row);
    *weights = (struct weights){0};
}
