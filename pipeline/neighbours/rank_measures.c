/* rank_measures.c: sums over queries. */
#include "neighbours/rank_measures.h"
#include <math.h>
#include <stdlib.h>

enum status measured_classes_open(struct measured_classes *out, const uint32_t *of_row,
                                  uint64_t rows, uint32_t count, struct error *err)
{
    *out = (struct measured_classes){of_row, rows, count,
                                     calloc((size_t)count + 1, sizeof *out->sizes)};
    if (!out->sizes)
        return error_memory(err, count * sizeof *out->sizes, "classes");
    for (uint64_t row = 0; row < rows; row++)
        if (of_row[row] != RANKING_NO_CLASS)
            out->sizes[of_row[row]]++;
    return STATUS_OK;
}

void measured_classes_close(struct measured_classes *classes)
{
    free(classes->sizes);
    *classes = (struct measured_classes){0};
}

enum status measures_sum_up(struct ranking *out, const struct measured *measured,
                            const struct measured_classes *classes, struct error *err)
{
    struct class_sum {
        double precision;
        uint64_t queries;
    } *sums = calloc((size_t)classes->count + 1, sizeof *sums);
    uint64_t hits_1 = 0, hits_5 = 0, hits_10 = 0, with = 0;
    double sum = 0, sum_of_classes = 0;
    if (!sums)
        return error_memory(err, classes->count * sizeof *sums, "classes");
    for (uint64_t row = 0; row < classes->rows; row++) {
        const struct measured *one = &measured[row];
        if (!measures_is_query(classes, row))
            continue;
        out->queries++;
        sum += one->precision;
        hits_1 += one->hits_1;
        hits_5 += one->hits_5;
        hits_10 += one->hits_10;
        sums[classes->of_row[row]].precision += one->precision_of_first;
        sums[classes->of_row[row]].queries++;
    }
    for (uint32_t c = 0; c < classes->count; c++)
        if (sums[c].queries > 0) {
            sum_of_classes += sums[c].precision / (double)sums[c].queries;
            with++;
        }
    free(sums);
    const double queries = out->queries > 0 ? (double)out->queries : (double)NAN;
    out->map = sum / queries;
    out->precision_at_1 = (double)hits_1 / queries;
    out->precision_at_5 = (double)hits_5 / (5 * queries);
    out->precision_at_10 = (double)hits_10 / (10 * queries);
    out->mmap_at_10 = out->queries > 0 ? sum_of_classes / (double)with : (double)NAN;
    return STATUS_OK;
}
