/* spool.c: an unlinked temporary file, with its unwritten end in memory. */
#include "sources/spool.h"
#include "base/path.h"
#include "base/unnamed_file.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_SIZE (64 * 1024)

struct spool {
    const char *directory;
    int fd;           /* -1 until the first flush */
    uint64_t written; /* bytes in the file; the buffer follows them */
    size_t buffered;
    char buffer[BUFFER_SIZE];
};

static enum status failed(const struct spool *spool, int number, const char *call, const char *verb,
                          struct error *err)
{
    const char *shown = PATH_TEXT(spool->directory);
    bool full = number == ENOSPC || number == EDQUOT;
    enum status status =
        error_errno(err, STATUS_FAILED, number, call, "cannot %s a temporary file in %s%s", verb,
                    shown, full ? " (free some space there)" : "");
    error_subject(err, spool->directory);
    return status;
}

enum status spool_open(struct spool **out, const char *directory, struct error *err)
{
    struct spool *spool = malloc(sizeof *spool);
    if (!spool)
        return error_memory(err, sizeof *spool, "a temporary file's buffer");
    spool->fd = -1;
    spool->written = 0;
    spool->buffered = 0;
    spool->directory = directory;
    *out = spool;
    return STATUS_OK;
}

static enum status write_out(struct spool *spool, const char *data, size_t size, struct error *err)
{
    if (spool->fd < 0 && (spool->fd = unnamed_file(spool->directory)) < 0)
        return failed(spool, errno, "mkostemp", "create", err);
    while (size > 0) {
        ssize_t n = pwrite(spool->fd, data, size, (off_t)spool->written);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(spool, n < 0 ? errno : ENOSPC, "pwrite", "write", err);
        data += n;
        size -= (size_t)n;
        spool->written += (uint64_t)n;
    }
    return STATUS_OK;
}

enum status spool_flush(struct spool *spool, struct error *err)
{
    enum status status = write_out(spool, spool->buffer, spool->buffered, err);
    if (status == STATUS_OK)
        spool->buffered = 0;
    return status;
}

enum status spool_write(struct spool *spool, const void *data, size_t size, struct error *err)
{
    if (size > BUFFER_SIZE - spool->buffered && spool->buffered > 0) {
        enum status status = spool_flush(spool, err);
        if (status != STATUS_OK)
            return status;
    }
    if (size > BUFFER_SIZE)
        return write_out(spool, data, size, err);
    memcpy(spool->buffer + spool->buffered, data, size);
    spool->buffered += size;
    return STATUS_OK;
}

uint64_t spool_size(const struct spool *spool)
{
    return spool->written + spool->buffered;
}

enum status spool_read(const struct spool *spool, void *data, size_t size, uint64_t offset,
                       struct error *err)
{
    assert(offset <= spool_size(spool) && size <= spool_size(spool) - offset);
    char *out = data;
    while (size > 0 && offset < spool->written) {
        size_t part = size;
        if (part > spool->written - offset)
            part = (size_t)(spool->written - offset);
        ssize_t n = pread(spool->fd, out, part, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(spool, n < 0 ? errno : EIO, "pread", "read", err);
        out += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    if (size > 0)
        memcpy(out, spool->buffer + (offset - spool->written), size);
    return STATUS_OK;
}

enum status spool_reset(struct spool *spool, struct error *err)
{
    if (spool->written > 0 && ftruncate(spool->fd, 0) != 0)
        return failed(spool, errno, "ftruncate", "empty", err);
    spool->written = 0;
    spool->buffered = 0;
    return STATUS_OK;
}

void spool_close(struct spool **spool)
{
    if (!spool || !*spool)
        return;
    if ((*spool)->fd >= 0)
        close((*spool)->fd);
    free(*spool);
    *spool = NULL;
}

enum status spool_reader_init(struct spool_reader *reader, const struct spool *spool,
                              uint64_t offset, uint64_t end, size_t capacity, struct error *err)
{
    char *buffer = malloc(capacity);
    if (!buffer)
        return error_memory(err, capacity, "a temporary file's read buffer");
    *reader = (struct spool_reader){
        .spool = spool, .offset = offset, .end = end, .buffer = buffer, .capacity = capacity};
    return STATUS_OK;
}

void spool_reader_clear(struct spool_reader *reader)
{
    free(reader->buffer);
    *reader = (struct spool_reader){0};
}

enum status spool_peek(const char **data, struct spool_reader *reader, size_t size,
                       struct error *err)
{
    size_t have = reader->filled - reader->start;
    if (have < size) {
        if (size > reader->capacity) {
            size_t capacity = size > 2 * reader->capacity ? size : 2 * reader->capacity;
            char *larger = realloc(reader->buffer, capacity);
            if (!larger)
                return error_memory(err, capacity, "a temporary file's read buffer");
            reader->buffer = larger;
            reader->capacity = capacity;
        }
        memmove(reader->buffer, reader->buffer + reader->start, have);
        reader->start = 0;
        reader->filled = have;
        uint64_t end = reader->end;
        if (end > spool_size(reader->spool))
            end = spool_size(reader->spool);
        size_t part = reader->capacity - have;
        if (part > end - reader->offset)
            part = (size_t)(end - reader->offset);
        if (have + part < size)
            return STATUS_END;
        enum status status =
            spool_read(reader->spool, reader->buffer + have, part, reader->offset, err);
        if (status != STATUS_OK)
            return status;
        reader->offset += part;
        reader->filled += part;
    }
    *data = reader->buffer + reader->start;
    return STATUS_OK;
}

void spool_take(struct spool_reader *reader, size_t size)
{
    assert(size <= reader->filled - reader->start);
    reader->start += size;
}
