/* rows.c: blocks of table rows. */
#include "result/rows.h"
#include "base/path.h"
#include <stdlib.h>
#include <string.h>

#define FIRST_BLOCK 16

static enum status damaged(struct rows *rows, struct error *err, const char *what)
{
    return h5_damaged(err, h5_path(rows->file), "/%s %s", rows->table->group, what);
}

enum status rows_open(struct rows **out, hid_t file, const struct table *table, struct error *err)
{
    H5_SCOPED hid_t group = H5I_INVALID_HID;
    enum status status = STATUS_OK;
    struct rows *rows = *out = calloc(1, sizeof *rows);
    if (!rows)
        return error_memory(err, sizeof *rows, "a table reader");
    rows->table = table;
    rows->next_block = FIRST_BLOCK;
    rows->file = file;
    rows->block = calloc(ROWS_BLOCK, table->row_size);
    rows->scratch = malloc((size_t)ROWS_BLOCK * COLUMN_BYTES_MAX);
    if (!rows->block || !rows->scratch)
        status = error_memory(err, ROWS_BLOCK * table->row_size, "a table reader");
    else if (!h5_is_object(file, table->group, H5O_TYPE_GROUP))
        status = damaged(rows, err, "is missing");
    else
        status = h5_open_group(&group, file, table->group, err);
    for (unsigned c = 0; c < table->count && !status; c++) {
        const struct column *column = &table->column[c];
        hsize_t size[2] = {0, 1};
        if (column->optional && H5Lexists(group, column->name, H5P_DEFAULT) <= 0)
            continue;
        if ((status = h5_open_dataset(&rows->dataset[c], group, column->name, column->type,
                                      column->width > 1 ? 2 : 1, size, err)))
            break;
        if (c == 0)
            rows->count = size[0];
        if (size[0] != rows->count || size[1] != column->width)
            status = damaged(rows, err, "has columns of different lengths");
        if (column->type == VALUE_TEXT)
            rows->width[c] = h5_text_width(rows->dataset[c]);
    }
    if (status)
        rows_close(out);
    return status;
}

void rows_close(struct rows **rows)
{
    if (!rows || !*rows)
        return;
    struct rows *r = *rows;
    *rows = NULL;
    for (unsigned c = 0; c < TABLE_COLUMNS_MAX; c++) {
        h5_close(&r->dataset[c]);
        free(r->text[c]);
    }
    free(r->raw);
    free(r->scratch);
    free(r->block);
    free(r);
}

/* Reads a column of texts into rows->text[c], each ended by a NUL. */
static enum status load_texts(struct rows *rows, unsigned c, uint64_t first, unsigned count,
                              struct error *err)
{
    const size_t width = rows->width[c], bytes = count * (width + 1);
    if (bytes > rows->room[c]) {
        free(rows->text[c]);
        rows->text[c] = malloc(bytes);
        rows->room[c] = rows->text[c] ? bytes : 0;
        if (!rows->text[c])
            return error_memory(err, bytes, "texts");
    }
    char *text = rows->text[c];
    if (h5_read_rows(rows->dataset[c], VALUE_TEXT, first, count, text, err))
        return STATUS_FAILED;
    for (unsigned i = count; i-- > 0;) {
        memmove(text + i * (width + 1), text + i * width, width);
        text[i * (width + 1) + width] = 0;
    }
    for (unsigned i = 0; i < count; i++)
        if (!utf8_valid(text + i * (width + 1), strlen(text + i * (width + 1))))
            return damaged(rows, err, "has a text that is not UTF-8");
    return STATUS_OK;
}

/* Limits `count` so that the texts of the rows are not too large. */
static unsigned block_rows(const struct rows *rows, uint64_t count)
{
    for (unsigned c = 0; c < TABLE_COLUMNS_MAX; c++) {
        const uint64_t most = ROWS_TEXT_BYTES / (rows->width[c] + 1);
        count = count <= most ? count : most ? most : 1;
    }
    return count < ROWS_BLOCK ? (unsigned)count : ROWS_BLOCK;
}

static enum status load_block(struct rows *rows, uint64_t first, unsigned count, struct error *err)
{
    const struct table *table = rows->table;
    rows->loaded = 0;
    for (unsigned c = 0; c < table->count; c++) {
        const struct column *column = &table->column[c];
        char *at = rows->block + column->offset;
        if (column->type == VALUE_TEXT) {
            if (load_texts(rows, c, first, count, err))
                return STATUS_FAILED;
            for (unsigned i = 0; i < count; i++, at += table->row_size) {
                const char *text = rows->text[c] + i * (rows->width[c] + 1);
                memcpy(at, &text, sizeof text);
            }
            continue;
        }
        size_t size = value_size(column->type) * column->width;
        if (rows->dataset[c] <= 0)
            continue; /* the block was cleared once */
        if (h5_read_rows(rows->dataset[c], column->type, first, count, rows->scratch, err))
            return STATUS_FAILED;
        for (unsigned i = 0; i < count; i++, at += table->row_size)
            memcpy(at, rows->scratch + i * size, size);
    }
    rows->first = first;
    rows->loaded = count;
    return STATUS_OK;
}

enum status rows_at(struct rows *rows, uint64_t row, const void **found, const char **path_raw,
                    struct error *err)
{
    if (row < rows->first || row >= rows->first + rows->loaded) {
        bool in_order = rows->loaded > 0 && row == rows->first + rows->loaded;
        rows->next_block = !in_order                       ? FIRST_BLOCK
                           : rows->next_block < ROWS_BLOCK ? rows->next_block * 2
                                                           : ROWS_BLOCK;
        uint64_t left = rows->count - row;
        const uint64_t wanted = left < rows->next_block ? left : rows->next_block;
        if (load_block(rows, row, block_rows(rows, wanted), err))
            return STATUS_FAILED;
    }
    const char *at = rows->block + (row - rows->first) * rows->table->row_size;
    *found = at;
    /* The path is the first member of every row struct. */
    memcpy(path_raw, at, sizeof *path_raw);
    if (!strstr(*path_raw, "\\x"))
        return STATUS_OK;
    free(rows->raw);
    rows->raw = strdup(*path_raw);
    if (!rows->raw)
        return error_memory(err, strlen(*path_raw), "a path");
    path_from_utf8(rows->raw);
    *path_raw = rows->raw;
    return STATUS_OK;
}
