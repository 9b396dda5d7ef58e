/* labelled.c: each function of rows makes one pass over them. */
#include "base/labelled.h"
#include <stdlib.h>
#include <string.h>

void labelled_count(uint64_t *sizes, int64_t *nearest, uint32_t n, const int32_t *labels,
                    const float *distances, uint64_t rows, uint32_t first, uint32_t k)
{
    memset(sizes, 0, k * sizeof *sizes);
    for (uint64_t i = 0; i < (uint64_t)k * n; i++)
        nearest[i] = -1;
    for (uint64_t row = 0; row < rows; row++) {
        const uint32_t label = (uint32_t)labels[row] - first;
        if (label >= k)
            continue;
        int64_t *own = nearest + (uint64_t)label * n;
        uint32_t place = n;
        sizes[label]++;
        while (place > 0 && (own[place - 1] < 0 || distances[row] < distances[own[place - 1]]))
            place--;
        if (place == n)
            continue;
        memmove(own + place + 1, own + place, (n - 1 - place) * sizeof *own);
        own[place] = (int64_t)row;
    }
}

double labelled_inertia(const int32_t *labels, const float *distances, const float *weights,
                        uint64_t rows)
{
    double sum = 0;
    for (uint64_t row = 0; row < rows; row++)
        if (labels[row] >= 0)
            sum += (double)distances[row] * (weights ? (double)weights[row] : 1);
    return sum;
}

void cluster_sweep_clear(struct cluster_sweep *sweep)
{
    free(sweep->values);
    *sweep = (struct cluster_sweep){0};
}

double cluster_sweep_score(const struct cluster_sweep *sweep, uint32_t i)
{
    const struct cluster_measures *measures = &sweep->values[i].measures;
    return strcmp(sweep->measure, "simplified_silhouette") == 0 ? measures->simplified_silhouette
                                                                : measures->silhouette;
}
