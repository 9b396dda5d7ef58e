/* thumbnails.c: writes and reads /thumbnails in blocks. */
#include "file/thumbnails.h"
#include "log/records.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define END_BLOCK  4096
#define DATA_BLOCK (4u << 20)

struct thumbnails {
    const char *path;
    hid_t data, end;
    uint64_t rows, bytes;               /* to come in all */
    uint64_t first, byte_first, at_end; /* the blocks' first; bytes added so far */
    unsigned count;                     /* ends in the block */
    size_t filled;
    uint64_t ends[END_BLOCK];
    uint8_t *block; /* DATA_BLOCK bytes */
};

enum status thumbnails_create(struct thumbnails **out, hid_t file, uint32_t size, uint64_t rows,
                              uint64_t bytes, const char *path, struct error *err)
{
    *out = NULL;
    enum status status = STATUS_FAILED;
    hid_t group = H5I_INVALID_HID;
    const hsize_t row_count = rows, byte_count = bytes;
    struct thumbnails *t = calloc(1, sizeof *t);
    if (!t || !(t->block = malloc(DATA_BLOCK))) {
        error_memory(err, DATA_BLOCK, "thumbnails");
        goto out;
    }
    t->path = path;
    t->rows = rows;
    t->bytes = bytes;
    if (h5_create_scale(file, THUMBNAIL_AXIS, bytes, path, err) ||
        h5_create_group(&group, file, THUMBNAIL_GROUP, path, err) ||
        h5_put_number(group, "size", VALUE_U32, &size, path, err) ||
        h5_create_dataset(&t->data, group, "data", VALUE_U8, 1, &byte_count, path, err) ||
        h5_attach_scale(file, t->data, 0, THUMBNAIL_AXIS, path, err) ||
        h5_create_dataset(&t->end, group, "end", VALUE_U64, 1, &row_count, path, err) ||
        h5_attach_scale(file, t->end, 0, image_table.axis, path, err))
        goto out;
    *out = t;
    t = NULL;
    status = STATUS_OK;
out:
    h5_close(&group);
    thumbnails_close(&t);
    return status;
}

static enum status flush_data(struct thumbnails *t, struct error *err)
{
    if (h5_write_rows(t->data, VALUE_U8, t->byte_first, t->filled, t->block, t->path, err))
        return STATUS_FAILED;
    t->byte_first += t->filled;
    t->filled = 0;
    return STATUS_OK;
}

static enum status flush_ends(struct thumbnails *t, struct error *err)
{
    if (h5_write_rows(t->end, VALUE_U64, t->first, t->count, t->ends, t->path, err))
        return STATUS_FAILED;
    t->first += t->count;
    t->count = 0;
    return STATUS_OK;
}

enum status thumbnails_add(struct thumbnails *t, const uint8_t *jpeg, uint64_t length,
                           struct error *err)
{
    assert(t->first + t->count < t->rows && length <= t->bytes - t->at_end);
    t->at_end += length;
    t->ends[t->count++] = t->at_end;
    if (t->count == END_BLOCK && flush_ends(t, err))
        return STATUS_FAILED;
    while (length > 0) {
        const size_t room = DATA_BLOCK - t->filled, part = length < room ? (size_t)length : room;
        memcpy(t->block + t->filled, jpeg, part);
        t->filled += part;
        jpeg += part;
        length -= part;
        if (t->filled == DATA_BLOCK && flush_data(t, err))
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

enum status thumbnails_finish(struct thumbnails *t, struct error *err)
{
    if (flush_ends(t, err) || flush_data(t, err))
        return STATUS_FAILED;
    assert(t->first == t->rows && t->at_end == t->bytes);
    return STATUS_OK;
}

void thumbnails_close(struct thumbnails **thumbnails)
{
    if (!thumbnails || !*thumbnails)
        return;
    h5_close(&(*thumbnails)->data);
    h5_close(&(*thumbnails)->end);
    free((*thumbnails)->block);
    free(*thumbnails);
    *thumbnails = NULL;
}

/* --- reading --------------------------------------------------------------------------------- */

struct thumbnail_reader {
    const char *path;
    hid_t data, end;
    uint32_t size;
    uint64_t rows, bytes;
    uint64_t first; /* ends of rows [first, first + loaded) are in `ends`, from ends[1] on */
    unsigned loaded;
    uint64_t ends[END_BLOCK + 1]; /* ends[0]: where row `first` begins */
    uint8_t *jpeg;
    size_t capacity;
};

enum status thumbnail_reader_open(struct thumbnail_reader **out, hid_t file, uint64_t rows,
                                  const char *path, struct error *err)
{
    *out = NULL;
    enum status status = STATUS_FAILED;
    hid_t group = H5I_INVALID_HID;
    hsize_t ends = 0, bytes = 0;
    int64_t size = 0;
    if (!h5_is_object(file, THUMBNAIL_GROUP, H5O_TYPE_GROUP))
        return STATUS_OK;
    struct thumbnail_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return error_memory(err, sizeof *reader, "thumbnails");
    reader->path = path;
    if (h5_open_group(&group, file, THUMBNAIL_GROUP, path, err) ||
        h5_open_dataset(&reader->data, group, "data", VALUE_U8, 1, &bytes, "/thumbnails/data", path,
                        err) ||
        h5_open_dataset(&reader->end, group, "end", VALUE_U64, 1, &ends, "/thumbnails/end", path,
                        err))
        goto out;
    if (ends != rows) {
        h5_damaged(err, path, "/thumbnails has another number of rows than /images");
        goto out;
    }
    if (!h5_get_integer(group, "size", &size) || size < 1 || size > UINT16_MAX) {
        h5_damaged(err, path, "/thumbnails: its attribute 'size' is missing or out of range");
        goto out;
    }
    reader->size = (uint32_t)size;
    reader->rows = rows;
    reader->bytes = bytes;
    *out = reader;
    reader = NULL;
    status = STATUS_OK;
out:
    h5_close(&group);
    thumbnail_reader_close(&reader);
    return status;
}

void thumbnail_reader_close(struct thumbnail_reader **reader)
{
    if (!reader || !*reader)
        return;
    h5_close(&(*reader)->data);
    h5_close(&(*reader)->end);
    free((*reader)->jpeg);
    free(*reader);
    *reader = NULL;
}

uint32_t thumbnail_reader_size(const struct thumbnail_reader *reader)
{
    return reader->size;
}

static enum status load_ends(struct thumbnail_reader *reader, uint64_t row, struct error *err)
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

enum status thumbnail_reader_read(struct thumbnail_reader *reader, uint64_t row,
                                  const uint8_t **jpeg, uint64_t *length, struct error *err)
{
    *jpeg = NULL;
    *length = 0;
    assert(row < reader->rows);
    if ((row < reader->first || row >= reader->first + reader->loaded) &&
        load_ends(reader, row, err))
        return STATUS_FAILED;
    const uint64_t *ends = reader->ends + (row - reader->first), start = ends[0], end = ends[1];
    if (start > end || end > reader->bytes || end - start > RECORDS_MOST_THUMBNAIL)
        return h5_damaged(err, reader->path, "/thumbnails/end: row %llu contradicts the others",
                          (unsigned long long)row);
    if (end == start)
        return STATUS_OK;
    if (end - start > reader->capacity) {
        uint8_t *more = realloc(reader->jpeg, 2 * (end - start));
        if (!more)
            return error_memory(err, 2 * (end - start), "a thumbnail");
        reader->jpeg = more;
        reader->capacity = 2 * (end - start);
    }
    if (h5_read_rows(reader->data, VALUE_U8, start, end - start, reader->jpeg, reader->path, err))
        return STATUS_FAILED;
    *jpeg = reader->jpeg;
    *length = end - start;
    return STATUS_OK;
}
