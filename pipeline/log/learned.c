/* learned.c: a file that is written under another name, synced and renamed. */
#include "log/learned.h"

#include "base/output.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status fail(struct error *err, const char *call, const char *what, const char *path)
{
    const int number = errno;
    char shown[256];
    return error_errno(err, STATUS_FAILED, number, call, "cannot %s %s/" LEARNED_NAME, what,
                       path_for_message(shown, sizeof shown, path));
}

enum status learned_write(int directory, const void *bytes, size_t size, const char *path,
                          struct error *err)
{
    enum status status = STATUS_FAILED;
    const int fd = openat(directory, LEARNED_NEW,
                          O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return fail(err, "openat", "write", path);
    if (write_all(fd, bytes, size, path, err) != STATUS_OK)
        goto out;
    if (fsync(fd) != 0 || renameat(directory, LEARNED_NEW, directory, LEARNED_NAME) != 0) {
        fail(err, "renameat", "write", path);
        goto out;
    }
    status = output_sync(directory) ? STATUS_OK : fail(err, "fsync", "write", path);
out:
    close(fd);
    if (status != STATUS_OK)
        unlinkat(directory, LEARNED_NEW, 0);
    return status;
}

enum status learned_read(uint8_t **bytes, size_t *size, int directory, const char *path,
                         struct error *err)
{
    enum status status = STATUS_FAILED;
    struct stat st;
    uint8_t *read_bytes = NULL;
    *bytes = NULL;
    const int fd = openat(directory, LEARNED_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? STATUS_END : fail(err, "openat", "read", path);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)LEARNED_MOST_BYTES) {
        errno = EINVAL;
        fail(err, "fstat", "read", path);
        goto out;
    }
    *size = (size_t)st.st_size;
    read_bytes = malloc(*size + 1);
    if (!read_bytes) {
        status = error_memory(err, *size, "codebooks");
        goto out;
    }
    for (size_t done = 0; done < *size;) {
        const ssize_t got = read(fd, read_bytes + done, *size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got < 0 ? errno : EIO;
            fail(err, "read", "read", path);
            goto out;
        }
        done += (size_t)got;
    }
    *bytes = read_bytes;
    read_bytes = NULL;
    status = STATUS_OK;
out:
    free(read_bytes);
    close(fd);
    return status;
}
