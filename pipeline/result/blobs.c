/* blobs.c: reads ends in blocks. */
#include "result/blobs.h"
#include <assert.h>
#include <stdlib.h>

#define END_BLOCK 4096

struct blob_reader {
    const char *group;
    hid_t data, end;
    uint64_t rows, bytes, most;
    uint64_t first; /* ends of rows [first, first + loaded) are in `ends`, from ends[1] on */
    unsigned loaded;
    uint64_t ends[END_BLOCK + 1]; /* ends[0]: where row `first` begins */
    uint8_t *blob;
    size_t capacity;
};

enum status blob_reader_open(struct blob_reader **out, hid_t file, const char *group, uint64_t rows,
                             uint64_t most, struct error *err)
{
    H5_SCOPED hid_t id = H5I_INVALID_HID;
    hsize_t ends = 0, bytes = 0;
    *out = NULL;
    if (!h5_is_object(file, group, H5O_TYPE_GROUP))
        return STATUS_OK;
    struct blob_reader *reader = *out = calloc(1, sizeof *reader);
    if (!reader)
        return error_memory(err, sizeof *reader, "blobs");
    *reader = (struct blob_reader){.group = group, .rows = rows, .most = most};
    enum status status = STATUS_OK;
    if (h5_open_group(&id, file, group, err) ||
        h5_open_dataset(&reader->data, id, "data", VALUE_U8, 1, &bytes, err) ||
        h5_open_dataset(&reader->end, id, "end", VALUE_U64, 1, &ends, err))
        status = STATUS_FAILED;
    else if (ends != rows)
        status = h5_damaged(err, h5_path(file), "/%s has a different number of rows than /images",
                            group);
    reader->bytes = bytes;
    if (status)
        blob_reader_close(out);
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
    if ((row > 0 && h5_read_rows(reader->end, VALUE_U64, row - 1, 1, reader->ends, err)) ||
        h5_read_rows(reader->end, VALUE_U64, row, count, reader->ends + 1, err))
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
        return h5_damaged(err, h5_path(reader->end), "/%s/end: row %llu contradicts the others",
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
    if (h5_read_rows(reader->data, VALUE_U8, start, end - start, reader->blob, err))
        return STATUS_FAILED;
    reader->blob[end - start] = 0;
    *blob = reader->blob;
    *length = end - start;
    return STATUS_OK;
}
