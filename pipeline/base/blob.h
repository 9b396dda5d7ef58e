/* blob.h: the bytes of one picture on their way to a decoder: a file, a range of a larger one, or
 * bytes in memory.
 *
 * A blob is a value; the caller that opened it closes it, once. Reading does not change it: any
 * number of threads may read the same blob, and blobs of one descriptor, at the same time. */
#ifndef CLPIPE_BASE_BLOB_H
#define CLPIPE_BASE_BLOB_H

#include "base/failure.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct blob {
    int fd;                           /* -1: bytes in memory, or nothing */
    uint64_t offset, bytes;           /* the range */
    uint64_t file_bytes;              /* size and modification time of the file while it */
    int64_t mtime_ns;                 /* is unchanged */
    const void *memory;               /* if fd is -1; NULL: nothing */
    void (*close)(struct blob *blob); /* releases the descriptor or the memory; NULL: borrowed */
};

/* No blob; different from one of 0 bytes. */
#define BLOB_NOTHING                                                                               \
    {                                                                                              \
        -1, 0, 0, 0, 0, NULL, NULL                                                                 \
    }

/* A whole file; closes the descriptor. */
struct blob blob_of_file(int fd, uint64_t bytes, int64_t mtime_ns);
/* The regular file at a path; *failure is set if it is not one or cannot be opened. */
void blob_open_file(struct blob *blob, const char *path, struct failure *failure);
/* A range of a file of file_bytes; borrows the descriptor. */
struct blob blob_of_range(int fd, uint64_t offset, uint64_t bytes, uint64_t file_bytes,
                          int64_t mtime_ns);
/* Memory from malloc(), which it frees; not NULL, even for 0 bytes. */
struct blob blob_of_memory(void *memory, uint64_t bytes);

/* Is there something to read? */
static inline bool blob_is_open(const struct blob *blob)
{
    return blob->fd >= 0 || blob->memory;
}

/* Reads up to `size` bytes from `position` on, as pread() does, never past the range. A blob of a
 * whole file ends at the file's current end. -1 with errno, never EINTR. */
ssize_t blob_read(const struct blob *blob, void *out, size_t size, uint64_t position);

/* Tells the system that the first `bytes` will be read. */
void blob_advise(const struct blob *blob, uint64_t bytes);

/* Makes *out a blob of the same bytes with a descriptor, which can be passed to another process:
 * borrows the descriptor of `blob`, or copies its memory to a file. Returns 0 or errno. */
int blob_share(struct blob *out, const struct blob *blob);

/* Digests all bytes: murmur3 and, unless `sha` is NULL, sha256. False: unreadable. */
bool blob_digest(const struct blob *blob, uint64_t digest[2], uint8_t sha[32]);

/* Closes it and makes it BLOB_NOTHING. */
void blob_close(struct blob *blob);

#endif
