/* spool.h: a temporary file without a name: written front to back, read anywhere.
 *
 * The last bytes written stay in memory until there are enough of them, so that little data never
 * reaches the disk; reading finds them there. The file has no name in its directory (O_TMPFILE, or
 * unlinked at once), so a killed process leaves nothing behind. One thread at a time. */
#ifndef CLPIPE_WALK_SPOOL_H
#define CLPIPE_WALK_SPOOL_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

struct spool;

/* `directory` is an existing directory; it is not touched before the first byte is written to it.
 */
enum status spool_open(struct spool **out, const char *directory, struct error *err);
/* Appends. STATUS_FAILED with errno where the disk takes no more. */
enum status spool_write(struct spool *spool, const void *data, size_t size, struct error *err);
/* Hands everything written to the file system, creating the file if there is none yet. */
enum status spool_flush(struct spool *spool, struct error *err);
/* Bytes written since the start or the last spool_reset. */
uint64_t spool_size(const struct spool *spool);
/* Reads exactly `size` bytes at `offset`; the range lies within spool_size. */
enum status spool_read(const struct spool *spool, void *data, size_t size, uint64_t offset,
                       struct error *err);
/* Forgets the contents and gives their disk space back. */
enum status spool_reset(struct spool *spool, struct error *err);
/* Accepts NULL and NULLs. */
void spool_close(struct spool **spool);

/* Reads a range of a spool front to back through a buffer. While the range is the whole spool
 * (end == SPOOL_END), what is written later is read too. */
struct spool_reader {
    const struct spool *spool;
    uint64_t offset, end; /* where the next bytes come from; where the range ends */
    char *buffer;
    size_t capacity, start, filled; /* buffer[start..filled) is read and not yet taken */
    bool growable;                  /* the buffer is the reader's own and may be reallocated */
};

#define SPOOL_END UINT64_MAX

/* A reader over [offset, end) with a buffer of its own, which spool_reader_clear frees. */
enum status spool_reader_init(struct spool_reader *reader, const struct spool *spool,
                              uint64_t offset, uint64_t end, size_t capacity, struct error *err);
/* A reader that borrows `buffer`, which must be as large as the largest spool_peek. */
void spool_reader_borrow(struct spool_reader *reader, const struct spool *spool, uint64_t offset,
                         uint64_t end, char *buffer, size_t capacity);
void spool_reader_clear(struct spool_reader *reader);

/* Points *data to the next `size` bytes without taking them; valid until the next call.
 * STATUS_END: the range has no more bytes. */
enum status spool_peek(const char **data, struct spool_reader *reader, size_t size,
                       struct error *err);
/* Takes `size` bytes, which the last spool_peek has shown. */
void spool_take(struct spool_reader *reader, size_t size);

#endif
