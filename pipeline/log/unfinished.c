/* unfinished.c: a shared lock tells whether the exclusive one is held; frames are counted by their
 * heads. */
#include "log/unfinished.h"
#include "base/path.h"
#include "log/handover.h"
#include "log/holder.h"
#include "log/records.h"
#include "log/workdir.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES  (1u << 20)
#define MOST_SMALL    (1u << 20)
#define MOST_COUNTERS (1u << 22) /* of any image */

/* Whether somebody has the lock. Where the file system has no locks, the line in it must do. */
static void look_at_lock(struct unfinished *out, int directory)
{
    const int lock = openat(directory, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char line[2] = "";
    if (lock < 0)
        return;
    const bool left = pread(lock, line, 1, 0) == 1 && line[0] == '-';
    const bool free_here = flock(lock, LOCK_SH | LOCK_NB) == 0;
    out->in_use = !free_here && errno == EWOULDBLOCK;
    out->may_be_used = !out->in_use && !left && !holder_is_ours(lock);
    if (out->in_use || out->may_be_used)
        holder_name(out->holder, sizeof out->holder, lock);
    close(lock);
}

/* A small file of the directory with a NUL behind it; NULL: there is none, or not all of it could be
 * read. Free it. */
static char *read_small(size_t *size, int directory, const char *name)
{
    const int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    char *text = NULL;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        st.st_size <= (off_t)MOST_SMALL)
        text = calloc(1, (size_t)st.st_size + 1);
    *size = text ? (size_t)st.st_size : 0;
    if (text && read(fd, text, *size) != (ssize_t)*size) {
        free(text);
        text = NULL;
    }
    close(fd);
    return text;
}

/* The command line, a NUL, the directory. */
static void read_command(struct unfinished *out, int directory)
{
    size_t size;
    char *text = read_small(&size, directory, "command");
    const size_t length = text ? strlen(text) : 0;
    if (length > 0 && length < size)
        out->directory = strdup(text + length + 1);
    if (out->directory && utf8_valid(text, length))
        out->command = strdup(text);
    free(text);
}

static enum status count_records(struct unfinished *out, int fd, uint64_t start, const char *path,
                                 struct error *err)
{
    struct records_reader reader;
    struct records_entry entry;
    enum status status = STATUS_OK;
    records_reader_init(&reader, fd, path, MOST_COUNTERS, out->bytes, BUFFER_BYTES);
    for (uint64_t at = start; status == STATUS_OK; at = entry.next) {
        status = records_peek(&reader, at, &entry, err);
        if (status != STATUS_OK)
            break;
        if (entry.start) {
            out->runs++;
        } else {
            out->records++;
            out->by_reason[entry.record.failure.reason]++;
        }
    }
    records_reader_clear(&reader);
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status look_at_log(struct unfinished *out, int directory, struct error *err)
{
    const int fd = openat(directory, WORKDIR_LOG, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char *signature = NULL;
    struct stat st;
    uint64_t start;
    char shown[256];
    if (fd < 0 && errno == ENOENT)
        return STATUS_OK;
    path_for_message(shown, sizeof shown, out->path);
    if (fd < 0 || fstat(fd, &st) != 0) {
        const int trouble = errno;
        if (fd >= 0)
            close(fd);
        return error_errno(err, STATUS_FAILED, trouble, "open", "cannot read %s/records", shown);
    }
    out->bytes = (uint64_t)st.st_size;
    out->written_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    out->has_log = out->bytes > 0;
    out->handing_over = handover_look(directory, out->by_reason, &out->handed_over);
    for (unsigned i = 0; out->handing_over && i < REASON_COUNT; i++)
        out->records += out->by_reason[i];
    enum status status = records_read_header(&signature, &start, fd, shown, err);
    if (status == STATUS_OK && !out->handing_over)
        status = count_records(out, fd, start, shown, err);
    free(signature);
    close(fd);
    return status == STATUS_END ? STATUS_OK : status;
}

enum status unfinished_look(struct unfinished *out, const char *output, struct error *err)
{
    *out = (struct unfinished){.exists = false};
    char shown[256];
    size_t size;
    enum status status = workdir_name(&out->path, output, err);
    if (status != STATUS_OK)
        return status;
    const int directory = open(out->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? STATUS_OK
                   : error_errno(err, STATUS_FAILED, errno, "open", "cannot read %s",
                                 path_for_message(shown, sizeof shown, out->path));
    look_at_lock(out, directory);
    status = look_at_log(out, directory, err);
    if (status == STATUS_OK && out->has_log)
        read_command(out, directory);
    if (out->in_use || out->may_be_used)
        out->status = read_small(&size, directory, WORKDIR_STATUS);
    out->exists = out->has_log || out->in_use;
    close(directory);
    return status;
}

void unfinished_clear(struct unfinished *unfinished)
{
    free(unfinished->path);
    free(unfinished->command);
    free(unfinished->directory);
    free(unfinished->status);
    *unfinished = (struct unfinished){.exists = false};
}
