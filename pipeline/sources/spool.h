/* spool.h: an unlinked temporary file: append only, random reads.
 *
 * The last bytes are buffered in memory, and read from there, so small data never reaches the disk.
 * The file has no name (O_TMPFILE, or unlinked at once), so a killed process leaves nothing behind.
 * One thread at a time. */
#ifndef CLPIPE_SOURCES_SPOOL_H
#define CLPIPE_SOURCES_SPOOL_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

struct spool;

/* `directory` must exist, but is not used before the first write to disk; its name stays valid while
 * the spool is used. */
enum status spool_open(struct spool **out, const char *directory, struct error *err);
/* Appends. STATUS_FAILED with errno on disk errors. */
enum status spool_write(struct spool *spool, const void *data, size_t size, struct error *err);
/* Writes all buffered data to the file, creating it if necessary. */
enum status spool_flush(struct spool *spool, struct error *err);
/* Bytes written since the start or the last spool_reset. */
uint64_t spool_size(const struct spool *spool);
/* Reads exactly `size` bytes at `offset`; the range must be within spool_size. */
enum status spool_read(const struct spool *spool, void *data, size_t size, uint64_t offset,
                       struct error *err);
/* Drops the contents and frees the disk space. */
enum status spool_reset(struct spool *spool, struct error *err);
/* Accepts NULL. */
void spool_close(struct spool **spool);

/* Reads a range of a spool sequentially through a buffer. If end is SPOOL_END, data written later
 * is read too. */
struct spool_reader {
    const struct spool *spool;
    uint64_t offset, end;           /* next file offset; end of the range */
    char *buffer;                   /* of `capacity` bytes, or more for a larger spool_peek */
    size_t capacity, start, filled; /* buffer[start..filled) is read but not consumed */
};

#define SPOOL_END UINT64_MAX

/* A reader over [offset, end), whose buffer is freed by spool_reader_clear. */
enum status spool_reader_init(struct spool_reader *reader, const struct spool *spool,
                              uint64_t offset, uint64_t end, size_t capacity, struct error *err);
/* Accepts a zeroed struct, and leaves one. */
void spool_reader_clear(struct spool_reader *reader);

/* Sets *data to the next `size` bytes without consuming them; valid until the next call.
 * STATUS_END: end of the range. */
enum status spool_peek(const char **data, struct spool_reader *reader, size_t size,
                       struct error *err);
/* Consumes `size` bytes returned by the last spool_peek. */
void spool_take(struct spool_reader *reader, size_t size);

#endif
