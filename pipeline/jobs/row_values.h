/* row_values.h: the candidates' rows in the space of a metric, held in memory if they fit, else
 * read from the file in each pass. */
#ifndef CLPIPE_JOBS_ROW_VALUES_H
#define CLPIPE_JOBS_ROW_VALUES_H

#include "base/workers.h"
#include "jobs/matrix_input.h"
#include "jobs/selection.h"

#define ROW_VALUES_PART 256u /* candidates per part of the workers' loop */

struct row_values {
    struct matrix_input input;
    enum cluster_metric metric;
    struct workers *workers;
    struct stop *stop;
    uint32_t stride; /* values per row, padded with zeros */
    uint64_t *row;   /* ascending: those comparable under the metric */
    uint64_t count;
    float *resident;     /* count x stride, or NULL */
    float *block;        /* for rows that are read again */
    uint64_t block_rows; /* a multiple of ROW_VALUES_PART */
    struct held held;    /* these arrays */
};

/* Opens the candidates' rows; metric -1: the default. Close it even after a failure. */
enum status row_values_open(struct row_values *out, const struct selection *selection, int metric,
                            struct error *err);
void row_values_close(struct row_values *values);

/* Candidates [first, first + count), at most block_rows unless resident; valid until the next
 * call. */
enum status row_values_at(const float **rows, struct row_values *values, uint64_t first,
                          uint64_t count, struct error *err);

/* Copies the row of candidate `index`, `stride` values, to `to`. */
enum status row_values_copy(float *to, struct row_values *values, uint64_t index,
                            struct error *err);

#endif
