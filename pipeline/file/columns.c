/* columns.c: rows in, blocks of columns out. */
#include "file/columns.h"
#include "base/path.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK      2048
#define TEXT_BYTES (4u << 20) /* a block ends where its texts pass this */

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
    size_t width[TABLE_TEXTS_MOST]; /* of the columns of texts */
    struct pile text;
    size_t text_offset[TABLE_TEXTS_MOST][BLOCK];
};

/* Room for `more` bytes. */
static enum status make_room(struct pile *pile, size_t more, struct error *err)
{
    if (more <= pile->capacity - pile->length)
        return STATUS_OK;
    const size_t capacity = (pile->length + more) * 3 / 2 + 65536;
    char *grown = realloc(pile->data, capacity);
    if (!grown)
        return error_memory(err, capacity, "texts");
    pile->data = grown;
    pile->capacity = capacity;
    return STATUS_OK;
}

/* A column and the scales of its axes. */
static enum status create_column(struct columns *c, unsigned i, hid_t file, hid_t group,
                                 const struct text_size *size, struct error *err)
{
    const struct column *column = &c->table->column[i];
    const hsize_t shape[2] = {c->rows, column->width};
    const bool wide = column->width > 1;
    hid_t *dataset = &c->dataset[i];
    if ((wide && h5_create_scale(file, column->axis, column->width, c->path, err)) ||
        (column->type == VALUE_TEXT
             ? h5_create_texts(dataset, group, column->name, c->rows, size, c->path, err)
             : h5_create_dataset(dataset, group, column->name, column->type, wide ? 2 : 1, shape,
                                 c->path, err)) ||
        h5_attach_scale(file, *dataset, 0, c->table->axis, c->path, err) ||
        (wide && h5_attach_scale(file, *dataset, 1, column->axis, c->path, err)))
        return STATUS_FAILED;
    return STATUS_OK;
}

enum status columns_create(struct columns **out, hid_t *group, hid_t file,
                           const struct table *table, uint64_t rows, bool optional,
                           const struct text_size size[TABLE_TEXTS_MOST], const char *path,
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
        (h5_is_object(file, table->group, H5O_TYPE_GROUP)
             ? h5_open_group(group, file, table->group, path, err)
             : h5_create_group(group, file, table->group, path, err)))
        goto out;
    for (unsigned i = 0, t = 0; i < table->count; i++) {
        const bool text = table->column[i].type == VALUE_TEXT;
        if (text)
            c->width[t] = size[t].width ? (size_t)size[t].width : 1;
        if ((optional || !table->column[i].optional) &&
            create_column(c, i, file, *group, text ? &size[t] : NULL, err))
            goto out;
        t += text;
    }
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
    free(c->text.data);
    free(c->scratch);
    free(c->block);
    free(c);
}

/* Texts of the t-th column of them, padded, as many at a time as the pile's bytes allow. */
static enum status write_texts(struct columns *c, hid_t dataset, unsigned t, struct error *err)
{
    const size_t width = c->width[t];
    const unsigned step = width < TEXT_BYTES ? (unsigned)(TEXT_BYTES / width) : 1;
    const unsigned most = c->count < step ? c->count : step;
    enum status status = STATUS_OK;
    char *rows = malloc(most * width + 1);
    if (!rows)
        return error_memory(err, most * width, "texts");
    for (unsigned r = 0, n; r < c->count && !status; r += n) {
        n = c->count - r < most ? c->count - r : most;
        for (unsigned i = 0; i < n; i++) {
            const char *text = c->text.data + c->text_offset[t][r + i];
            const size_t length = strlen(text);
            if (length > width) {
                status = h5_damaged(err, c->path, "a text is longer than its column");
                break;
            }
            memcpy(rows + i * width, text, length);
            memset(rows + i * width + length, 0, width - length);
        }
        if (!status)
            status = h5_write_rows(dataset, VALUE_TEXT, c->first + r, n, rows, c->path, err);
    }
    free(rows);
    return status;
}

static enum status flush_block(struct columns *c, struct error *err)
{
    unsigned texts = 0;
    for (unsigned i = 0; i < c->table->count; i++) {
        const struct column *column = &c->table->column[i];
        const char *from = c->block + column->offset;
        const size_t size = value_size(column->type) * column->width;
        if (c->dataset[i] <= 0)
            continue;
        if (column->type == VALUE_TEXT) {
            if (write_texts(c, c->dataset[i], texts++, err))
                return STATUS_FAILED;
            continue;
        }
        for (unsigned r = 0; r < c->count; r++, from += c->table->row_size)
            memcpy(c->scratch + r * size, from, size);
        if (h5_write_rows(c->dataset[i], column->type, c->first, c->count, c->scratch, c->path,
                          err))
            return STATUS_FAILED;
    }
    c->first += c->count;
    c->count = 0;
    c->text.length = 0;
    return STATUS_OK;
}

enum status columns_add_named(struct columns *c, const void *row, const char *name,
                              uint32_t name_length, struct error *err)
{
    assert(c->first + c->count < c->rows);
    unsigned texts = 0;
    memcpy(c->block + c->count * c->table->row_size, row, c->table->row_size);
    for (unsigned i = 0; i < c->table->count; i++) {
        const struct column *column = &c->table->column[i];
        const char *text = name;
        if (column->type != VALUE_TEXT)
            continue;
        if (!name || texts > 0)
            memcpy(&text, (const char *)row + column->offset, sizeof text);
        const bool path = text == name;
        const size_t length = path ? name_length : strlen(text), room = (path ? 4 : 1) * length + 1;
        if (make_room(&c->text, room, err))
            return STATUS_FAILED;
        char *to = c->text.data + c->text.length;
        c->text_offset[texts++][c->count] = c->text.length;
        c->text.length +=
            1 + (path ? path_to_utf8(to, room, text, length) : strlen(strcpy(to, text)));
    }
    c->count++;
    return c->count == BLOCK || c->text.length > TEXT_BYTES ? flush_block(c, err) : STATUS_OK;
}

enum status columns_add(struct columns *columns, const void *row, struct error *err)
{
    return columns_add_named(columns, row, NULL, 0, err);
}

enum status columns_finish(struct columns *c, struct error *err)
{
    enum status status = flush_block(c, err);
    assert(status || c->first == c->rows);
    return status;
}
