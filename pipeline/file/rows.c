/* rows.c: blocks of table rows, and the few paths that are not UTF-8 beside them. */
#include "file/rows.h"
#include "base/path.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BLOCK 16
#define RAW_BLOCK   1024
#define MOST_TEXTS  2 /* text columns of a table */

/* GROUP/path_raw: entry i is row[i] and the bytes from end[i - 1] (0 for the first) to end[i]. */
struct raw_paths {
    bool there;
    hid_t row, end, bytes;
    uint64_t count, byte_count;
    /* Entries [first, first + loaded), right for every row from `from` to `to`. */
    uint64_t first, from, to;
    unsigned loaded;
    uint64_t entry_row[RAW_BLOCK], entry_end[RAW_BLOCK + 1]; /* [0]: where the first begins */
    char *text;
};

struct rows {
    const struct table *table;
    struct vlen *vlen;
    char *path;
    hid_t dataset[TABLE_COLUMNS_MAX];
    uint64_t count;
    /* The block: rows [first, first + loaded). */
    uint64_t first;
    unsigned loaded, next_block;
    char *block;      /* ROWS_BLOCK row structs */
    uint8_t *scratch; /* one column of it */
    char *text;
    size_t text_length, text_capacity;
    size_t text_offset[MOST_TEXTS][ROWS_BLOCK];
    struct raw_paths raw;
};

static enum status damaged(struct rows *rows, struct error *err, const char *what)
{
    return h5_damaged(err, rows->path, "/%s %s", rows->table->group, what);
}

static enum status open_raw(struct rows *rows, hid_t group, struct error *err)
{
    struct raw_paths *raw = &rows->raw;
    if (H5Lexists(group, "path_raw", H5P_DEFAULT) <= 0)
        return STATUS_OK;
    if (!h5_is_object(group, "path_raw", H5O_TYPE_GROUP))
        return damaged(rows, err, "has a path_raw that is no group");
    hid_t id;
    hsize_t ends = 0, count = 0, bytes = 0;
    enum status status = STATUS_FAILED;
    if (h5_open_group(&id, group, "path_raw", rows->path, err))
        return STATUS_FAILED;
    if (h5_open_dataset(&raw->row, id, "row", VALUE_U64, 1, &count, "path_raw/row", rows->path,
                        err) ||
        h5_open_dataset(&raw->end, id, "end", VALUE_U64, 1, &ends, "path_raw/end", rows->path,
                        err) ||
        h5_open_dataset(&raw->bytes, id, "bytes", VALUE_U8, 1, &bytes, "path_raw/bytes", rows->path,
                        err))
        goto out;
    if (ends != count || count > rows->count) {
        damaged(rows, err, "has path_raw datasets of different lengths");
        goto out;
    }
    raw->there = true;
    raw->count = count;
    raw->byte_count = bytes;
    raw->from = 1;
    status = STATUS_OK;
out:
    h5_close(&id);
    return status;
}

enum status rows_open(struct rows **out, hid_t file, struct vlen *vlen, const struct table *table,
                      const char *path, struct error *err)
{
    *out = NULL;
    struct rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return error_memory(err, sizeof *rows, "a table reader");
    rows->table = table;
    rows->vlen = vlen;
    rows->next_block = FIRST_BLOCK;
    rows->path = strdup(path);
    rows->block = calloc(ROWS_BLOCK, table->row_size);
    rows->scratch = malloc((size_t)ROWS_BLOCK * COLUMN_BYTES_MAX);
    enum status status = STATUS_FAILED;
    hid_t group = H5I_INVALID_HID;
    if (!rows->path || !rows->block || !rows->scratch) {
        error_memory(err, ROWS_BLOCK * table->row_size, "a table reader");
        goto out;
    }
    if (!h5_is_object(file, table->group, H5O_TYPE_GROUP)) {
        damaged(rows, err, "is missing");
        goto out;
    }
    if (h5_open_group(&group, file, table->group, path, err))
        goto out;
    for (unsigned c = 0; c < table->count; c++) {
        const struct column *column = &table->column[c];
        char where[64];
        hsize_t size[2] = {0, 1};
        snprintf(where, sizeof where, "/%s/%s", table->group, column->name);
        if (column->optional && H5Lexists(group, column->name, H5P_DEFAULT) <= 0)
            continue;
        if (h5_open_dataset(&rows->dataset[c], group, column->name, column->type,
                            column->width > 1 ? 2 : 1, size, where, path, err))
            goto out;
        if (c == 0)
            rows->count = size[0];
        if (size[0] != rows->count || size[1] != column->width) {
            damaged(rows, err, "has columns of different lengths");
            goto out;
        }
    }
    if (open_raw(rows, group, err))
        goto out;
    *out = rows;
    rows = NULL;
    status = STATUS_OK;
out:
    h5_close(&group);
    rows_close(&rows);
    return status;
}

void rows_close(struct rows **rows)
{
    if (!rows || !*rows)
        return;
    struct rows *r = *rows;
    *rows = NULL;
    for (unsigned c = 0; c < TABLE_COLUMNS_MAX; c++)
        h5_close(&r->dataset[c]);
    h5_close(&r->raw.row);
    h5_close(&r->raw.end);
    h5_close(&r->raw.bytes);
    free(r->raw.text);
    free(r->text);
    free(r->scratch);
    free(r->block);
    free(r->path);
    free(r);
}

uint64_t rows_count(const struct rows *rows)
{
    return rows->count;
}

void rows_raw_size(const struct rows *rows, uint64_t *count, uint64_t *bytes)
{
    *count = rows->raw.count;
    *bytes = rows->raw.byte_count;
}

hid_t rows_dataset(const struct rows *rows, unsigned column)
{
    return rows->dataset[column];
}

/* Reads the texts of column `c`, the t-th of its kind, for rows [first, first + *count) to the end
 * of rows->text. *count becomes smaller (but not 0) where they are many bytes. */
static enum status load_texts(struct rows *rows, unsigned c, unsigned t, uint64_t first,
                              unsigned *count, struct error *err)
{
    if (vlen_descriptors(rows->vlen, rows->dataset[c], first, *count, rows->scratch, err))
        return STATUS_FAILED;
    for (unsigned i = 0; i < *count; i++) {
        const uint8_t *bytes;
        uint32_t length;
        if (vlen_element(rows->vlen, rows->scratch + (size_t)i * VLEN_DESCRIPTOR, 1, &bytes,
                         &length, err))
            return STATUS_FAILED;
        length = (uint32_t)strnlen((const char *)bytes, length);
        if (!utf8_valid((const char *)bytes, length))
            return damaged(rows, err, "has a text that is not UTF-8");
        size_t needed = rows->text_length + length + 1;
        if (needed > rows->text_capacity) {
            size_t capacity = needed + needed / 2 + 65536;
            char *more = realloc(rows->text, capacity);
            if (!more)
                return error_memory(err, capacity, "texts");
            rows->text = more;
            rows->text_capacity = capacity;
        }
        rows->text_offset[t][i] = rows->text_length;
        memcpy(rows->text + rows->text_length, bytes, length);
        rows->text[rows->text_length + length] = 0;
        rows->text_length = needed;
        if (needed > (size_t)ROWS_TEXT_BYTES * (t + 1))
            *count = i + 1;
    }
    return STATUS_OK;
}

static enum status load_block(struct rows *rows, uint64_t first, unsigned count, struct error *err)
{
    const struct table *table = rows->table;
    unsigned texts = 0;
    rows->loaded = 0;
    rows->text_length = 0;
    for (unsigned c = 0; c < table->count; c++)
        if (table->column[c].type == VALUE_TEXT && load_texts(rows, c, texts++, first, &count, err))
            return STATUS_FAILED;
    texts = 0;
    for (unsigned c = 0; c < table->count; c++) {
        const struct column *column = &table->column[c];
        char *at = rows->block + column->offset;
        if (column->type == VALUE_TEXT) {
            for (unsigned i = 0; i < count; i++, at += table->row_size) {
                const char *text = rows->text + rows->text_offset[texts][i];
                memcpy(at, &text, sizeof text);
            }
            texts++;
            continue;
        }
        size_t size = value_size(column->type) * column->width;
        if (rows->dataset[c] <= 0)
            continue; /* the block was cleared once */
        if (h5_read_rows(rows->dataset[c], column->type, first, count, rows->scratch, rows->path,
                         err))
            return STATUS_FAILED;
        for (unsigned i = 0; i < count; i++, at += table->row_size)
            memcpy(at, rows->scratch + i * size, size);
    }
    rows->first = first;
    rows->loaded = count;
    return STATUS_OK;
}

/* The first entry of path_raw whose row is at least `row`. */
static enum status find_entry(struct rows *rows, uint64_t row, uint64_t *entry, struct error *err)
{
    uint64_t low = 0, high = rows->raw.count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, at = 0;
        if (h5_read_rows(rows->raw.row, VALUE_U64, middle, 1, &at, rows->path, err))
            return STATUS_FAILED;
        if (at < row)
            low = middle + 1;
        else
            high = middle;
    }
    *entry = low;
    return STATUS_OK;
}

static enum status load_entries(struct rows *rows, uint64_t row, struct error *err)
{
    struct raw_paths *raw = &rows->raw;
    raw->from = 1;
    raw->to = 0;
    if (find_entry(rows, row, &raw->first, err))
        return STATUS_FAILED;
    uint64_t left = raw->count - raw->first;
    raw->loaded = left < RAW_BLOCK ? (unsigned)left : RAW_BLOCK;
    raw->entry_end[0] = 0;
    if (h5_read_rows(raw->row, VALUE_U64, raw->first, raw->loaded, raw->entry_row, rows->path,
                     err) ||
        h5_read_rows(raw->end, VALUE_U64, raw->first, raw->loaded, raw->entry_end + 1, rows->path,
                     err) ||
        (raw->first > 0 &&
         h5_read_rows(raw->end, VALUE_U64, raw->first - 1, 1, raw->entry_end, rows->path, err)))
        return STATUS_FAILED;
    for (unsigned i = 0; i < raw->loaded; i++)
        if ((i > 0 && raw->entry_row[i] <= raw->entry_row[i - 1]) ||
            raw->entry_row[i] >= rows->count || raw->entry_end[i + 1] < raw->entry_end[i] ||
            raw->entry_end[i + 1] > raw->byte_count ||
            raw->entry_end[i + 1] - raw->entry_end[i] > VLEN_MOST_BYTES)
            return damaged(rows, err, "has a path_raw that contradicts itself");
    raw->from = row;
    raw->to = raw->loaded == left ? UINT64_MAX : raw->entry_row[raw->loaded - 1];
    return STATUS_OK;
}

/* The bytes of the path of `row` if they are not its text; otherwise *path stays. */
static enum status raw_path(struct rows *rows, uint64_t row, const char **path, struct error *err)
{
    struct raw_paths *raw = &rows->raw;
    if ((row < raw->from || row > raw->to) && load_entries(rows, row, err))
        return STATUS_FAILED;
    unsigned low = 0, high = raw->loaded;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (raw->entry_row[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == raw->loaded || raw->entry_row[low] != row)
        return STATUS_OK;
    uint64_t start = raw->entry_end[low], length = raw->entry_end[low + 1] - start;
    char *text = realloc(raw->text, length + 1);
    if (!text)
        return error_memory(err, length + 1, "a path");
    raw->text = text;
    text[length] = 0;
    *path = text;
    return h5_read_rows(raw->bytes, VALUE_U8, start, length, text, rows->path, err);
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
        if (load_block(rows, row, left < rows->next_block ? (unsigned)left : rows->next_block, err))
            return STATUS_FAILED;
    }
    const char *at = rows->block + (row - rows->first) * rows->table->row_size;
    *found = at;
    /* The path is the first member of every row struct. */
    memcpy(path_raw, at, sizeof *path_raw);
    return rows->raw.there ? raw_path(rows, row, path_raw, err) : STATUS_OK;
}
