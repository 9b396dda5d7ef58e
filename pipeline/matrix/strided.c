/* strided.c: rows are converted at once where their values lie without gaps, else value by value. */
#include "matrix/strided.h"

static enum status read_rows(void *context, uint64_t first, uint64_t count, float *rows,
                             struct error *err)
{
    const struct matrix_strided *memory = context;
    const size_t columns = memory->columns;
    const bool packed = memory->column_stride == memory->format.bytes;
    (void)err;
    for (uint64_t i = 0; i < count; i++) {
        const char *row = (const char *)memory->values + (int64_t)(first + i) * memory->row_stride;
        float *to = rows + i * columns;
        for (size_t j = 0; !packed && j < columns; j++)
            values_convert(to + j, row + (int64_t)j * memory->column_stride, 1, memory->format);
        if (packed)
            values_convert(to, row, columns, memory->format);
    }
    return STATUS_OK;
}

void matrix_strided_source(struct matrix_source *out, const struct matrix_strided *memory,
                           uint64_t rows)
{
    *out = (struct matrix_source){.rows = rows,
                                  .dimension = memory->columns,
                                  .read = read_rows,
                                  .concurrent = true,
                                  .context = (void *)memory};
}
