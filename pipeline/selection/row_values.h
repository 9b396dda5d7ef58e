/* row_values.h: the rows of candidates in the space of a metric, from memory where they fit, else from the
 * file, again in each pass. */
#ifndef CLPIPE_SELECTION_ROW_VALUES_H
#define CLPIPE_SELECTION_ROW_VALUES_H

#include "cluster/workers.h"
#include "clustering/matrix_input.h"
#include "selection/selection.h"

#define ROW_VALUES_PART 256u /* candidates of a part of the workers' */

struct row_values {
    struct matrix_input input;
    enum cluster_metric metric;
    struct workers *workers;
    struct stop *stop;
    uint32_t stride;    /* values of a row, zeros behind those of the file */
    uint64_t *row;      /* ascending: those that the metric can compare */
    uint64_t count;
    float *resident;    /* count x stride, or NULL */
    float *block;       /* of rows that are read again */
    uint64_t block_rows; /* a multiple of ROW_VALUES_PART */
};

/* Takes the rows of the candidates; metric -1: the usual one. Close it also after a failure. */
enum status row_values_open(struct row_values *out, const struct selection *selection, int metric,
                            struct error *err);
void row_values_close(struct row_values *values);

/* Candidates [first, first + count), at most block_rows of them unless all are resident; valid until the next
 * call. */
enum status row_values_at(const float **rows, struct row_values *values, uint64_t first, uint64_t count,
                          struct error *err);

/* Row `index` of the candidates to `to`, `stride` values. */
enum status row_values_copy(float *to, struct row_values *values, uint64_t index, struct error *err);

#endif
