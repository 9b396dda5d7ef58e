/* blobs.c: writes and reads in blocks. */
#include "file/blobs.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define END_BLOCK  4096
#define DATA_BLOCK (4u << 20)

struct blobs {
    const char *path;
    hid_t data, end;
    uint64_t rows, bytes;               /* to come in all */
    uint64_t first, byte_first, at_end; /* the blocks' first; bytes added so far */
    unsigned count;                     /* ends in the block */
    size_t filled;
    uint64_t ends[END_BLOCK];
    uint8_t *block; /* DATA_BLOCK bytes */
};

enum status blobs_create(struct blobs **out, hid_t file, const char *group, const char *axis,
                         uint64_t rows, uint64_t bytes, const char *path, struct error *err)
{
    *out = NULL;
    enum status status = STATUS_FAILED;
    hid_t id = H5I_INVALID_HID;
    const hsize_t row_count = rows, byte_count = bytes;
    struct blobs *t = calloc(1, sizeof *t);
    if (!t || !(t->block = malloc(DATA_BLOCK))) {
        error_memory(err, DATA_BLOCK, "blobs");
        goto out;
    }
    t->path = path;
    t->rows = rows;
    t->bytes = bytes;
    if (h5_create_scale(file, axis, bytes, path, err) ||
        h5_create_group(&id, file, group, path, err) ||
        h5_create_dataset(&t->data, id, "data", VALUE_U8, 1, &byte_count, path, err) ||
        h5_attach_scale(file, t->data, 0, axis, path, err) ||
        h5_create_dataset(&t->end, id, "end", VALUE_U64, 1, &row_count, path, err) ||
        h5_attach_scale(file, t->end, 0, image_table.axis, path, err))
        goto out;
    *out = t;
    t = NULL;
    status = STATUS_OK;
out:
    h5_close(&id);
    blobs_close(&t);
    return status;
}

enum status thumbnails_put_size(hid_t file, uint32_t size, const char *path, struct error *err)
{
    hid_t group;
    if (h5_open_group(&group, file, THUMBNAIL_GROUP, path, err))
        return STATUS_FAILED;
    const enum status status = h5_put_number(group, "size", VALUE_U32, &size, path, err);
    h5_close(&group);
    return status;
}

enum status thumbnails_create(struct blobs **out, hid_t file, uint32_t size, uint64_t rows,
                              uint64_t bytes, const char *path, struct error *err)
{
    const enum status status =
        blobs_create(out, file, THUMBNAIL_GROUP, THUMBNAIL_AXIS, rows, bytes, path, err);
    return status ? status : thumbnails_put_size(file, size, path, err);
}

static enum status flush_data(struct blobs *t, struct error *err)
{
    if (h5_write_rows(t->data, VALUE_U8, t->byte_first, t->filled, t->block, t->path, err))
        return STATUS_FAILED;
    t->byte_first += t->filled;
    t->filled = 0;
    return STATUS_OK;
}

static enum status flush_ends(struct blobs *t, struct error *err)
{
    if (h5_write_rows(t->end, VALUE_U64, t->first, t->count, t->ends, t->path, err))
        return STATUS_FAILED;
    t->first += t->count;
    t->count = 0;
    return STATUS_OK;
}

enum status blobs_add(struct blobs *t, const void *blob, uint64_t length, struct error *err)
{
    const uint8_t *at = blob;
    assert(t->first + t->count < t->rows && length <= t->bytes - t->at_end);
    t->at_end += length;
    t->ends[t->count++] = t->at_end;
    if (t->count == END_BLOCK && flush_ends(t, err))
        return STATUS_FAILED;
    while (length > 0) {
        const size_t room = DATA_BLOCK - t->filled, part = length < room ? (size_t)length : room;
        memcpy(t->block + t->filled, at, part);
        t->filled += part;
        at += part;
        length -= part;
        if (t->filled == DATA_BLOCK && flush_data(t, err))
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

enum status blobs_finish(struct blobs *t, struct error *err)
{
    if (flush_ends(t, err) || flush_data(t, err))
        return STATUS_FAILED;
    assert(t->first == t->rows && t->at_end == t->bytes);
    return STATUS_OK;
}

void blobs_close(struct blobs **blobs)
{
    if (!blobs || !*blobs)
        return;
    h5_close(&(*blobs)->data);
    h5_close(&(*blobs)->end);
    free((*blobs)->block);
    free(*blobs);
    *blobs = NULL;
}

/* --- reading --------------------------------------------------------------------------------- */

struct blob_reader {
    const char *path, *group;
    hid_t data, end;
    uint64_t rows, bytes, most;
    uint64_t first; /* ends of rows [first, first + loaded) are in `ends`, from ends[1] on */
    unsigned loaded;
    uint64_t ends[END_BLOCK + 1]; /* ends[0]: where row `first` begins */
    uint8_t *blob;
    size_t capacity;
};

enum status blob_reader_open(struct blob_reader **out, hid_t file, const char *group, uint64_t rows,
                             uint64_t most, const char *path, struct error *err)
{
    *out = NULL;
    enum status status = STATUS_FAILED;
    hid_t id = H5I_INVALID_HID;
    hsize_t ends = 0, bytes = 0;
    char where[64];
    if (!h5_is_object(file, group, H5O_TYPE_GROUP))
        return STATUS_OK;
    struct blob_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return error_memory(err, sizeof *reader, "blobs");
    *reader = (struct blob_reader){.path = path, .group = group, .rows = rows, .most = most};
    snprintf(where, sizeof where, "/%s/data", group);
    if (h5_open_group(&id, file, group, path, err) ||
        h5_open_dataset(&reader->data, id, "data", VALUE_U8, 1, &bytes, where, path, err))
        goto out;
    snprintf(where, sizeof where, "/%s/end", group);
    if (h5_open_dataset(&reader->end, id, "end", VALUE_U64, 1, &ends, where, path, err))
        goto out;
    if (ends != rows) {
        h5_damaged(err, path, "/%s has another number of rows than /images", group);
        goto out;
    }
    reader->bytes = bytes;
    *out = reader;
    reader = NULL;
    status = STATUS_OK;
out:
    h5_close(&id);
    blob_reader_close(&reader);
    return status;
}

void blob_reader_close(struct blob_reader **reader)
{
    if (!reader || !*reader)
        return;
    h5_close(&(*reader)->data);
    h5_close(&(*reader)->end);
    free((*reader)->blob);
    free(*reader);
    *reader = NULL;
}

static enum status load_ends(struct blob_reader *reader, uint64_t row, struct error *err)
{
    const uint64_t left = reader->rows - row;
    const unsigned count = left < END_BLOCK ? (unsigned)left : END_BLOCK;
    reader->loaded = 0;
    reader->ends[0] = 0;
    if ((row > 0 &&
         h5_read_rows(reader->end, VALUE_U64, row - 1, 1, reader->ends, reader->path, err)) ||
        h5_read_rows(reader->end, VALUE_U64, row, count, reader->ends + 1, reader->path, err))
        return STATUS_FAILED;
    reader->first = row;
    reader->loaded = count;
    return STATUS_OK;
}

enum status blob_reader_read(struct blob_reader *reader, uint64_t row, const uint8_t **blob,
                             uint64_t *length, struct error *err)
{
    *blob = NULL;
    *length = 0;
    assert(row < reader->rows);
    if ((row < reader->first || row >= reader->first + reader->loaded) &&
        load_ends(reader, row, err))
        return STATUS_FAILED;
    const uint64_t *ends = reader->ends + (row - reader->first), start = ends[0], end = ends[1];
    if (start > end || end > reader->bytes || end - start > reader->most)
        return h5_damaged(err, reader->path, "/%s/end: row %llu contradicts the others",
                          reader->group, (unsigned long long)row);
    if (end == start)
        return STATUS_OK;
    if (end - start >= reader->capacity) {
        uint8_t *more = realloc(reader->blob, 2 * (end - start));
        if (!more)
            return error_memory(err, 2 * (end - start), "a blob");
        reader->blob = more;
        reader->capacity = 2 * (end - start);
    }
    if (h5_read_rows(reader->data, VALUE_U8, start, end - start, reader->blob, reader->path, err))
        return STATUS_FAILED;
    reader->blob[end - start] = 0;
    *blob = reader->blob;
    *length = end - start;
    return STATUS_OK;
}
