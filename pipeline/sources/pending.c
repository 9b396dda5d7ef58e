/* pending.c: a queue of directories in a spool.
 *
 * Disk space is freed whenever the queue is empty, so deep and narrow trees need little. */
#include "sources/pending.h"
#include "sources/spool.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define READ_BUFFER (32 * 1024)

struct pending {
    struct spool *spool;
    struct spool_reader reader;
};

struct pending_header {
    uint32_t length, flags;
};

enum status pending_open(struct pending **out, const char *spool_directory, struct error *err)
{
    struct pending *pending = calloc(1, sizeof *pending);
    if (!pending)
        return error_memory(err, sizeof *pending, "the queue of directories");
    enum status status = spool_open(&pending->spool, spool_directory, err);
    if (status == STATUS_OK)
        status =
            spool_reader_init(&pending->reader, pending->spool, 0, SPOOL_END, READ_BUFFER, err);
    if (status != STATUS_OK) {
        pending_close(&pending);
        return status;
    }
    *out = pending;
    return STATUS_OK;
}

enum status pending_push(struct pending *pending, const char *path, size_t length, unsigned flags,
                         struct error *err)
{
    struct pending_header header = {(uint32_t)length, flags};
    enum status status = spool_write(pending->spool, &header, sizeof header, err);
    if (status == STATUS_OK)
        status = spool_write(pending->spool, path, length, err);
    return status;
}

enum status pending_pop(struct pending *pending, struct bytes *path, unsigned *flags,
                        struct error *err)
{
    const char *bytes;
    struct pending_header header;
    struct spool_reader *reader = &pending->reader;
    enum status status = spool_peek(&bytes, reader, sizeof header, err);
    if (status != STATUS_OK)
        return status;
    memcpy(&header, bytes, sizeof header);
    spool_take(reader, sizeof header);
    status = spool_peek(&bytes, reader, header.length, err);
    assert(status != STATUS_END);
    if (status != STATUS_OK)
        return status;
    bytes_cut(path, 0);
    status = bytes_append(path, bytes, header.length, err);
    *flags = header.flags;
    spool_take(reader, header.length);
    if (status == STATUS_OK && reader->start == reader->filled &&
        reader->offset == spool_size(pending->spool)) {
        reader->offset = reader->start = reader->filled = 0;
        status = spool_reset(pending->spool, err);
    }
    return status;
}

void pending_close(struct pending **pending)
{
    if (!pending || !*pending)
        return;
    spool_reader_clear(&(*pending)->reader);
    spool_close(&(*pending)->spool);
    free(*pending);
    *pending = NULL;
}
