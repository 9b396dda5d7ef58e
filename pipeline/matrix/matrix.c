/* matrix.c: functions for the rows of any matrix. */
#include "matrix/matrix.h"

#include "base/held.h"
#include "base/minmax.h"
#include "base/path.h"
#include "base/workers.h"
#include "matrix/row_tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void matrix_close(struct matrix_source *matrix)
{
    if (matrix->close)
        matrix->close(matrix->context);
    *matrix = (struct matrix_source){0};
}

/* A run of neighbouring rows at a time. */
static enum status read_list(void *context, uint64_t first, uint64_t count, float *rows,
                             struct error *err)
{
    const struct matrix_list *list = context;
    const struct matrix_source *all = list->all;
    for (uint64_t i = 0, run; i < count; i += run) {
        const uint64_t *row = &list->row[first + i];
        for (run = 1; i + run < count && row[run] == row[0] + run;)
            run++;
        enum status status = matrix_read(all, row[0], run, rows + (size_t)i * all->dimension, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

void matrix_list_source(struct matrix_source *out, struct matrix_list *list, uint64_t count)
{
    *out = (struct matrix_source){.rows = count,
                                  .dimension = list->all->dimension,
                                  .read = read_list,
                                  .concurrent = list->all->concurrent,
                                  .context = list};
}

static enum status read_memory(void *context, uint64_t first, uint64_t count, float *rows,
                               struct error *err)
{
    const struct matrix_memory *memory = context;
    const uint32_t columns = memory->dimension, bytes = memory->format.bytes;
    const char *row = (const char *)memory->values + (int64_t)first * memory->row_stride;
    const bool packed = memory->column_stride == bytes;
    (void)err;
    if (packed && memory->row_stride == (int64_t)columns * bytes) {
        values_convert(rows, row, (size_t)count * columns, memory->format);
        return STATUS_OK;
    }
    for (uint64_t i = 0; i < count; i++, rows += columns, row += memory->row_stride) {
        for (uint32_t j = 0; j < columns && !packed; j++)
            values_convert(rows + j, row + j * memory->column_stride, 1, memory->format);
        if (packed)
            values_convert(rows, row, columns, memory->format);
    }
    return STATUS_OK;
}

void matrix_memory_source(struct matrix_source *out, struct matrix_memory *memory, uint64_t rows)
{
    if (memory->format.bytes == 0)
        memory->format = (struct value_format){.kind = 'f', .bytes = sizeof(float)};
    memory->format.big_endian = false;
    if (memory->column_stride == 0)
        memory->column_stride = memory->format.bytes;
    if (memory->row_stride == 0)
        memory->row_stride = (int64_t)memory->dimension * memory->format.bytes;
    *out = (struct matrix_source){.rows = rows,
                                  .dimension = memory->dimension,
                                  .read = read_memory,
                                  .concurrent = true,
                                  .context = memory};
}

void matrix_set_type(struct matrix_source *matrix, char kind, size_t bytes)
{
    snprintf(matrix->type, sizeof matrix->type, "%s%u",
             kind == 'f'   ? "float"
             : kind == 'i' ? "int"
                           : "uint",
             (unsigned)(8 * bytes));
}

uint64_t matrix_rows_at_once(const struct matrix_source *matrix)
{
    uint64_t rows = ((uint64_t)4 << 20) / (matrix->dimension * sizeof(float) + 1);
    if (rows > matrix->rows)
        rows = matrix->rows;
    return rows ? rows : 1;
}

uint64_t matrix_piece(const struct matrix_source *matrix)
{
    return matrix->piece ? matrix->piece : row_tree_piece(matrix->dimension * sizeof(float));
}

struct each {
    const struct matrix_source *matrix;
    struct stop *stop;
    void (*take)(void *context, uint64_t first, uint64_t count, const float *rows);
    void *context;
};

static enum status read_piece(void *context, uint64_t piece, struct error *err)
{
    const struct each *each = context;
    const struct matrix_source *matrix = each->matrix;
    const uint64_t step = matrix_piece(matrix), first = piece * step;
    const uint64_t count = min_u64(step, matrix->rows - first);
    const size_t bytes = (size_t)count * matrix->dimension * sizeof(float);
    float *rows = malloc(bytes + 1);
    enum status status =
        rows ? stop_check(each->stop, "reading rows", err) : error_memory(err, bytes, "rows");
    if (status == STATUS_OK)
        status = matrix_read(matrix, first, count, rows, err);
    if (status == STATUS_OK && each->take)
        each->take(each->context, first, count, rows);
    free(rows);
    return status;
}

enum status matrix_each(const struct matrix_source *matrix, unsigned threads, struct stop *stop,
                        void (*take)(void *context, uint64_t first, uint64_t count,
                                     const float *rows),
                        void *context, struct error *err)
{
    struct each each = {matrix, stop, take, context};
    const uint64_t step = matrix_piece(matrix), pieces = (matrix->rows + step - 1) / step;
    struct workers *workers;
    const uint64_t used = matrix->concurrent ? max_u64(min_u64(threads, pieces), 1) : 1;
    enum status status = workers_open(&workers, (unsigned)used, err);
    if (status == STATUS_OK)
        status = workers_try(workers, read_piece, &each, pieces, err);
    workers_close(&workers);
    return status;
}

enum status matrix_column(float **values, const struct matrix_source *matrix, const char *name,
                          struct error *err)
{
    *values = NULL;
    const size_t count = (size_t)matrix->rows * matrix->dimension;
    if (matrix->dimension != 1 && matrix->rows != 1)
        return error_set(err, STATUS_FAILED,
                         "%s has %llu rows of %u columns; expected one row or one column",
                         PATH_TEXT(name), (unsigned long long)matrix->rows, matrix->dimension);
    float *column = malloc(count * sizeof *column + 1);
    if (!column)
        return error_memory(err, count * sizeof *column, "a column of numbers");
    if (matrix->rows > 0) {
        enum status status = matrix_read(matrix, 0, matrix->rows, column, err);
        if (status != STATUS_OK) {
            free(column);
            return status;
        }
    }
    *values = column;
    return STATUS_OK;
}

enum status matrix_distinct(uint32_t *distinct, const struct matrix_source *matrix, uint32_t most,
                            bool roots, struct error *err)
{
    const size_t columns = matrix->dimension;
    const uint64_t step = matrix_rows_at_once(matrix);
    SCOPED_HELD held = {0};
    float *rows = held_array(&held, step * columns, sizeof *rows),
          *kept = held_array(&held, most * columns, sizeof *kept);
    uint32_t count = 0;
    enum status status = held_check(&held, "rows", err);
    for (uint64_t at = 0; at < matrix->rows && count < most && status == STATUS_OK; at += step) {
        const uint64_t take = min_u64(step, matrix->rows - at);
        status = matrix_read(matrix, at, take, rows, err);
        if (status != STATUS_OK)
            break;
        for (uint64_t i = 0; i < take && count < most; i++) {
            float *row = rows + (size_t)i * columns;
            if (isnan(row[0]))
                continue;
            for (size_t j = 0; roots && j < columns; j++)
                row[j] = sqrtf(row[j]);
            uint32_t same = 0;
            while (same < count && memcmp(kept + same * columns, row, columns * sizeof *row) != 0)
                same++;
            if (same == count)
                memcpy(kept + count++ * columns, row, columns * sizeof *row);
        }
    }
    *distinct = count;
    return status;
}
