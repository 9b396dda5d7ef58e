/* row_values.c: reads candidates' rows and transforms them into the metric's space. */
#include "jobs/row_values.h"
#include "base/minmax.h"
#include "kmeans.h"
#include "kmeans/transform.h"
#include <string.h>

#define BLOCK_BYTES (8u << 20)

/* Reads candidates [first, first + count) from the file and transforms them in place. */
static enum status read_rows(float *to, struct row_values *values, uint64_t first, uint64_t count,
                             struct error *err)
{
    const struct matrix_source *source = &values->input.source;
    const uint32_t dimension = source->dimension;
    const struct transform transform = {values->metric, dimension, values->stride, "row"};
    float *from = to + (size_t)count * (values->stride - dimension);
    struct matrix_list list = {source, values->row};
    struct matrix_source rows;
    matrix_list_source(&rows, &list, values->count);
    enum status status = stop_check(values->stop, "reading rows", err);
    if (status == STATUS_OK)
        status = matrix_read(&rows, first, count, from, err);
    return status == STATUS_OK ? transform_rows(&transform, NULL, to, from, values->row[first],
                                                (uint32_t)count, err)
                               : status;
}

/* Drops the rows that cannot be compared. */
static enum status keep_comparable(struct row_values *values, unsigned threads, struct error *err)
{
    struct comparable comparable;
    uint64_t kept = 0;
    const enum status status = comparable_open(&comparable, &values->input.source, values->metric,
                                               threads, values->stop, err);
    for (uint64_t i = 0; i < values->count && status == STATUS_OK; i++)
        if (comparable_find(&comparable, values->row[i]) < comparable.source.rows)
            values->row[kept++] = values->row[i];
    values->count = kept;
    comparable_close(&comparable);
    return status;
}

enum status row_values_open(struct row_values *out, const struct selection *selection, int metric,
                            struct error *err)
{
    const struct select_config *config = selection->config;
    const char *usual = selection->clusters ? selection->clusters->feature : NULL;
    *out = (struct row_values){.stop = config->machine.watch.stop};
    enum status status = matrix_input_open(&out->input, config->file, config->feature, usual, err);
    if (status == STATUS_OK)
        status = workers_open(&out->workers, config->machine.threads, err);
    if (status != STATUS_OK)
        return status;
    out->metric =
        metric >= 0 ? (enum cluster_metric)metric : matrix_input_usual_metric(&out->input.about);
    out->stride = (out->input.source.dimension + KMEANS_LANES - 1) / KMEANS_LANES * KMEANS_LANES;
    out->block_rows = BLOCK_BYTES / (out->stride * sizeof(float) * ROW_VALUES_PART) + 1;
    out->block_rows *= ROW_VALUES_PART;
    out->block = held_array(&out->held, out->block_rows * out->stride, sizeof *out->block);
    out->row = held_array(&out->held, selection->candidates, sizeof *out->row);
    if (held_check(&out->held, "rows to compare", err) != STATUS_OK)
        return STATUS_FAILED;
    for (uint64_t i = 0; i < selection->candidates; i++)
        out->row[out->count++] = selection->candidate[i].row;
    status = keep_comparable(out, config->machine.threads, err);
    const uint64_t bytes = out->count * out->stride * sizeof(float);
    if (status != STATUS_OK || bytes > config->machine.memory ||
        !(out->resident = held_array(&out->held, bytes, 1)))
        return status;
    for (uint64_t first = 0, count; first < out->count && status == STATUS_OK; first += count) {
        count = min_u64(out->block_rows, out->count - first);
        status = read_rows(out->resident + first * out->stride, out, first, count, err);
    }
    return status;
}

void row_values_close(struct row_values *values)
{
    workers_close(&values->workers);
    matrix_input_close(&values->input);
    held_free(&values->held);
    *values = (struct row_values){0};
}

enum status row_values_at(const float **rows, struct row_values *values, uint64_t first,
                          uint64_t count, struct error *err)
{
    *rows = values->resident ? values->resident + first * values->stride : values->block;
    return values->resident ? STATUS_OK : read_rows(values->block, values, first, count, err);
}

enum status row_values_copy(float *to, struct row_values *values, uint64_t index, struct error *err)
{
    if (!values->resident)
        return read_rows(to, values, index, 1, err);
    memcpy(to, values->resident + index * values->stride, values->stride * sizeof *to);
    return STATUS_OK;
}
