/* weights.c: weights as they are given, and as they count. */
#include "cluster/weights.h"
#include "cluster/canonical.h"
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
    return canonical_fixed(weight, weights->scale);
}

/* The largest weight; *equal tells whether there is another one. */
static enum status find_largest(float *largest, bool *equal, const float *given, uint64_t n,
                                struct error *err)
{
    *largest = 0;
    *equal = true;
    for (uint64_t i = 0; i < n; i++) {
        if (!(given[i] >= 0) || isinf(given[i]))
            return error_set(err, STATUS_FAILED,
                             "the weight of row %llu is %g; weights are finite numbers from 0 on",
                             (unsigned long long)i, (double)given[i]);
        if (given[i] > *largest)
            *largest = given[i];
        if (given[i] != given[0])
            *equal = false;
    }
    return *largest > 0 ? STATUS_OK : error_set(err, STATUS_FAILED, "the weight of every row is 0");
}

enum status weights_open(struct weights *weights, const float *given, uint64_t n, uint64_t samples,
                         uint32_t k, struct error *err)
{
    float largest = 1;
    bool equal = true;
    *weights = (struct weights){.unit = 1};
    enum status status = given ? find_largest(&largest, &equal, given, n, err) : STATUS_OK;
    weights->unit = (double)largest;
    if (status != STATUS_OK || equal)
        return status;
    weights->of_row = malloc(n * sizeof *weights->of_row);
    if (!weights->of_row)
        return error_memory(err, n * sizeof *weights->of_row, "weights");
    double total = 0;
    for (uint64_t i = 0; i < n; i++) {
        weights->of_row[i] = (float)((double)given[i] / weights->unit);
        total += (double)weights->of_row[i];
    }
    const uint64_t most = (uint64_t)ceil(total);
    weights->sum_bits = weights_bits_for(samples > most ? samples : most);
    weights->scale = WEIGHTS_SUM_BITS - weights->sum_bits;
    /* Less than half a unit is nothing. */
    uint64_t sum = 0, positive = 0;
    for (uint64_t i = 0; i < n; i++) {
        const int64_t units = weights_units(weights, weights->of_row[i]);
        weights->of_row[i] = (float)ldexp((double)units, -weights->scale);
        sum += (uint64_t)units;
        positive += units > 0;
    }
    weights->total = ldexp((double)sum, -weights->scale);
    if (positive < k)
        return error_set(err, STATUS_FAILED,
                         "k is %u, and only %llu rows have a weight above 0; choose a smaller k", k,
                         (unsigned long long)positive);
    return STATUS_OK;
}

void weights_close(struct weights *weights)
{
    free(weights->of_row);
    *weights = (struct weights){0};
}
