/* file_rows.c: pread, and conversion in a buffer that stays in the cache. */
#include "matrix/file_rows.h"
#include <errno.h>
#include <unistd.h>

#define BUFFER_BYTES (64u << 10)

enum status file_rows_bytes(const struct file_rows *file, void *out, size_t size, uint64_t offset,
                            struct error *err)
{
    char *to = out;
    while (size > 0) {
        ssize_t got = pread(file->fd, to, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_errno(err, STATUS_FAILED, errno, "pread", "cannot read %s", file->path);
        if (got == 0)
            return error_set(err, STATUS_FAILED, "%s was truncated while it was read", file->path);
        to += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return STATUS_OK;
}

enum status file_rows_values(const struct file_rows *file, uint64_t first, uint64_t count, float *out,
                             struct error *err)
{
    const size_t bytes = file->format.bytes;
    uint64_t offset = file->offset + first * bytes;
    if (values_direct(file->format))
        return file_rows_bytes(file, out, (size_t)count * bytes, offset, err);
    unsigned char buffer[BUFFER_BYTES];
    while (count > 0) {
        const size_t part = count < BUFFER_BYTES / bytes ? (size_t)count : BUFFER_BYTES / bytes;
        const enum status status = file_rows_bytes(file, buffer, part * bytes, offset, err);
        if (status != STATUS_OK)
            return status;
        values_convert(out, buffer, part, file->format);
        out += part;
        count -= part;
        offset += part * bytes;
    }
    return STATUS_OK;
}

enum status file_rows_read(const struct file_rows *file, uint64_t first, uint64_t count, float *rows,
                           struct error *err)
{
    return file_rows_values(file, first * file->dimension, count * file->dimension, rows, err);
}
