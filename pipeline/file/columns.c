/* columns.c: rows in, blocks of columns out. */
#include "file/columns.h"
#include "base/path.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK      2048
#define TEXT_BYTES (4u << 20) /* a block ends where its texts pass this */
#define MOST_TEXTS 2

/* Text that grows. */
struct pile {
    char *data;
    size_t length, capacity;
};

struct columns {
    const struct table *table;
    const char *path;
    hid_t dataset[TABLE_COLUMNS_MAX];
    uint64_t rows, first; /* of the file; the block's first */
    unsigned count;       /* rows in the block */
    char *block;
    uint8_t *scratch;
    struct pile text;
    size_t text_offset[MOST_TEXTS][BLOCK];
    /* path_raw: all of it, and what the block adds. */
    hid_t raw_row, raw_end, raw_bytes;
    uint64_t raw_first, raw_byte_first;
    unsigned raw_count;
    uint64_t raw_rows[BLOCK], raw_ends[BLOCK];
    struct pile raw;
};

static enum status append(struct pile *pile, const char *bytes, size_t length, struct error *err)
{
    if (length > pile->capacity - pile->length) {
        size_t capacity = (pile->length + length) * 3 / 2 + 65536;
        char *more = realloc(pile->data, capacity);
        if (!more)
            return error_memory(err, capacity, "texts");
        pile->data = more;
        pile->capacity = capacity;
    }
    memcpy(pile->data + pile->length, bytes, length);
    pile->length += length;
    return STATUS_OK;
}

/* A column and the scales of its axes. */
static enum status create_column(hid_t *dataset, hid_t file, hid_t group, const char *name,
                                 enum value_type type, uint64_t rows, unsigned width,
                                 const char *axis, const char *wide_axis, const char *path,
                                 struct error *err)
{
    hsize_t size[2] = {rows, width};
    if ((width > 1 && h5_create_scale(file, wide_axis, width, path, err)) ||
        h5_create_dataset(dataset, group, name, type, width > 1 ? 2 : 1, size, path, err) ||
        h5_attach_scale(file, *dataset, 0, axis, path, err) ||
        (width > 1 && h5_attach_scale(file, *dataset, 1, wide_axis, path, err)))
        return STATUS_FAILED;
    return STATUS_OK;
}

static enum status create_raw(struct columns *c, hid_t file, hid_t group, uint64_t rows,
                              uint64_t bytes, struct error *err)
{
    enum status status = STATUS_FAILED;
    hid_t raw = H5I_INVALID_HID;
    const char *axis = c->table->raw_axis, *byte_axis = c->table->raw_byte_axis, *path = c->path;
    if (h5_create_scale(file, axis, rows, path, err) ||
        h5_create_scale(file, byte_axis, bytes, path, err) ||
        h5_create_group(&raw, group, "path_raw", path, err) ||
        create_column(&c->raw_row, file, raw, "row", VALUE_U64, rows, 1, axis, NULL, path, err) ||
        create_column(&c->raw_end, file, raw, "end", VALUE_U64, rows, 1, axis, NULL, path, err))
        goto out;
    status = create_column(&c->raw_bytes, file, raw, "bytes", VALUE_U8, bytes, 1, byte_axis, NULL,
                           path, err);
out:
    h5_close(&raw);
    return status;
}

enum status columns_create(struct columns **out, hid_t *group, hid_t file,
                           const struct table *table, uint64_t rows, bool optional,
                           uint64_t raw_rows, uint64_t raw_bytes, const char *path,
                           struct error *err)
{
    *out = NULL;
    *group = H5I_INVALID_HID;
    struct columns *c = calloc(1, sizeof *c);
    if (!c)
        return error_memory(err, sizeof *c, "a table");
    c->table = table;
    c->path = path;
    c->rows = rows;
    c->block = malloc(BLOCK * table->row_size);
    c->scratch = malloc((size_t)BLOCK * COLUMN_BYTES_MAX);
    enum status status = STATUS_FAILED;
    if (!c->block || !c->scratch) {
        error_memory(err, BLOCK * table->row_size, "a table");
        goto out;
    }
    if (h5_create_scale(file, table->axis, rows, path, err) ||
        h5_create_group(group, file, table->group, path, err))
        goto out;
    for (unsigned i = 0; i < table->count; i++)
        if ((optional || !table->column[i].optional) &&
            create_column(&c->dataset[i], file, *group, table->column[i].name,
                          table->column[i].type, rows, table->column[i].width, table->axis,
                          table->column[i].axis, path, err))
            goto out;
    if (raw_rows > 0 && create_raw(c, file, *group, raw_rows, raw_bytes, err))
        goto out;
    *out = c;
    c = NULL;
    status = STATUS_OK;
out:
    if (status)
        h5_close(group);
    columns_close(&c);
    return status;
}

void columns_close(struct columns **columns)
{
    if (!columns || !*columns)
        return;
    struct columns *c = *columns;
    *columns = NULL;
    for (unsigned i = 0; i < TABLE_COLUMNS_MAX; i++)
        h5_close(&c->dataset[i]);
    h5_close(&c->raw_row);
    h5_close(&c->raw_end);
    h5_close(&c->raw_bytes);
    free(c->text.data);
    free(c->raw.data);
    free(c->scratch);
    free(c->block);
    free(c);
}

static enum status flush_block(struct columns *c, struct error *err)
{
    unsigned texts = 0;
    for (unsigned i = 0; i < c->table->count; i++) {
        const struct column *column = &c->table->column[i];
        const char *from = c->block + column->offset;
        size_t size = value_size(column->type) * column->width;
        if (c->dataset[i] <= 0)
            continue;
        for (unsigned r = 0; r < c->count; r++, from += c->table->row_size) {
            if (column->type == VALUE_TEXT) {
                const char *text = c->text.data + c->text_offset[texts][r];
                memcpy(c->scratch + r * size, &text, size);
            } else {
                memcpy(c->scratch + r * size, from, size);
            }
        }
        texts += column->type == VALUE_TEXT;
        if (h5_write_rows(c->dataset[i], column->type, c->first, c->count, c->scratch, c->path,
                          err))
            return STATUS_FAILED;
    }
    if (h5_write_rows(c->raw_row, VALUE_U64, c->raw_first, c->raw_count, c->raw_rows, c->path,
                      err) ||
        h5_write_rows(c->raw_end, VALUE_U64, c->raw_first, c->raw_count, c->raw_ends, c->path,
                      err) ||
        h5_write_rows(c->raw_bytes, VALUE_U8, c->raw_byte_first, c->raw.length, c->raw.data,
                      c->path, err))
        return STATUS_FAILED;
    c->first += c->count;
    c->raw_first += c->raw_count;
    c->raw_byte_first += c->raw.length;
    c->count = c->raw_count = 0;
    c->text.length = c->raw.length = 0;
    return STATUS_OK;
}

/* The text of a path that is not UTF-8; and its bytes to path_raw. */
static enum status add_raw(struct columns *c, const char *name, uint32_t length, struct error *err)
{
    size_t size = 4 * (size_t)length + 1;
    char *text = malloc(size);
    if (!text)
        return error_memory(err, size, "a path");
    size_t written = path_to_utf8(text, size, name, length);
    enum status status = append(&c->text, text, written + 1, err);
    free(text);
    if (status || append(&c->raw, name, length, err))
        return STATUS_FAILED;
    c->raw_rows[c->raw_count] = c->first + c->count;
    c->raw_ends[c->raw_count++] = c->raw_byte_first + c->raw.length;
    return STATUS_OK;
}

enum status columns_add(struct columns *c, const void *row, const char *name, uint32_t name_length,
                        struct error *err)
{
    assert(c->first + c->count < c->rows);
    unsigned texts = 0;
    memcpy(c->block + c->count * c->table->row_size, row, c->table->row_size);
    for (unsigned i = 0; i < c->table->count; i++) {
        const struct column *column = &c->table->column[i];
        if (column->type != VALUE_TEXT)
            continue;
        c->text_offset[texts++][c->count] = c->text.length;
        if (column->offset == 0 && !utf8_valid(name, name_length)) {
            if (add_raw(c, name, name_length, err))
                return STATUS_FAILED;
        } else if (column->offset == 0) {
            if (append(&c->text, name, name_length, err) || append(&c->text, "", 1, err))
                return STATUS_FAILED;
        } else {
            const char *text;
            memcpy(&text, (const char *)row + column->offset, sizeof text);
            if (append(&c->text, text, strlen(text) + 1, err))
                return STATUS_FAILED;
        }
    }
    c->count++;
    return c->count == BLOCK || c->text.length > TEXT_BYTES ? flush_block(c, err) : STATUS_OK;
}

enum status columns_finish(struct columns *c, struct error *err)
{
    enum status status = flush_block(c, err);
    assert(status || c->first == c->rows);
    return status;
}
