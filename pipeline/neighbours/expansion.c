/* expansion.c: sums rows held in memory while they are read. */
#include "neighbours/expansion.h"
#include "base/held.h"
#include "neighbours/block_reader.h"
#include <math.h>
#include <stdlib.h>

/* sum: scratch for source.dimension values. */
static void expand(float *out, double *sum, const struct expansion *expansion, const float *row,
                   const int64_t *nearest)
{
    const uint32_t dimension = expansion->source.dimension;
    double square = 0;
    for (uint32_t j = 0; j < dimension; j++)
        sum[j] = (double)row[j];
    for (uint32_t i = 0; i < expansion->n && nearest[i] >= 0; i++) {
        const float *other = expansion->rows + (size_t)nearest[i] * expansion->stride;
        for (uint32_t j = 0; j < dimension; j++)
            sum[j] += (double)other[j];
    }
    for (uint32_t j = 0; j < dimension; j++)
        square += sum[j] * sum[j];
    const double length = sqrt(square);
    for (uint32_t j = 0; j < dimension; j++)
        out[j] = length > 0 ? (float)(sum[j] / length) : 0;
}

static enum status expanded_read(void *context, uint64_t first, uint64_t count, float *rows,
                                 struct error *err)
{
    const struct expansion *expansion = context;
    const uint32_t dimension = expansion->source.dimension;
    double *sum = malloc(dimension * sizeof *sum);
    if (!sum)
        return error_memory(err, dimension * sizeof *sum, "a mean");
    for (uint64_t i = 0; i < count; i++)
        expand(rows + (size_t)i * dimension, sum, expansion,
               expansion->rows + (size_t)(first + i) * expansion->stride,
               expansion->nearest->rows + (size_t)(first + i) * expansion->nearest->n);
    free(sum);
    return STATUS_OK;
}

enum status expansion_open(struct expansion *out, const struct matrix_source *source,
                           const struct neighbours *nearest, uint32_t n,
                           const struct neighbours_config *config, struct error *err)
{
    struct block_reader reader;
    *out = (struct expansion){.source = {.rows = source->rows,
                                         .dimension = source->dimension,
                                         .read = expanded_read,
                                         .concurrent = true,
                                         .context = out},
                              .metric = config->metric,
                              .nearest = nearest,
                              .n = n < nearest->n ? n : nearest->n};
    enum status status = block_reader_open(&reader, source, config, err);
    out->stride = reader.stride;
    if (status == STATUS_OK) {
        const size_t bytes = (size_t)source->rows * out->stride * sizeof *out->rows;
        out->rows = malloc(bytes);
        status = out->rows ? block_reader_read(&reader, 0, (uint32_t)source->rows, out->rows, err)
                           : error_memory(err, bytes, "expanded rows");
    }
    block_reader_close(&reader);
    return status;
}

void expansion_close(struct expansion *expansion)
{
    free(expansion->rows);
    *expansion = (struct expansion){0};
}

enum status expansion_of_values(float *out, const struct expansion *expansion,
                                const struct queries *queries, const struct neighbours *nearest,
                                struct error *err)
{
    const uint32_t dimension = expansion->source.dimension;
    const struct transform transform = {expansion->metric, dimension, expansion->stride, "query"};
    SCOPED_HELD held = {0};
    float *row = held_array(&held, expansion->stride, sizeof *row);
    double *sum = held_array(&held, dimension, sizeof *sum);
    enum status status = held_check(&held, "a mean", err);
    for (uint32_t i = 0; i < queries->count && status == STATUS_OK; i++) {
        status = transform_read(&transform, queries->values, NULL, row, i, 1, err);
        if (status == STATUS_OK)
            expand(out + (size_t)i * dimension, sum, expansion, row,
                   nearest->rows + (size_t)i * nearest->n);
    }
    return status;
}
