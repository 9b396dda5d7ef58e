/* columns.c: collects rows and writes blocks. */
#include "result/columns.h"
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (1u << 20)

enum status column_create(struct column_writer *out, hid_t file, hid_t group, const char *name,
                          enum value_type type, uint64_t rows, const struct text_size *size,
                          const char *axis, const char *path, struct error *err)
{
    const hsize_t dimension = rows;
    *out = (struct column_writer){.type = type, .width = value_size(type), .path = path};
    if (size ? h5_create_scale(file, axis, rows, path, err) ||
                   h5_create_texts(&out->dataset, group, name, rows, size, path, err) ||
                   h5_attach_scale(file, out->dataset, 0, axis, path, err)
             : h5_create_on_scales(&out->dataset, file, group, name, type, 1, &dimension, &axis,
                                   path, err) != STATUS_OK)
        return STATUS_FAILED;
    if (size)
        out->width = h5_text_width(out->dataset);
    out->room = out->width < BLOCK_BYTES ? (unsigned)(BLOCK_BYTES / out->width) : 1;
    out->block = malloc(out->room * out->width);
    return out->block ? STATUS_OK : error_memory(err, out->room * out->width, "a column");
}

static enum status flush(struct column_writer *column, struct error *err)
{
    if (h5_write_rows(column->dataset, column->type, column->first, column->count, column->block,
                      column->path, err))
        return STATUS_FAILED;
    column->first += column->count;
    column->count = 0;
    return STATUS_OK;
}

enum status column_add(struct column_writer *column, const void *value, size_t bytes,
                       struct error *err)
{
    uint8_t *to = column->block + column->count++ * column->width;
    if (bytes > column->width)
        return h5_damaged(err, column->path, "a text is longer than its column");
    memcpy(to, value, bytes);
    memset(to + bytes, 0, column->width - bytes);
    return column->count == column->room ? flush(column, err) : STATUS_OK;
}

enum status column_add_rows(struct column_writer *column, const void *rows, uint64_t count,
                            struct error *err)
{
    const uint8_t *at = rows;
    enum status status = STATUS_OK;
    for (uint64_t part; count > 0 && !status; count -= part) {
        const unsigned left = column->room - column->count;
        part = count < left ? count : left;
        memcpy(column->block + column->count * column->width, at, part * column->width);
        column->count += (unsigned)part;
        at += part * column->width;
        if (column->count == column->room)
            status = flush(column, err);
    }
    return status;
}

enum status column_finish(struct column_writer *column, struct error *err)
{
    return flush(column, err) ? STATUS_FAILED
                              : h5_finish_dataset(&column->dataset, column->path, err);
}

void column_clear(struct column_writer *column)
{
    h5_close(&column->dataset);
    free(column->block);
    column->block = NULL;
}
