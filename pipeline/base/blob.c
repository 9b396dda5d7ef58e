/* blob.c: reading from a range. Only by pread(): all blobs of a descriptor share its position, and
 * so do processes that it was passed to. */
#include "base/blob.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGEST_BYTES ((size_t)256 << 10) /* read at a time */

static void close_descriptor(struct blob *blob)
{
    close(blob->fd);
}

static void free_memory(struct blob *blob)
{
    free((void *)(uintptr_t)blob->memory);
}

struct blob blob_of_file(int fd, uint64_t bytes, int64_t mtime_ns)
{
    struct blob blob = blob_of_range(fd, 0, bytes, bytes, mtime_ns);
    blob.close = close_descriptor;
    return blob;
}

void blob_open_file(struct blob *blob, const char *path, struct failure *failure)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        failure_errno(failure,
                      errno == ENOENT || errno == ENOTDIR ? REASON_VANISHED : REASON_UNREADABLE,
                      errno, "cannot open");
    else if (!S_ISREG(st.st_mode))
        failure_set(failure, REASON_UNREADABLE, "no regular file");
    else
        *blob = blob_of_file(fd, (uint64_t)st.st_size, clock_file_time(&st.st_mtim));
    if (fd >= 0 && !blob_is_open(blob))
        close(fd);
}

struct blob blob_of_range(int fd, uint64_t offset, uint64_t bytes, uint64_t file_bytes,
                          int64_t mtime_ns)
{
    return (struct blob){
        .fd = fd, .offset = offset, .bytes = bytes, .file_bytes = file_bytes, .mtime_ns = mtime_ns};
}

struct blob blob_of_memory(void *memory, uint64_t bytes)
{
    return (struct blob){.fd = -1, .bytes = bytes, .memory = memory, .close = free_memory};
}

ssize_t blob_read(const struct blob *blob, void *out, size_t size, uint64_t position)
{
    /* A whole file is read to its current end: it may have grown, which must be detected. */
    if (blob->fd < 0 || blob->offset > 0 || blob->bytes != blob->file_bytes) {
        const uint64_t left = position < blob->bytes ? blob->bytes - position : 0;
        size = size < left ? size : (size_t)left;
    }
    if (size == 0 || position > (uint64_t)INT64_MAX - blob->offset)
        return 0;
    if (blob->memory) {
        memcpy(out, (const char *)blob->memory + position, size);
        return (ssize_t)size;
    }
    ssize_t got;
    do
        got = pread(blob->fd, out, size, (off_t)(blob->offset + position));
    while (got < 0 && errno == EINTR);
    return got;
}

void blob_advise(const struct blob *blob, uint64_t bytes)
{
    const uint64_t most = blob->bytes < bytes ? blob->bytes : bytes;
    if (blob->fd >= 0)
        posix_fadvise(blob->fd, (off_t)blob->offset, (off_t)most, POSIX_FADV_WILLNEED);
}

int blob_share(struct blob *out, const struct blob *blob)
{
    *out = *blob;
    out->close = NULL;
    if (blob->fd >= 0)
        return 0;
    const int fd = memfd_create("clpipe-blob", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return errno;
    struct stat st;
    struct error trouble = ERROR_INIT;
    int code = 0;
    if (write_all(fd, blob->memory, blob->bytes, "a copy in memory", &trouble) != STATUS_OK)
        code = trouble.native ? trouble.native : ENOSPC;
    if (code == 0 &&
        (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
         fstat(fd, &st) != 0))
        code = errno;
    if (code != 0) {
        close(fd);
        return code;
    }
    *out = blob_of_file(fd, blob->bytes, clock_file_time(&st.st_mtim));
    return 0;
}

bool blob_digest(const struct blob *blob, uint64_t digest[2], uint8_t sha[32])
{
    struct murmur3 murmur;
    struct sha256 strong;
    uint64_t at = 0;
    ssize_t got = 0;
    uint8_t *bytes = malloc(DIGEST_BYTES);
    murmur3_init(&murmur);
    sha256_init(&strong);
    while (bytes && (got = blob_read(blob, bytes, DIGEST_BYTES, at)) > 0) {
        murmur3_update(&murmur, bytes, (size_t)got);
        if (sha)
            sha256_update(&strong, bytes, (size_t)got);
        at += (uint64_t)got;
    }
    const bool good = bytes && got == 0;
    free(bytes);
    murmur3_final(&murmur, digest);
    if (sha)
        sha256_final(&strong, sha);
    return good;
}

void blob_close(struct blob *blob)
{
    if (blob->close)
        blob->close(blob);
    *blob = (struct blob)BLOB_NOTHING;
}
